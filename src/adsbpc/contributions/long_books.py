"""The books of a long campaign as files: what each of them holds, and relations over it.

The books of a slot are five files. `users` has a row for everybody so far: user id, number, needs,
what is spent, in halves. `sums` has a row for each user and cell that ever counted, what was cut
being a cell after the others: running sums of what was asked for, and of what was moved, each with
the slot that they are of. Now and then a slot writes these two whole, and those after it only the
rows that changed since: a release reads the last whole ones and those of the slot before, whatever
came before that. `names` has the users who are new, `cells` and `cut` what the slot's own people
have, as in the books of other campaigns: no release reads them again, only who audits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adsbpc.contributions.account_books import (
    CELLS,
    CUT,
    NAMES,
    USERS,
    WIDE_COLUMNS,
    Parts,
    paths_of,
)
from adsbpc.engines import Engine, Relation
from adsbpc.storage import Place

SUMS = "sums.parquet"
LONG_FILES = (NAMES, CELLS, CUT, SUMS, USERS)
# What the next release reads.
READ_AGAIN = (SUMS, USERS)
LONG_WIDE = (*WIDE_COLUMNS, "cut_spent")


@dataclass(frozen=True)
class LongBooks:
    """Folders with the last books that are whole and with what changed since, as of the slot
    before, None where there are none, and one for this slot's, which shall be whole if that
    `merges` them."""

    slot: int
    whole: Place | None
    recent: Place | None
    new: Place
    merges: bool = False
    parts: Parts = field(default_factory=dict)


def sum_columns(sums: int) -> tuple[str, ...]:
    """Columns of a cell's running sums."""
    numbers = range(1, sums + 1)
    asked, moved = ([f"{name}_{k}" for k in numbers] for name in ("asked", "moved"))
    return "cell", "asked_slot", *asked, "moved_slot", *moved


def read_long_books(
    engine: Engine, books: LongBooks, rows: Relation, sums: int
) -> dict[str, Relation]:
    """`rows` lend their types where there are no files yet."""
    halves = [f"{name}_{half}" for name in LONG_WIDE for half in ("high", "low")]
    columns = {
        USERS: ("users", ("user_id", "number", "seen", *halves)),
        SUMS: ("sums", sum_columns(sums)),
    }
    found: dict[str, Relation] = {}
    for file, (view, names) in columns.items():
        for part, folder in (("whole", books.whole), ("recent", books.recent)):
            if folder is not None:
                paths = paths_of(folder, file, books.parts)
                opened = engine.read_written(f"{view}_{part}", paths, names)
                # Engines may add columns for the names of folders.
                read = Relation.of(f"SELECT {', '.join(names)} FROM {opened} AS {view}")
            else:
                read = Relation.of(f"SELECT {_typed(names)} FROM {rows} WHERE 1 = 0")
            found[f"{view}_{part}"] = read
    stored = newest(found["users_whole"], found["users_recent"], "number")
    wide = ", ".join(f"wide_of({n}_high, {n}_low) AS {n}" for n in LONG_WIDE)
    found["names_before"] = Relation.of(f"SELECT user_id, number FROM {stored}")
    found["users_before"] = Relation.of(f"SELECT number, seen, {wide} FROM {stored}")
    # Where people are counted once: what was asked for.
    both = newest(found["sums_whole"], found["sums_recent"], "cell")
    found["past"] = Relation.of(f"SELECT cell FROM {both} WHERE asked_slot > 0")
    return found


def _typed(names: Sequence[str]) -> str:
    return ", ".join(
        "CAST(user_id AS STRING) AS user_id" if name == "user_id" else f"weight AS {name}"
        for name in names
    )


def newest(whole: Relation, recent: Relation, key: str) -> Relation:
    """Every row of both, but those of the first that the second has by now."""
    return Relation.of(f"""
SELECT whole.* FROM {whole} AS whole
LEFT JOIN {recent} AS recent ON recent.{key} = whole.{key} WHERE recent.{key} IS NULL
UNION ALL
SELECT recent.* FROM {recent} AS recent""")
