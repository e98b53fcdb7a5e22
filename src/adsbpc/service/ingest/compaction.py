"""Merging small event files into larger ones, an advertiser a file, sorted by time.

Must never: lose or double a row, whatever dies in between or does the same at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import select

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.service.ingest.event_files import LOCK, EventFiles, OvertakenError
from adsbpc.service.ingest.rows import STORED, Source
from adsbpc.service.store import event_files


@dataclass(frozen=True)
class Sizes:
    """What one round takes at most, which bounds its memory; when a file is `large` enough to be
    left alone; and how many rows of an advertiser are worth a file of their own."""

    rows: int = 1_000_000
    bytes: int = 128 * 2**20
    files: int = 2_000
    large: int = 250_000
    own: int = 1_000


_SIZES = Sizes()
# A file waits until smaller ones have this share of its rows: so a row is moved a few times only.
_TIMES_LARGER = 4


class _Small(NamedTuple):
    name: str
    advertiser: str
    row_count: int


def compact(files: EventFiles, store: Database, source: Source, sizes: Sizes = _SIZES) -> int:
    """Merge a round of small files; returns how many. 0 means that there is nothing to do."""
    taken = _taken(files, store, source, sizes)
    if not taken:
        return 0
    merged = _merged(files, source, taken)
    # Files that are never listed count for nothing: a crash leaves some for the sweep.
    written = [
        (files.write(source, part, packed=True), advertiser, part.num_rows)
        for advertiser, part in _apart(merged, sizes.own)
    ]
    try:
        with store.writing(LOCK) as connection:
            if not files.retire(connection, [small.name for small in taken]):
                raise OvertakenError
            for name, advertiser, rows in written:
                files.list_new(connection, source, name, advertiser, rows)
    except OvertakenError:
        for name, _, _ in written:
            files.discard(name)
        return 0
    return len(taken)


def _taken(files: EventFiles, store: Database, source: Source, sizes: Sizes) -> list[_Small]:
    columns = event_files.c
    small = (
        select(columns.name, columns.advertiser, columns.row_count)
        .where(
            columns.source == source,
            columns.retired_us.is_(None),
            columns.row_count < sizes.large,
        )
        .order_by(columns.row_count, columns.name)
    )
    by_advertiser: dict[str, list[_Small]] = defaultdict(list)
    with store.reading() as connection:
        for row in connection.execute(small):
            by_advertiser[row.advertiser].append(_Small(*row))
    taken: list[_Small] = []
    left = np.array([sizes.rows, sizes.bytes, sizes.files])
    for group in by_advertiser.values():
        chosen = []
        for each in _similar(group):
            size = _size(files.folder / each.name)
            left -= (each.row_count, size, 1)
            if left.min() < 0:
                break
            chosen.append(each)
        if len(chosen) > 1:
            taken.extend(chosen)
    return taken


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # Who reads it says what is wrong.
        return 0


def _similar(group: list[_Small]) -> list[_Small]:
    """The smallest files of a group that are worth merging: none, or two and more."""
    chosen: list[_Small] = []
    for small in group:
        if small.row_count > _TIMES_LARGER * sum(each.row_count for each in chosen):
            if len(chosen) > 1:
                break
            chosen = []
        chosen.append(small)
    return chosen if len(chosen) > 1 else []


def _merged(files: EventFiles, source: Source, taken: list[_Small]) -> pa.Table:
    tables = []
    for small in taken:
        path = files.folder / small.name
        try:
            table = pq.read_table(path, schema=STORED[source], use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise ServiceError(
                f"{path}: cannot be read ({error}). Restore it from a backup: it holds events"
            ) from None
        if table.num_rows != small.row_count:
            raise ServiceError(
                f"{path}: has {table.num_rows} rows, and {small.row_count} were stored in it. "
                "Restore it from a backup"
            )
        tables.append(table)
    return pa.concat_tables(tables)


def _apart(table: pa.Table, own: int) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each advertiser that has enough of them, and of all others together, each
    sorted by time."""
    counted = pc.value_counts(table.column("advertiser_id")).to_pylist()
    if len(counted) == 1:
        yield counted[0]["values"], table.sort_by("timestamp")
        return
    busy = sorted(each["values"] for each in counted if each["counts"] >= own)
    for advertiser in busy:
        yield advertiser, table.filter(pc.field("advertiser_id") == advertiser).sort_by("timestamp")
    others = table.filter(~pc.field("advertiser_id").isin(busy))
    if others.num_rows:
        yield "", others.sort_by("timestamp")
