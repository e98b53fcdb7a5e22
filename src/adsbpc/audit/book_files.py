"""The files of the books: where the ledger says they are, whether they are what was written, and
views over their rows.

A slot has five. names: user_id, number, for people who are new. cells: slot, cell (number times
4096 plus the publisher's place), asked, moved. cut and rest: slot, number, moved, charge, of the
two columns that count what was cut. users: number, fixed, spent, of everybody so far. Charges and
what is spent stand in two halves, high times 2^53 plus low. A slot that renews the past has rows of
all slots so far, and in cut and rest, at slot 0, what released rows have cost, and at slot -1 what
coming ones will. Books of format 1 have no rest, and nothing is fixed in them. Those of formats 3
and 4, of long campaigns, have no rest, and running sums instead, which nothing here is computed
from. In format 4 the ledger says which of them are whole: those after one have in users, and in
sums, what changed since then. In format 5, of either kind, each file is a folder of several, and
the ledger names a manifest that names these. In format 6 names, cells, cut and rest have the rows
of slots before it as well, from the first one on that the ledger says; of the three last, those
after the last renewal. The files of those slots do not count any more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import file_digest, sha256
from typing import Any

from adsbpc.audit.claims import BrokenClaimError, Claim, claim, require
from adsbpc.audit.record import Record
from adsbpc.engines import ColumnKind, Engine, Relation
from adsbpc.errors import SourceError
from adsbpc.storage import Place

NAMES, CELLS, CUT, REST, USERS, SUMS = (
    "names.parquet", "cells.parquet", "cut.parquet", "rest.parquet", "users.parquet",
    "sums.parquet",
)  # fmt: skip
_COLUMNS = {
    NAMES: ("user_id", "number"),
    CELLS: ("slot", "cell", "asked", "moved"),
    CUT: ("slot", "number", "moved", "charge_high", "charge_low"),
    REST: ("slot", "number", "moved", "charge_high", "charge_low"),
    USERS: ("number", "fixed_high", "fixed_low", "spent_high", "spent_low"),
}
_OLD_USERS = ("number", "spent_high", "spent_low")
_ATTEMPT = re.compile(r"attempt=[0-9a-f]+")
_LONG_FORMATS = range(3, 5)
_FOLDER_FORMAT, _GATHERED_FORMAT = 5, 6
_MANIFEST = "manifest.json"

Told = Callable[[], None]


@dataclass(frozen=True)
class BookRows:
    """What the files of some slots hold of the people in them: what was let in, and what each
    column after the cells has counted."""

    cells: Relation
    cuts: tuple[Relation, Relation]


class BookFiles:
    """The folders of the released slots that count. Accounts are those of the newest: later ones
    replace them."""

    def __init__(self, record: Record, folder: Place, engine: Engine, are_long: bool) -> None:
        self._record, self._folder, self._engine = record, folder, engine
        own = _LONG_FORMATS if are_long else (1, 2, _GATHERED_FORMAT)
        self._formats = sorted((*own, _FOLDER_FORMAT))

    @cached_property
    def _books(self) -> list[dict[str, Any]]:
        found = [slot.step.get("books") for slot in self._record.in_order()]
        for slot, books in enumerate(found, start=1):
            require(isinstance(books, dict), f"the ledger names no books for slot {slot}")
            assert books is not None
            known = books.get("format", 1)
            require(
                type(known) is int and known in self._formats,
                f"the books of slot {slot} have format {known!r}, and this adsbpc knows "
                f"{' and '.join(map(str, self._formats))} for such campaigns",
            )
        return [books for books in found if books is not None]

    def _is_old(self, slot: int) -> bool:
        return bool(self._books[slot - 1].get("format", 1) == 1)

    def _is_long(self, slot: int) -> bool:
        books = self._books[slot - 1]
        return books.get("format", 1) in _LONG_FORMATS or "whole" in books

    @cached_property
    def _accounts_at(self) -> list[int]:
        """The newest slot, and the last one before it that has everybody, if it has not."""
        newest = len(self._books)
        if not newest or not self._is_long(newest):
            return [newest]
        for slot in range(newest, 0, -1):
            books = self._books[slot - 1]
            require(
                books["format"] == _LONG_FORMATS.start or type(books.get("whole")) is bool,
                f"the books of slot {slot} do not say whether they are whole",
            )
            if books.get("whole", True):
                return sorted({slot, newest})
        return [newest]

    def _has_rest(self, slot: int) -> bool:
        return not self._is_old(slot) and not self._is_long(slot)

    def _path(self, slot: int, file: str) -> Place:
        attempt = str(self._books[slot - 1]["attempt"])
        require(bool(_ATTEMPT.fullmatch(attempt)), f"the books of slot {slot} are {attempt!r}")
        return self._folder / f"slot={slot:04d}" / attempt / file

    def _sealed(self, slot: int, file: str) -> dict[Place, str]:
        """The file of a name, or all that its folder has, with the hashes of then."""
        named = self._books[slot - 1]["files"]
        if _MANIFEST not in named:
            return {self._path(slot, file): named[file][1]}
        found = {
            self._path(slot, name): seal[1]
            for name, seal in self._manifest(slot).items()
            if name.startswith(f"{file}/")
        }
        require(bool(found), f"{self._path(slot, _MANIFEST)} names no {file}")
        return found

    @cache  # noqa: B019 - as long as this audit
    def _manifest(self, slot: int) -> dict[str, Any]:
        path = self._path(slot, _MANIFEST)
        content = path.read_bytes()
        known = self._books[slot - 1]["files"][_MANIFEST][1]
        require(sha256(content).hexdigest() == known, f"{path} is not what was written")
        listed = json.loads(content)
        require(listed["format"] == 1, f"{path} has format {listed['format']!r}, and not 1")
        return dict(listed["files"])

    @cached_property
    def _holders(self) -> list[int]:
        """By slot the one that gathered it, or itself."""
        found: list[int] = []
        after = 1
        for slot, books in enumerate(self._books, start=1):
            first = books.get("first", slot)
            require(
                type(first) is int and first in (slot, after),
                f"the books of slot {slot} have the rows of slots from {first!r} on: expected "
                f"{after}, or its own alone",
            )
            found = [*found[: first - 1], *[slot] * (slot - first + 1)]
            after = slot + 1 if first < slot else after
        return found

    def _holder(self, slot: int, file: str) -> int:
        """The slot whose file of a name has the rows of this one."""
        holder = self._holders[slot - 1]
        renewed = file != NAMES and any(slot <= each <= holder for each in self._renewals)
        return slot if renewed else holder

    @cached_property
    def _renewals(self) -> set[int]:
        steps = [slot.step for slot in self._record.in_order()]
        return {slot for slot, step in enumerate(steps, start=1) if step.get("renewal")}

    def is_gathered(self, slot: int) -> bool:
        """Whether a file of other slots' names has those who were new on this one."""
        return self._holders[slot - 1] != slot

    def _files(self, slot: int) -> list[str]:
        """Those that count."""
        files = [file for file in (NAMES, CELLS, CUT) if self._holder(slot, file) == slot]
        if CELLS in files and self._has_rest(slot):
            files.append(REST)
        if slot not in self._accounts_at:
            return files
        return [*files, SUMS, USERS] if self._is_long(slot) else [*files, USERS]

    def hashes(self, told: Told) -> Claim:
        """Every file that counts is there, and is what the ledger names."""

        def check() -> str:
            size = count = 0
            for slot in range(1, len(self._books) + 1):
                sealed = {p: h for f in self._files(slot) for p, h in self._sealed(slot, f).items()}
                for path, known in sealed.items():
                    with path.open("rb") as content:
                        found = file_digest(content, "sha256").hexdigest()
                        size += content.tell()
                    require(found == known, f"{path} is not what was written")
                    count += 1
                told()
            return f"{count:,} files, {size:,} bytes"

        checked = f"the files of {len(self._record.slots):,} slots against the hashes in the ledger"
        return claim("book files", checked, check)

    @cached_property
    def all_slots(self) -> range:
        """Once every file that counts was looked at: it has these columns, and no others are
        read."""
        for file in _COLUMNS:
            slots = [s for s in range(1, len(self._books) + 1) if file in self._files(s)]
            if slots:
                self._check_columns(file, self._paths(file, slots))
        for holder, slots in self._all_held.items():
            if slots != [holder]:
                self._check_slots(holder, slots)
        return range(1, len(self._books) + 1)

    def names(self, slots: Iterable[int]) -> Relation:
        """Of files that hold these slots."""
        return self._opened(NAMES, sorted({self._holder(slot, NAMES) for slot in slots}))

    def users(self) -> Relation:
        """Everybody's accounts after the newest slot."""
        *whole, newest = self._accounts_at
        opened = self._opened(USERS, [newest])
        if whole:
            before = self._opened(USERS, whole)
            opened = Relation.of(
                f"SELECT * FROM {opened} AS newer UNION ALL SELECT older.* FROM {before} AS older"
                f" LEFT JOIN {opened} AS newer ON newer.number = older.number"
                " WHERE newer.number IS NULL"
            )
        fixed = "wide(0)" if self._is_old(newest) else "wide_of(fixed_high, fixed_low)"
        return Relation.of(
            f"SELECT number, {fixed} AS fixed, wide_of(spent_high, spent_low) AS spent"
            f" FROM {opened}"
        )

    def rows(self, slots: Iterable[int]) -> BookRows:
        """Rows that the books of some slots have."""
        held = self._held(slots)
        cells, cut, rest = (self._rows_of(file, held) for file in (CELLS, CUT, REST))
        return BookRows(cells, (cut, rest))

    def _rows_of(self, file: str, held: dict[int, list[int]]) -> Relation:
        """Of a file that holds other slots besides, those of these alone."""
        whole = [holder for holder, slots in held.items() if slots == self._all_held[holder]]
        parts = {tuple(whole): ""} if whole else {}
        for holder in held.keys() - whole:
            within = f" WHERE slot BETWEEN {held[holder][0]} AND {held[holder][-1]}"
            parts[holder,] = within
        found = []
        for holders, within in parts.items():
            known = [each for each in holders if file != REST or self._has_rest(each)]
            if known:
                found.append(f"SELECT * FROM {self._opened(file, known)} AS opened{within}")
        if not found:
            found = [f"SELECT * FROM {self._rows_of(CUT, held)} AS cut WHERE 1 = 0"]
        return Relation.of("\nUNION ALL\n".join(found))

    def _held(self, slots: Iterable[int]) -> dict[int, list[int]]:
        """Slots by the one whose files have their rows."""
        found: dict[int, list[int]] = {}
        for slot in slots:
            found.setdefault(self._holder(slot, CELLS), []).append(slot)
        return found

    @cached_property
    def _all_held(self) -> dict[int, list[int]]:
        return self._held(range(1, len(self._books) + 1))

    def _check_slots(self, holder: int, slots: list[int]) -> None:
        """That all rows of files are of the slots that were gathered, one after the other."""
        for file in (CELLS, CUT, REST):
            with self._engine.scratch():
                other = f"slot IS NULL OR slot NOT BETWEEN {slots[0]} AND {holder}"
                opened = self._opened(file, [holder])
                ((count,),) = self._engine.rows(
                    "rows of other slots", f"SELECT count(*) FROM {opened} WHERE {other}"
                )
            require(
                not count,
                f"{self._path(holder, file)}: {count:,} rows are of no slot from {slots[0]} to "
                f"{holder}",
            )

    def _opened(self, file: str, slots: Iterable[int]) -> Relation:
        paths = self._paths(file, slots)
        name = file.removesuffix(".parquet")
        return self._engine.read_files(name, "parquet", paths, None, self._columns(file))

    def _paths(self, file: str, slots: Iterable[int]) -> list[str]:
        return [str(path) for slot in slots for path in self._sealed(slot, file)]

    def _columns(self, file: str) -> tuple[str, ...]:
        is_old = file == USERS and self._is_old(len(self._books))
        return _OLD_USERS if is_old else _COLUMNS[file]

    def _check_columns(self, file: str, paths: list[str]) -> None:
        try:
            schemas = self._engine.describe_files("parquet", paths, None)
        except SourceError as error:
            raise BrokenClaimError(f"{error.where}: found {error.found}") from None
        for schema in schemas:
            for name in self._columns(file):
                column = schema.columns.get(name)
                require(column is not None, f"{schema.where}: has no column {name!r}")
                assert column is not None
                kind = ColumnKind.TEXT if name == "user_id" else ColumnKind.INTEGER
                require(
                    column.kind is kind,
                    f"{schema.where}: column {name!r} is {column.declared}, expected {kind.value}",
                )
