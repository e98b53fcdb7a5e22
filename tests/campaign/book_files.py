"""The books of personal budgets as they lie on the disk, read without the program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adsbpc.ledger import Ledger

FILES = ("names.parquet", "cells.parquet", "cut.parquet", "rest.parquet", "users.parquet")

Rows = dict[str, list[tuple[Any, ...]]]


def slot_folder(directory: Path, slot: int) -> Path:
    return directory / "adsbpc-books" / "acme" / "spring" / f"slot={slot:04d}"


def attempts(directory: Path, slot: int) -> set[str]:
    """The names of all attempts at a slot that are on the disk, whether they count or not."""
    return {found.name for found in slot_folder(directory, slot).glob("attempt=*")}


def steps(directory: Path, location: str = "ledger.sqlite") -> list[dict[str, Any]]:
    return Ledger(location, directory).steps("acme", "spring")


def committed(directory: Path, location: str = "ledger.sqlite") -> list[Path]:
    """The folders that count, in the order of slots."""
    return [
        slot_folder(directory, slot) / step["books"]["attempt"]
        for slot, step in enumerate(steps(directory, location), start=1)
    ]


def kept(directory: Path) -> list[list[int]]:
    """SECRET: what each slot let in, before noise."""
    return [step["kept"][-1] for step in steps(directory)]


def rows_of(folder: Path, files: Sequence[str] = FILES) -> Rows:
    """What stands in the books of a slot, whatever the order of rows in the files."""
    found = {}
    for file in files:
        # Not pq.read_table, which would add columns for the names of the folders.
        columns = pq.ParquetFile(folder / file).read().to_pydict()
        found[file] = sorted(zip(*columns.values(), strict=True))
    return found
