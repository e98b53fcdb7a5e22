"""The books of personal budgets as files: what each of them holds, and relations over it.

The books of a slot are five files. `names` gives each new user a number. `cells` has a row for
each user and cell of the slot: slot, cell (the user's number times 4096, or 32768 where there are
more cells than that, plus the index of the cell), asked, moved. `cut` and `rest` have what the
columns after the cells counted of the users of whom something was cut, and what that cost. `users`
has a row for everybody so far: number, needs, what is fixed and spent, in halves. A slot that
renews the past writes `cells`, `cut` and `rest` of all slots so far, and those before it are out of
use but for who audits. A release reads the users of the last slot and the other files since the
last renewal, and writes its own; whether they count is for the ledger to say.

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
CUT_COLUMNS = ("slot", "number", "moved", "charge_high", "charge_low")
# Names of all files in a folder that has folders in place of files.
Parts = Mapping[Place, Sequence[str]]
# Of users, in halves.
WIDE_COLUMNS = ("own", "across", "fixed", "spent")


@dataclass(frozen=True)
class Books:
    """Folders with the books of the slots before this one, in order, and one for this slot's.
    `renewed` is the slot that renewed the past last, 1 if none has. Version 0.1 has written those
    before `five_since`: they have no `rest`, users' needs are one figure, and nothing is fixed."""

    earlier: tuple[Place, ...]
    new: Place
    renewed: int = 1
    five_since: int = 1
    parts: Parts = field(default_factory=dict)

    @property
    def are_old(self) -> bool:
        """Whether the users of the last slot are as version 0.1 has written them."""
        return self.five_since > len(self.earlier)


def paths_of(folder: Place, file: str, parts: Parts) -> list[str]:
    """The file of a name, or all that stand below it."""
    if folder not in parts:
        return [str(folder / file)]
    return [str(folder / part) for part in parts[folder] if part.startswith(f"{file}/")]


def read_books(engine: Engine, books: Books, rows: Relation) -> dict[str, Relation]:
    """Of names everything, of users the last slot, of the rest what is in use. `rows` lend their
    types where there are no files yet."""
    earlier, since = books.earlier, books.renewed - 1
    halves = [f"{name}_{half}" for name in WIDE_COLUMNS for half in ("high", "low")]
    old_halves = ["need_high", "need_low", "spent_high", "spent_low"]
    are_old = bool(earlier) and books.are_old
    users = old_halves if are_old else ["seen", *halves]
    columns = {
        NAMES: ("names_before", ("user_id", "number"), earlier),
        CELLS: ("past", ("slot", "cell", "asked", "moved"), earlier[since:]),
        CUT: ("past_cut", CUT_COLUMNS, earlier[since:]),
        REST: ("past_rest", CUT_COLUMNS, earlier[max(since, books.five_since - 1) :]),
        USERS: ("users_stored", ("number", *users), earlier[-1:]),
    }
    found: dict[str, Relation] = {}
    for file, (view, names, folders) in columns.items():
        if folders:
            paths = [path for each in folders for path in paths_of(each, file, books.parts)]
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
