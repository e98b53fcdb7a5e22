"""The books of a long campaign as files: what each of them holds, and relations over it.

The books of a slot are five files. `users` has a row for everybody so far: user id, number, needs,
what is spent, in halves. `sums` has a row for each user and cell that ever counted, what was cut
being a cell after the others: running sums of what was asked for, and of what was moved, each with
the slot that they are of. A release reads these two of the slot before, whatever came before that.
`names` has the users who are new, `cells` and `cut` what the slot's own people have, as in the
books of other campaigns: no release reads them again, only who audits.
"""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.contributions.account_books import CELLS, CUT, NAMES, USERS, WIDE_COLUMNS
from adsbpc.engines import Engine, Relation
from adsbpc.storage import Place

SUMS = "sums.parquet"
LONG_FILES = (NAMES, CELLS, CUT, SUMS, USERS)
# What the next release reads.
READ_AGAIN = (SUMS, USERS)
LONG_WIDE = (*WIDE_COLUMNS, "cut_spent")


@dataclass(frozen=True)
class LongBooks:
    """The folder with the books of the slot before, None before the first, and one for this
    slot's."""

    slot: int
    last: Place | None
    new: Place


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
        USERS: ("users_stored", ("user_id", "number", "seen", *halves)),
        SUMS: ("sums", sum_columns(sums)),
    }
    found: dict[str, Relation] = {}
    for file, (view, names) in columns.items():
        if books.last is not None:
            paths = [str(books.last / file)]
            found[view] = engine.read_files(view, "parquet", paths, None, names)
        else:
            nothing = ", ".join(f"weight AS {name}" for name in names if name != "user_id")
            found[view] = Relation.of(
                f"SELECT CAST(user_id AS STRING) AS user_id, {nothing} FROM {rows} WHERE 1 = 0",
            )
    wide = ", ".join(f"wide_of({n}_high, {n}_low) AS {n}" for n in LONG_WIDE)
    stored = found["users_stored"]
    found["names_before"] = Relation.of(f"SELECT user_id, number FROM {stored}")
    found["users_before"] = Relation.of(f"SELECT user_id, number, seen, {wide} FROM {stored}")
    # Where people are counted once: what was asked for.
    found["past"] = Relation.of(f"SELECT cell FROM {found['sums']} WHERE asked_slot > 0")
    return found
