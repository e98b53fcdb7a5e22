"""The body of a pushed batch: taken apart into rows.

Must never: hold more in memory than the limits of [ingest] allow, whatever a sender claims.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json
from pydantic_core import from_json

from adsbpc.service.http.bodies import JSON
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.parquet import table_of
from adsbpc.service.ingest.rows import SCHEMAS, UNREADABLE, Checked, Source, check_rows, check_table
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


def _too_many(limit: int) -> Problem:
    return Problem(
        413, "Too many rows", f"the batch has more than {limit} rows, which is [ingest] max_rows",
        "Send smaller batches.",
    )  # fmt: skip
