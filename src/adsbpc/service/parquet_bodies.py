"""A batch that comes as Parquet: its size is known before it is unpacked, its columns are flat.

Must never: unpack a page or repeat a value before it is known how large that becomes.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adsbpc.events.schema import Reason
from adsbpc.service.problems import Problem
from adsbpc.service.rows import LONGEST_TEXT, MOMENT, SCHEMAS, Source

_MOST_GROUPS = 1_000
_TO_DO: Final = "Write the file again with these columns and types, and send it again."


def table_of(
    body: bytes, source: Source, max_rows: int, max_bytes: int
) -> tuple[pa.Table, dict[int, str]]:
    """The columns of `source`, nulls where the file has none, and reasons of rows whose texts are
    broken. Timestamps may still be texts."""
    try:
        file = pq.ParquetFile(pa.BufferReader(body), pre_buffer=False)
        texts = _check_footer(file, source, max_rows, max_bytes)
        # Dictionaries first: a value that is repeated ten thousand times is held once.
        file = pq.ParquetFile(pa.BufferReader(body), pre_buffer=False, read_dictionary=texts)
        table = file.read(use_threads=False)
        if table.num_rows > max_rows:
            raise _problem("it has more rows than it says")
        return _columns(table, source)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _problem(str(error)[:200]) from None


def _check_footer(file: pq.ParquetFile, source: Source, max_rows: int, max_bytes: int) -> list[str]:
    """Refuse what is too large or of another shape; returns the columns of text."""
    metadata, schema = file.metadata, file.schema
    if metadata.num_rows > max_rows:
        raise Problem(
            413, "Too many rows",
            f"the batch has {metadata.num_rows} rows, and [ingest] max_rows is {max_rows}",
            "Send smaller batches.",
        )  # fmt: skip
    if metadata.num_row_groups > _MOST_GROUPS:
        raise _problem(
            f"it has {metadata.num_row_groups} row groups, and at most {_MOST_GROUPS} are read"
        )
    known = SCHEMAS[source].names
    names = [schema.column(number).path for number in range(len(schema))]
    for number, name in enumerate(names):
        column = schema.column(number)
        if column.max_repetition_level or column.max_definition_level > 1 or "." in name:
            raise _problem(f"column {name[:80]!r} is nested")
        if name not in known:
            raise _problem(f"unknown column {name[:80]!r}; known are {', '.join(known)}")
    if len(set(names)) < len(names):
        raise _problem("a column is there twice")
    unpacked = sum(
        metadata.row_group(group).column(number).total_uncompressed_size
        for group in range(metadata.num_row_groups)
        for number in range(len(names))
    )
    if unpacked > max_bytes:
        raise Problem(
            413, "Too large",
            f"it unpacks to {unpacked} bytes, and [ingest] max_unpacked_bytes is {max_bytes}",
            "Send smaller batches.",
        )  # fmt: skip
    return [
        name
        for number, name in enumerate(names)
        if schema.column(number).physical_type == "BYTE_ARRAY"
    ]


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
        raise _problem("column 'timestamp' has no zone")
    return column.cast(MOMENT, safe=False)


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise _problem(f"column 'value' is {column.type}, not a number")
    return column.cast(pa.float64(), safe=False)


def _texts(column: pa.ChunkedArray, name: str, reasons: dict[int, str]) -> pa.Array:
    """Texts, each at most one character longer than any may be."""
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
        raise _problem(f"column {name!r} is {column.type}, not text")
    chunks = []
    start = 0
    for chunk in column.chunks:
        values = _valid(chunk.dictionary)
        broken = values.is_null()
        if broken.true_count:
            bad = pc.and_(broken.take(chunk.indices), chunk.indices.is_valid())
            reason = Reason.BAD_USER if name == "user_id" else f"{name} is not valid UTF-8"
            for number in pc.indices_nonzero(bad).to_pylist():
                reasons.setdefault(start + number, str(reason))
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


def _problem(why: str) -> Problem:
    return Problem(400, "Unusable Parquet", f"the body cannot be read as Parquet: {why}", _TO_DO)
