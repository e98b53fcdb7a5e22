"""The files of the books: where the ledger says they are, whether they are what was written, and
views over their rows.

A slot has four. names: user_id, number, for people who are new. cells: slot, cell (number times
4096 plus the publisher's place), asked, moved. cut: slot, number, moved, charge. users: number,
spent, of everybody so far. Charges and what is spent stand in two halves, high times 2^53 plus low.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any

from adsbpc.audit.claims import BrokenClaimError, Claim, claim, require
from adsbpc.audit.record import Record
from adsbpc.engines import ColumnKind, Engine, Relation
from adsbpc.errors import SourceError

NAMES, CELLS, CUT, USERS = "names.parquet", "cells.parquet", "cut.parquet", "users.parquet"
_COLUMNS = {
    NAMES: ("user_id", "number"),
    CELLS: ("slot", "cell", "asked", "moved"),
    CUT: ("slot", "number", "moved", "charge_high", "charge_low"),
    USERS: ("number", "spent_high", "spent_low"),
}
_ATTEMPT = re.compile(r"attempt=[0-9a-f]+")

Told = Callable[[], None]


@dataclass(frozen=True)
class BookRows:
    """What the files of some slots hold; `users` are everybody's accounts after the newest."""

    names: Relation
    cells: Relation
    cut: Relation
    users: Relation | None = None


class BookFiles:
    """The folders of the released slots that count. Accounts are those of the newest: later ones
    replace them."""

    def __init__(self, record: Record, folder: Path) -> None:
        self._record, self._folder = record, folder

    @cached_property
    def _steps(self) -> list[dict[str, Any]]:
        return [slot.step for slot in self._record.in_order()]

    def path(self, slot: int, file: str) -> Path:
        books = self._steps[slot - 1].get("books")
        require(isinstance(books, dict), f"the ledger names no books for slot {slot}")
        attempt = str(books["attempt"]) if books else ""
        require(bool(_ATTEMPT.fullmatch(attempt)), f"the books of slot {slot} are {attempt!r}")
        return self._folder / f"slot={slot:04d}" / attempt / file

    def needed(self, file: str) -> list[Path]:
        """In the order of slots."""
        last = len(self._steps)
        return [self.path(slot, file) for slot in range(last if file == USERS else 1, last + 1)]

    def hashes(self, told: Told) -> Claim:
        """Every file that counts is there, and is what the ledger names."""
        last = len(self._record.slots)

        def check() -> str:
            size = 0
            for slot, step in enumerate(self._steps, start=1):
                for file in _COLUMNS if slot == last else (NAMES, CELLS, CUT):
                    path = self.path(slot, file)
                    with path.open("rb") as content:
                        found = file_digest(content, "sha256").hexdigest()
                    require(
                        found == step["books"]["files"][file][1], f"{path} is not what was written"
                    )
                    size += path.stat().st_size
                told()
            return f"{size:,} bytes"

        checked = f"{3 * last + 1:,} files of {last:,} slots against the hashes in the ledger"
        return claim("book files", checked, check)

    def open(self, engine: Engine) -> BookRows:
        """Rows of all files, with these columns and no others."""
        opened = []
        for file in (NAMES, CELLS, CUT, USERS):
            paths = [str(path) for path in self.needed(file)]
            self._check_columns(engine, file, paths)
            opened.append(_opened(engine, file, paths))
        return BookRows(*opened)

    def open_slot(self, engine: Engine, slot: int) -> BookRows:
        """Rows of the files of one slot."""
        files = (NAMES, CELLS, CUT)
        return BookRows(*(_opened(engine, file, [str(self.path(slot, file))]) for file in files))

    def _check_columns(self, engine: Engine, file: str, paths: list[str]) -> None:
        try:
            schemas = engine.describe_files("parquet", paths, None)
        except SourceError as error:
            raise BrokenClaimError(f"{error.where}: found {error.found}") from None
        for schema in schemas:
            for name in _COLUMNS[file]:
                column = schema.columns.get(name)
                require(column is not None, f"{schema.where}: has no column {name!r}")
                assert column is not None
                kind = ColumnKind.TEXT if name == "user_id" else ColumnKind.INTEGER
                require(
                    column.kind is kind,
                    f"{schema.where}: column {name!r} is {column.declared}, expected {kind.value}",
                )


def _opened(engine: Engine, file: str, paths: list[str]) -> Relation:
    return engine.read_files(file.removesuffix(".parquet"), "parquet", paths, None, _COLUMNS[file])
