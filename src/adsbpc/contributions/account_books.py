"""The books of personal budgets as files: what each of them holds, and relations over it.

The books of a slot are five files. `names` gives each new user a number. `cells` has a row for
each user and cell of the slot: slot, cell (the user's number times 4096, or 32768 where there are
more cells than that, plus the index of the cell), asked, moved. `cut` and `rest` have what the
columns after the cells counted of the users of whom something was cut, and what that cost. `users`
has a row for everybody so far: number, needs, what is fixed and spent, in halves. A slot that
renews the past writes `cells`, `cut` and `rest` of all slots so far, and those before it are out of
use but for who audits. Now and then a slot gathers: its files but for `users` have the rows of the
slots before it as well, since one last gathered or, but for `names`, renewed the past. So a release
opens few files, however long a campaign is: the users of the last slot, and the other files since
the last renewal that no later slot has gathered. It writes its own; whether they count is for the
ledger to say.

Columns of views are sums of cells, and stand in no file. A cluster may write a folder of several
files in place of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adsbpc.engines import Engine, Relation
from adsbpc.storage import Place

NAMES, CELLS, CUT, USERS = "names.parquet", "cells.parquet", "cut.parquet", "users.parquet"
REST = "rest.parquet"
FILES = (NAMES, CELLS, CUT, REST, USERS)
GATHERED = (NAMES, CELLS, CUT, REST)
CELL_COLUMNS = ("slot", "cell", "asked", "moved")
CUT_COLUMNS = ("slot", "number", "moved", "charge_high", "charge_low")
# Names of all files in a folder that has folders in place of files.
Parts = Mapping[Place, Sequence[str]]
# Of users, in halves.
WIDE_COLUMNS = ("own", "across", "fixed", "spent")


@dataclass(frozen=True)
class Books:
    """Folders with the books of the slots before this one, in order, and one for this slot's.
    `renewed` is the slot that renewed the past last, 1 if none has. `firsts` are the first slots of
    which each has the rows, unless all have their own alone; `gathers` is that of the new ones, if
    they shall have others'. Version 0.1 has written those before `five_since`: they have no `rest`,
    users' needs are one figure, and nothing is fixed."""

    earlier: tuple[Place, ...]
    new: Place
    renewed: int = 1
    five_since: int = 1
    parts: Parts = field(default_factory=dict)
    firsts: tuple[int, ...] = ()
    gathers: int | None = None

    @property
    def are_old(self) -> bool:
        """Whether the users of the last slot are as version 0.1 has written them."""
        return self.five_since > len(self.earlier)

    def slots_of(self, file: str) -> list[int]:
        """Slots whose files of a name are read."""
        last = len(self.earlier)
        if file == USERS:
            return [last] if last else []
        firsts = self.firsts or tuple(range(1, last + 1))
        found = slots_read(firsts, 1 if file == NAMES else self.renewed)
        return [slot for slot in found if file != REST or slot >= self.five_since]

    def gathered(self, file: str) -> list[int]:
        """Of these, those of which the new ones shall have the rows."""
        if self.gathers is None or file == USERS:
            return []
        first = self.gathers
        if file != NAMES and self.renewed > 1:
            first = max(first, self.renewed + 1)
        return [slot for slot in self.slots_of(file) if slot >= first]

    def paths(self, file: str, slots: Sequence[int]) -> list[str]:
        folders = [self.earlier[slot - 1] for slot in slots]
        return [path for each in folders for path in paths_of(each, file, self.parts)]


def slots_read(firsts: Sequence[int], renewed: int) -> list[int]:
    """Slots whose files have all that is in use, in order: those of the one that renewed the past,
    and later ones that no other has gathered.

    >>> slots_read([1, 2, 3, 1, 5, 6], renewed=1)
    [4, 5, 6]
    >>> slots_read([1, 2, 3, 1, 5, 6], renewed=2)
    [2, 4, 5, 6]
    """
    found, slot = [], len(firsts)
    while slot >= renewed:
        found.append(slot)
        before = firsts[slot - 1] - 1
        slot = max(before, renewed) if slot > renewed > 1 else before
    return found[::-1]


def paths_of(folder: Place, file: str, parts: Parts) -> list[str]:
    """The file of a name, or all that stand below it."""
    if folder not in parts:
        return [str(folder / file)]
    return [str(folder / part) for part in parts[folder] if part.startswith(f"{file}/")]


def read_books(engine: Engine, books: Books, rows: Relation) -> dict[str, Relation]:
    """Of names everything, of users the last slot, of the rest what is in use. `rows` lend their
    types where there are no files yet."""
    halves = [f"{name}_{half}" for name in WIDE_COLUMNS for half in ("high", "low")]
    old_halves = ["need_high", "need_low", "spent_high", "spent_low"]
    are_old = bool(books.earlier) and books.are_old
    columns = {
        NAMES: ("names_before", ("user_id", "number")),
        CELLS: ("past", CELL_COLUMNS),
        CUT: ("past_cut", CUT_COLUMNS),
        REST: ("past_rest", CUT_COLUMNS),
        USERS: ("users_stored", ("number", *(old_halves if are_old else ["seen", *halves]))),
    }
    found: dict[str, Relation] = {}
    for file, (view, names) in columns.items():
        paths = books.paths(file, books.slots_of(file))
        if paths:
            found[view] = engine.read_written(view, paths, names)
        else:
            nothing = ", ".join(f"weight AS {name}" for name in names if name != "user_id")
            found[view] = Relation.of(
                f"SELECT CAST(user_id AS STRING) AS user_id, {nothing} FROM {rows} WHERE 1 = 0",
            )
    wide = ", ".join(f"wide_of({n}_high, {n}_low) AS {n}" for n in WIDE_COLUMNS)
    if are_old:
        wide = (
            "wide_of(need_high, need_low) AS own, wide(0) AS across, wide(0) AS fixed,"
            " wide_of(spent_high, spent_low) AS spent, CAST(0 AS BIGINT) AS seen"
        )
    else:
        wide += ", seen"
    found["users_before"] = Relation.of(f"SELECT number, {wide} FROM {found['users_stored']}")
    return found


def first_ungathered(firsts: Sequence[int]) -> int:
    """The slot after the last one that gathered.

    >>> first_ungathered([1, 2, 1, 4]), first_ungathered([])
    (4, 1)
    """
    gathering = [slot for slot, first in enumerate(firsts, start=1) if first < slot]
    return gathering[-1] + 1 if gathering else 1


def gathered_rows(engine: Engine, books: Books, file: str) -> str:
    """What a slot's file has besides its own rows, as what is added to a query of those."""
    names = {NAMES: ("user_id", "number"), CELLS: CELL_COLUMNS}.get(file, CUT_COLUMNS)
    paths = books.paths(file, books.gathered(file))
    if not paths:
        return ""
    rows = engine.read_written(f"gathered_{file.removesuffix('.parquet')}", paths, names)
    return f" UNION ALL SELECT {', '.join(names)} FROM {rows} AS gathered"
