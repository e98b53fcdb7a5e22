"""Parquet files with values that an engine cannot take: a copy in which their rows are set aside.

Some values stop a whole scan: bytes that are no UTF-8 in a column of texts, milliseconds that do
not fit into microseconds. In the copy such a row has nulls in place of its values, and the reason
in the column UNREADABLE. Every other row is as it was.

Must never: change a row for the sake of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adsbpc.engines.csv_dialect import NOT_UTF8, UNREADABLE
from adsbpc.engines.csv_lines import valid_texts
from adsbpc.storage import RemotePath, has_client, is_remote

OUT_OF_RANGE = "a timestamp is out of range"

# Milliseconds whose microseconds fit into 64 bits, with room for engines that keep the ends.
_MOST_MILLISECONDS = 2**63 // 1_000 - 1


def mend(file: str, columns: Sequence[str], copy: Path) -> bool:
    """Write a copy if a row of the file needs it; whether one does."""
    source = RemotePath(file).open() if is_remote(file) and has_client(file) else file
    with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as parquet:
        present = [name for name in columns if name in parquet.schema_arrow.names]
        if not any(map(_needs_mending, _batches(parquet, present))):
            return False
        copy.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            writer = None
            for batch in _batches(parquet, present):
                mended = _mended(batch)
                if writer is None:
                    writer = stack.enter_context(pq.ParquetWriter(copy, mended.schema))
                writer.write_batch(mended)
    return True


def _batches(parquet: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in parquet.iter_batches(columns=columns):
        plain = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        yield pa.RecordBatch.from_arrays(plain, names=batch.schema.names)


def _needs_mending(batch: pa.RecordBatch) -> bool:
    return any(pc.any(mask).as_py() for column in batch.columns for mask, _ in _faults(column))


def _mended(batch: pa.RecordBatch) -> pa.RecordBatch:
    reasons = pa.nulls(batch.num_rows, pa.string())
    for column in batch.columns:
        for mask, reason in _faults(column):
            reasons = pc.if_else(pc.and_(mask, reasons.is_null()), reason, reasons)
    columns = [pc.if_else(reasons.is_null(), column, None) for column in batch.columns]
    return pa.RecordBatch.from_arrays([*columns, reasons], names=[*batch.schema.names, UNREADABLE])


def _faults(column: pa.Array) -> list[tuple[pa.Array, str]]:
    """Masks without nulls of the values that cannot be taken, each with the reason."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        return [(valid_texts(column.cast(binary))[1], NOT_UTF8)]
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        count = column.cast(pa.int64())
        outside = pc.or_(pc.greater(count, _MOST_MILLISECONDS), pc.less(count, -_MOST_MILLISECONDS))
        return [(outside.fill_null(False), OUT_OF_RANGE)]
    return []
