"""The body of a pushed batch: room for it as it comes, and taken apart into rows, Parquet in a
process of its own.

Must never: hold more in memory than the limits of [ingest] allow, whatever a sender claims, or let
who sends slowly keep others out.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json
from pydantic_core import from_json

from adsbpc.errors import ServiceError
from adsbpc.events.schema import LONGEST_TEXT
from adsbpc.service.http.bodies import JSON
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.rows import (
    SCHEMAS,
    UNREADABLE,
    Checked,
    Columns,
    Source,
    check_columns,
    columns_of,
)
from adsbpc.service.settings import IngestSection

NDJSON: Final = "application/x-ndjson"
PARQUET: Final = "application/vnd.apache.parquet"
MEDIA_TYPES: Final = (NDJSON, JSON, PARQUET)

# What a parser makes an object of. A row has up to 8 of them; ids may hold some, too.
_SIGNS = (b"{", b"[", b",")
_SIGNS_OF_A_ROW = 32
_PLAIN: Final[dict[Source, pyarrow.json.ParseOptions]] = {
    source: pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(
            [(name, pa.float64() if name == "value" else pa.string()) for name in schema.names]
        ),
        unexpected_field_behavior="error",
    )
    for source, schema in SCHEMAS.items()
}
_parse = partial(from_json, cache_strings="keys")

# A body of the largest size takes a tenth of that.
_DECODING_SECONDS = 5
_STARTING_SECONDS = 60
# Of what a file unpacks to, nothing is to be kept for the next one.
_DECODER_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}

# Of the room for bodies, one part of so many is for one sender.
_SHARE = 8


class _ParquetDecoder:
    """The process that decodes, one body after another. It is started for the first one, again
    after one that ended it or took too long, and ends with this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def table_of(
        self, body: bytes, source: Source, limits: IngestSection
    ) -> tuple[pa.Table, dict[int, str]]:
        """The columns of `source`, nulls where the file has none, and reasons of rows whose texts
        are broken. Timestamps may still be texts."""
        asked = {
            "fields": {field.name: _kind(field.type) for field in SCHEMAS[source]},
            "longest_text": LONGEST_TEXT,
            "max_rows": limits.max_rows,
            "max_bytes": limits.max_unpacked_bytes,
        }
        with self._lock:
            connection = self._running() or self._start()
            try:
                connection.send_bytes(json.dumps(asked).encode())
                connection.send_bytes(body)
                if not connection.poll(_DECODING_SECONDS):
                    raise TimeoutError
                answer, content = json.loads(connection.recv_bytes()), connection.recv_bytes()
            except (OSError, EOFError):
                self._stop()
                raise _unusable("reading it ended the reader, or took too long") from None
        if "status" in answer:
            if answer["status"] == 400:
                raise _unusable(answer["detail"])
            raise Problem(**answer, to_do="Send smaller batches.")
        reasons = {int(row): reason for row, reason in answer["reasons"].items()}
        return pa.ipc.open_stream(content).read_all(), reasons

    def _running(self) -> Connection | None:
        is_alive = self._process is not None and self._process.poll() is None
        return self._connection if is_alive else None

    def _start(self) -> Connection:
        self._stop()
        atexit.register(self._stop)
        ours, theirs = Pipe()
        # By its path and isolated: it imports Arrow and nothing else.
        program = [sys.executable, "-I", str(Path(__file__).with_name("parquet.py"))]
        with theirs:
            self._process = subprocess.Popen(
                [*program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **_DECODER_ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # What the reader says of a file may quote it.
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._connection = ours
        try:
            if ours.poll(_STARTING_SECONDS):
                ours.recv_bytes()
                return ours
        except (OSError, EOFError):
            pass
        self._stop()
        raise ServiceError(
            "the process that reads Parquet did not start. Check that there is memory"
        )

    def _stop(self) -> None:
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None
        atexit.unregister(self._stop)


_decoder = _ParquetDecoder()


def check_body(
    body: bytes, media_type: str, source: Source, subject: str, now_us: int, limits: IngestSection
) -> Checked:
    """Take a body apart and check its rows. `subject` is who sends it, as in `rows`."""
    columns, reasons = _columns_of(body, media_type, source, limits)
    return check_columns(columns, reasons, source, subject, now_us)


def _columns_of(
    body: bytes, media_type: str, source: Source, limits: IngestSection
) -> tuple[Columns, dict[int, str]]:
    """A column for each field, and the reasons of rows that are known to be bad."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == PARQUET:
        table, reasons = _decoder.table_of(body, source, limits)
        return _combined(table), reasons
    if kind not in MEDIA_TYPES:
        raise Problem(
            415, "Unsupported media type", f"Content-Type is {kind[:80]!r}",
            f"Send {', '.join(MEDIA_TYPES)}.", {"Accept": ", ".join(MEDIA_TYPES)},
        )  # fmt: skip
    most_signs = _SIGNS_OF_A_ROW * limits.max_rows
    if len(body) > most_signs and sum(map(body.count, _SIGNS)) > most_signs:
        raise _too_many(limits.max_rows)
    if kind == JSON:
        rows = _array(body)
    else:
        body = body.strip()
        table = _plain_lines(body, source, limits.max_rows)
        if table is not None:
            return _combined(table), {}
        rows = [_line(line) for line in body.split(b"\n") if line and not line.isspace()]
    if len(rows) > limits.max_rows:
        raise _too_many(limits.max_rows)
    return columns_of(rows, source)


def _combined(table: pa.Table) -> Columns:
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _plain_lines(body: bytes, source: Source, most: int) -> pa.Table | None:
    """The rows of a batch without any fault of shape, by a parser that makes no Python objects;
    None if it finds one, as it cannot say in which row."""
    signs = np.frombuffer(body, np.uint8)
    is_break = signs == ord("\n")
    if np.count_nonzero(is_break) >= most:
        raise _too_many(most)
    breaks = np.flatnonzero(is_break)
    # Nothing in a row starts with a brace, so that every line starts a row: as many rows as lines
    # means one row a line.
    if not body.startswith(b"{") or not (signs[breaks + 1] == ord("{")).all():
        return None
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(body),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            _PLAIN[source],
        )
        # It takes any bytes for text.
        table.validate(full=True)
    except pa.ArrowException:
        return None
    return table if table.num_rows == len(breaks) + 1 else None


def _line(line: bytes) -> Any:
    try:
        return _parse(line)
    except ValueError:
        return UNREADABLE


def _array(body: bytes) -> list[Any]:
    try:
        rows = _parse(body)
    except ValueError as error:
        raise Problem(
            400, "Not JSON", f"the body is not valid JSON: {error}", "Correct it and send it again."
        ) from None
    if not isinstance(rows, list):
        raise Problem(
            400, "Not an array", "the body is JSON, and not an array of rows",
            f"Send an array, or one object per line as {NDJSON}.",
        )  # fmt: skip
    return rows


def _too_many(limit: int) -> Problem:
    return Problem(
        413, "Too many rows", f"the batch has more than {limit} rows, which is [ingest] max_rows",
        "Send smaller batches.",
    )  # fmt: skip


def _unusable(why: str) -> Problem:
    return Problem(
        400, "Unusable Parquet", f"the body cannot be read as Parquet: {why}",
        "Write the file again with these columns and types, and send it again.",
    )  # fmt: skip


def _kind(column: pa.DataType) -> str:
    if pa.types.is_timestamp(column):
        return "moment"
    return "number" if pa.types.is_floating(column) else "text"


class BodyRoom:
    """Memory for bodies on their way, counted by what has come of them: as much as all batches that
    may wait can take. One sender has an eighth of it, and room for one body at least."""

    def __init__(self, limits: IngestSection) -> None:
        self._room = limits.waiting_batches * limits.max_body_bytes
        self._share = max(limits.max_body_bytes, self._room // _SHARE)
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def taken_by(self, owner: str) -> Iterator[Callable[[int], None]]:
        """Around a body as it comes: what comes back takes bytes for it, or sends it away."""
        own = 0

        def take(size: int) -> None:
            nonlocal own
            with self._lock:
                if self._held[owner] + size > self._share:
                    raise _no_room(f"bodies of {owner} take {self._share} bytes already")
                if self._held.total() + size > self._room:
                    raise _no_room(f"bodies take {self._room} bytes already")
                self._held[owner] += size
                own += size

        try:
            yield take
        finally:
            with self._lock:
                self._held[owner] -= own
                # Keeps nothing of who is not here.
                self._held += Counter()


def _no_room(why: str) -> Problem:
    return Problem(
        429, "Too many bodies", why, "Send the same batch again, with the same key.",
        {"Retry-After": "1"},
    )  # fmt: skip
