"""Rows as bodies of batches: from objects, or from tables of pandas, polars or Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]
# A DataFrame of pandas or polars, or a table of Arrow: whatever hands out its columns.
Rows = Iterable[Row] | Any

_TABLE_SIGNS = ("__arrow_c_stream__", "__arrow_c_array__")
# How pandas calls an index without a name: the numbers of rows, and nothing of an event.
_PANDAS_INDEX = "__index_level_"
_AT_ONCE = 10_000


def bodies_of(rows: Rows, most_rows: int, most_bytes: int) -> Iterator[bytes]:
    """NDJSON of all rows in their order, in parts within both limits; the same rows make the same
    parts. A row that is larger alone is a part alone, for the server to refuse."""
    lines: list[bytes] = []
    size = 0
    for row in _objects(rows):
        line = json.dumps(row, default=moment_text).encode()
        if lines and (len(lines) == most_rows or size + len(line) > most_bytes):
            yield b"\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    yield b"\n".join(lines)


def _objects(rows: Rows) -> Iterator[Row]:
    if any(hasattr(rows, sign) for sign in _TABLE_SIGNS):
        yield from _rows_of_table(pa.table(rows))
        return
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"row {number} is a {type(row).__name__}, and not an object with fields. Give a "
                "list of dicts, or a table of pandas, polars or Arrow"
            )
        yield row


def _rows_of_table(table: pa.Table) -> Iterator[Row]:
    kept = [name for name in table.column_names if not name.startswith(_PANDAS_INDEX)]
    for batch in table.select(kept).to_batches(max_chunksize=_AT_ONCE):
        plain = {name: _plain(batch[name]) for name in kept}
        yield from pa.table(plain).to_pylist()


def _plain(column: pa.Array) -> pa.Array:
    """Python's moments have microseconds, as the server's."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return column


def moment_text(value: object) -> str:
    """JSON has no moments."""
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    raise TypeError(f"{value!r} cannot be sent as JSON")
