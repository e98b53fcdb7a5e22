"""A batch that comes as Parquet: its size is known before it is unpacked, its columns are flat.

Must never: unpack a page or repeat a value before it is known how large that becomes.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.parquet_pages import BYTE_ARRAY, PageError, read_footer, unpacked_size
from adsbpc.service.ingest.rows import LONGEST_TEXT, MOMENT, SCHEMAS, Source

_TO_DO: Final = "Write the file again with these columns and types, and send it again."


def table_of(
    body: bytes, source: Source, max_rows: int, max_bytes: int
) -> tuple[pa.Table, dict[int, str]]:
    """The columns of `source`, nulls where the file has none, and reasons of rows whose texts are
    broken. Timestamps may still be texts."""
    try:
        texts = _check_footer(body, source, max_rows, max_bytes)
        # Dictionaries first: a value that is repeated ten thousand times is held once.
        file = pq.ParquetFile(pa.BufferReader(body), pre_buffer=False, read_dictionary=texts)
        return _columns(file.read(use_threads=False), source)
    except (pa.ArrowException, OSError, ValueError, PageError) as error:
        raise _unusable(str(error)[:200]) from None


def _check_footer(body: bytes, source: Source, max_rows: int, max_bytes: int) -> list[str]:
    """Refuse what is too large, and columns that are unknown or repeated; returns the names of
    those that may be text."""
    footer = read_footer(body)
    if footer.rows > max_rows:
        raise Problem(
            413, "Too many rows",
            f"the batch has {footer.rows} rows, and [ingest] max_rows is {max_rows}",
            "Send smaller batches.",
        )  # fmt: skip
    size = unpacked_size(body, footer)
    if size > max_bytes:
        raise Problem(
            413, "Too large",
            f"it unpacks to {size} bytes, and [ingest] max_unpacked_bytes is {max_bytes}",
            "Send smaller batches.",
        )  # fmt: skip
    known = SCHEMAS[source].names
    names = [column.name for column in footer.columns]
    for name in names:
        if name not in known:
            raise _unusable(f"unknown column {name[:80]!r}; known are {', '.join(known)}")
        if names.count(name) > 1:
            raise _unusable(f"column {name!r} is there twice")
    return [column.name for column in footer.columns if column.physical_type == BYTE_ARRAY]


def _columns(table: pa.Table, source: Source) -> tuple[pa.Table, dict[int, str]]:
    reasons: dict[int, str] = {}
    columns = {}
    for field in SCHEMAS[source]:
        if field.name not in table.column_names:
            columns[field.name] = pa.nulls(table.num_rows, field.type)
            continue
        column = table.column(field.name)
        if pa.types.is_null(column.type):
            column = pa.nulls(table.num_rows, field.type)
        elif field.name == "timestamp" and pa.types.is_timestamp(column.type):
            column = _moments(column)
        elif field.type == pa.float64():
            column = _numbers(column)
        else:
            column = _texts(column, field.name, reasons)
        columns[field.name] = column
    return pa.table(columns), reasons


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type.tz is None:
        raise _unusable("column 'timestamp' has no zone")
    return column.cast(MOMENT, safe=False)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise _unusable(f"column 'value' is {column.type}, not a number")
    return column.cast(pa.float64(), safe=False)


def _texts(column: pa.ChunkedArray, name: str, reasons: dict[int, str]) -> pa.Array:
    """Texts, each at most one character longer than any may be."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise _unusable(f"column {name!r} is {column.type}, not text")
    chunks = []
    start = 0
    for chunk in column.chunks:
        values = _valid(chunk.dictionary)
        broken = values.is_null()
        if broken.true_count:
            bad = pc.and_(broken.take(chunk.indices), chunk.indices.is_valid())
            for number in pc.indices_nonzero(bad).to_pylist():
                reasons.setdefault(start + number, f"{name} is not valid UTF-8")
        chunks.append(pc.utf8_slice_codeunits(values, 0, LONGEST_TEXT + 1).take(chunk.indices))
        start += len(chunk)
    return pa.chunked_array(chunks, pa.string())


def _valid(values: pa.Array) -> pa.Array:
    """The same texts; null where bytes are no UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [_decoded(value) for value in values.cast(pa.binary()).to_pylist()], pa.string()
        )
    return values


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _unusable(why: str) -> Problem:
    return Problem(400, "Unusable Parquet", f"the body cannot be read as Parquet: {why}", _TO_DO)
