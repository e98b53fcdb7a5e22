"""The body of a pushed batch: read within limits, unpacked, and taken apart into rows.

Must never: hold more in memory than the limits of [ingest] allow, whatever a sender claims.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from adsbpc.service.parquet_bodies import table_of
from adsbpc.service.problems import Problem
from adsbpc.service.rows import SCHEMAS, UNREADABLE, Checked, Source, check_rows, check_table
from adsbpc.service.settings import IngestSection

NDJSON: Final = "application/x-ndjson"
JSON: Final = "application/json"
PARQUET: Final = "application/vnd.apache.parquet"
MEDIA_TYPES: Final = (NDJSON, JSON, PARQUET)

_LONGEST_SECONDS = 60
_UNPACK_STEP = 2**18
_GZIP = 16 + zlib.MAX_WBITS
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


@dataclass(frozen=True)
class Received:
    """A body as it came."""

    content: bytes
    is_packed: bool


async def read_body(request: Request, limits: IngestSection) -> bytes:
    """The whole body, unpacked: for those who send little."""
    received = await receive_body(request, limits)
    return await run_in_threadpool(unpacked, received, limits)


async def receive_body(request: Request, limits: IngestSection) -> Received:
    """The whole body. Nothing is read of one that says itself that it is too large."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            415, "Unsupported encoding", f"Content-Encoding is {encoding[:40]!r}",
            "Send the body as it is, or packed with gzip.", {"Accept-Encoding": "gzip"},
        )  # fmt: skip
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limits.max_body_bytes:
        raise _too_large("the body", limits.max_body_bytes, "max_body_bytes")
    received, parts = 0, []
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            async for chunk in request.stream():
                received += len(chunk)
                if received > limits.max_body_bytes:
                    raise _too_large("the body", limits.max_body_bytes, "max_body_bytes")
                parts.append(chunk)
    except TimeoutError:
        raise Problem(
            408, "Too slow", f"the body did not come within {_LONGEST_SECONDS} seconds",
            "Send smaller batches, or over a faster line.",
        ) from None  # fmt: skip
    return Received(b"".join(parts), encoding == "gzip")


def unpacked(received: Received, limits: IngestSection) -> bytes:
    if not received.is_packed:
        return received.content
    unpacker = _Unpacker(limits.max_unpacked_bytes)
    content = unpacker.unpack(received.content)
    unpacker.finish()
    return content


class _Unpacker:
    """gzip in pieces of bounded size: a small body may unpack to anything."""

    def __init__(self, limit: int) -> None:
        self._limit, self._unpacked = limit, 0
        self._stream = zlib.decompressobj(_GZIP)

    def unpack(self, packed: bytes) -> bytes:
        parts = []
        while packed:
            if self._stream.eof:
                raise _broken("bytes follow after the end of the packed body")
            try:
                parts.append(self._stream.decompress(packed, _UNPACK_STEP))
            except zlib.error as error:
                raise _broken(str(error)) from None
            self._unpacked += len(parts[-1])
            if self._unpacked > self._limit:
                raise _too_large("the unpacked body", self._limit, "max_unpacked_bytes")
            packed = self._stream.unconsumed_tail or self._stream.unused_data
        return b"".join(parts)

    def finish(self) -> None:
        if not self._stream.eof:
            raise _broken("the packed body ends too early")


def check_body(
    body: bytes,
    media_type: str,
    source: Source,
    subject: str,
    now_us: int,
    limits: IngestSection,
) -> Checked:
    """Take a body apart and check its rows. `subject` is who sends it, as in `rows`."""
    rows = rows_of(body, media_type, source, limits)
    if isinstance(rows, list):
        return check_rows(rows, source, subject, now_us)
    table, reasons = rows
    return check_table(table, reasons, source, subject, now_us)


def rows_of(
    body: bytes, media_type: str, source: Source, limits: IngestSection
) -> list[Any] | tuple[pa.Table, dict[int, str]]:
    """Parsed rows, or a table with the reasons of rows that are known to be bad."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == PARQUET:
        return table_of(body, source, limits.max_rows, limits.max_unpacked_bytes)
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
            return table, {}
        rows = [_line(line) for line in body.split(b"\n") if line and not line.isspace()]
    if len(rows) > limits.max_rows:
        raise _too_many(limits.max_rows)
    return rows


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
            f"Send an array, or one object a line as {NDJSON}.",
        )  # fmt: skip
    return rows


def _too_large(what: str, limit: int, key: str) -> Problem:
    return Problem(
        413, "Too large", f"{what} has more than {limit} bytes, which is [ingest] {key}",
        "Send smaller batches.",
    )  # fmt: skip


def _too_many(limit: int) -> Problem:
    return Problem(
        413, "Too many rows", f"the batch has more than {limit} rows, which is [ingest] max_rows",
        "Send smaller batches.",
    )  # fmt: skip


def _broken(why: str) -> Problem:
    return Problem(400, "Broken gzip", why, "Pack the body again, whole, and send it again.")
