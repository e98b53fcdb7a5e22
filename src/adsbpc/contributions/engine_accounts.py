"""Personal budgets on an engine: the filter in SQL, with books in Parquet.

The books of a slot are two files. `cells` has a row for each user and publisher of the slot:
user_id, slot, publisher_index, asked, kept; the index after the last publisher counts what was
cut. `users` has a row for everybody so far: user_id, need, spent. A release reads the cells of all
earlier slots and the users of the last one, and writes its own; whether they count is for the
ledger to say.

Every figure is an integer of at most 128 bits. `privacy.filter` says what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as counting
from pathlib import Path

import numpy as np

from adsbpc.contributions.interface import LARGEST_NEED, Integers, check_edges, check_slot
from adsbpc.engines import Engine
from adsbpc.privacy.filter import LARGEST_CELL, PARTS, Terms

_INSTANCES = counting(1)

CELLS, USERS = "cells.parquet", "users.parquet"


@dataclass(frozen=True)
class Books:
    """Folders with the books of the slots before this one, in order, and one for this slot's."""

    earlier: tuple[Path, ...]
    new: Path


class EngineAccounts:
    """The books of one slot, whose contributions are the rows of `relation` with its number."""

    def __init__(
        self,
        engine: Engine,
        relation: str,
        slots: int,
        publishers: tuple[str, ...],
        books: Books,
    ) -> None:
        self.slots = slots
        self.publishers = publishers
        self._engine = engine
        self._relation = relation
        self._books = books
        self._slot = len(books.earlier) + 1
        check_slot(self._slot, slots)
        self._prefix = f"books_{next(_INSTANCES)}"
        self._tables: list[str] = []
        self._opened = False

    def close(self) -> None:
        """Free the tables; the files stay."""
        for table in self._tables:
            self._engine.drop(table)
        self._tables.clear()
        self._opened = False

    def _name(self, what: str) -> str:
        return f"{self._prefix}_{what}"

    def _table(self, what: str, sql: str) -> None:
        self._engine.table(self._name(what), sql)
        self._tables.append(self._name(what))

    def needs(self, costs: Sequence[int], edges: Sequence[int]) -> Integers:
        check_edges(edges)
        self._open(costs)
        bins = "".join(f" WHEN need <= {_wide(edge)} THEN {i}" for i, edge in enumerate(edges))
        found = self._engine.rows(
            "histogram of needs",
            f"SELECT bin, count(*) FROM (SELECT CASE{bins} ELSE {len(edges)} END AS bin"
            f" FROM {self._name('users')} WHERE need > 0) AS binned GROUP BY bin",
        )
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        for position, users in found:
            counts[position] = users
        return counts

    def admit(self, terms: Terms) -> list[int]:
        self._open(terms.costs)
        cut_column = len(self.publishers)
        self._keep("kept", self._name("cells"), terms, terms.multiplier, terms.kept_limit, "users")
        self._table("paid", self._paid("users", "kept"))
        self._table("cut", self._what_was_cut(terms, cut_column))
        self._keep("counted", self._name("cut"), terms, terms.cut_multiplier, terms.limit, "paid")
        self._write(terms.slot)
        found = self._engine.rows(
            "totals of what is kept",
            f"""
SELECT publisher_index, CAST(sum(kept) AS BIGINT)
FROM {self._name("kept")} GROUP BY publisher_index
UNION ALL
SELECT publisher_index, CAST(sum(kept) AS BIGINT)
FROM {self._name("counted")} GROUP BY publisher_index""",
        )
        totals = [0] * (cut_column + 1)
        for publisher_index, total in found:
            totals[publisher_index] = int(total)
        return totals

    # ---- steps ---------------------------------------------------------------------------------

    def _open(self, costs: Sequence[int]) -> None:
        """This slot's cells with what earlier ones add to their cost, and everybody's need."""
        if self._opened:
            return
        self._table(
            "asked",
            f"""
SELECT user_id, publisher_index, CAST(least(sum(weight), {LARGEST_CELL}) AS BIGINT) AS asked
FROM {self._relation} WHERE slot = {self._slot} AND weight > 0
GROUP BY user_id, publisher_index""",
        )
        self._read_books()
        self._table(
            "cells",
            f"""
WITH cost_with (slot, cost) AS (VALUES {_values(costs)}),
earlier AS (
  SELECT asked.user_id, asked.publisher_index,
    sum(wide(past.asked * cost)) AS asked_before, sum(wide(past.moved * cost)) AS before
  FROM {self._name("past")} AS past
  JOIN {self._name("asked")} AS asked
    ON asked.user_id = past.user_id AND asked.publisher_index = past.publisher_index
  JOIN cost_with ON cost_with.slot = past.slot
  GROUP BY asked.user_id, asked.publisher_index
)
SELECT asked.user_id, asked.publisher_index, asked.asked,
  coalesce(asked_before, wide(0)) AS asked_before, coalesce(before, wide(0)) AS before
FROM {self._name("asked")} AS asked
LEFT JOIN earlier
  ON earlier.user_id = asked.user_id AND earlier.publisher_index = asked.publisher_index""",
        )
        self._table(
            "users",
            f"""
WITH more AS (
  SELECT user_id,
    sum(2 * wide(asked) * asked_before + {costs[-1]} * wide(asked) * wide(asked)) AS need
  FROM {self._name("cells")} GROUP BY user_id
)
SELECT coalesce(before.user_id, more.user_id) AS user_id,
  least(coalesce(before.need, wide(0)) + coalesce(more.need, wide(0)), {_wide(LARGEST_NEED)})
    AS need,
  coalesce(before.spent, wide(0)) AS spent
FROM {self._name("users_before")} AS before
FULL OUTER JOIN more ON more.user_id = before.user_id""",
        )
        self._opened = True

    def _read_books(self) -> None:
        asked = self._name("asked")
        if not self._books.earlier:
            self._engine.view(
                self._name("past"),
                "SELECT user_id, CAST(0 AS BIGINT) AS slot, publisher_index, asked, asked AS moved"
                f" FROM {asked} WHERE 1 = 0",
            )
            self._engine.view(
                self._name("users_before"),
                f"SELECT user_id, wide(0) AS need, wide(0) AS spent FROM {asked} WHERE 1 = 0",
            )
            return
        self._engine.read_files(
            self._name("past"),
            "parquet",
            [str(folder / CELLS) for folder in self._books.earlier],
            None,
            ["user_id", "slot", "publisher_index", "asked", "moved"],
        )
        stored = self._name("users_stored")
        self._engine.read_files(
            stored, "parquet", [str(self._books.earlier[-1] / USERS)], None,
            ["user_id", "need", "spent"],
        )  # fmt: skip
        self._engine.view(
            self._name("users_before"),
            f"SELECT user_id, wide(need) AS need, wide(spent) AS spent FROM {stored}",
        )

    def _keep(
        self, what: str, cells: str, terms: Terms, multiplier: int, limit: int, users: str
    ) -> None:
        """Cells with what is kept of them, and what that costs: all of a user's, or the largest
        number of parts that fits. Floating point makes a guess; integers settle it."""
        self._table(
            what,
            f"""
WITH capped AS (
  SELECT user_id, publisher_index, asked, before,
    least(asked, {terms.cap(multiplier)}) AS capped
  FROM {cells}
),
sums AS (
  SELECT user_id, {terms.own} * sum(wide(capped * {multiplier}) * wide(capped * {multiplier}))
      AS square, sum(wide(capped * {multiplier}) * before) AS cross_term
  FROM capped GROUP BY user_id
),
rooms AS (
  SELECT sums.user_id, square, cross_term, {_wide(limit)} - spent AS room
  FROM sums JOIN {self._name(users)} AS users ON users.user_id = sums.user_id
),
guessed AS (
  SELECT user_id, square, cross_term, room, CASE
    WHEN square + 2 * cross_term <= room THEN {PARTS}
    WHEN room <= 0 THEN 0
    ELSE least({PARTS}, CAST(floor({PARTS} * CAST(room AS DOUBLE) / (CAST(cross_term AS DOUBLE)
      + sqrt(CAST(cross_term AS DOUBLE) * CAST(cross_term AS DOUBLE)
        + CAST(square AS DOUBLE) * CAST(room AS DOUBLE)))) AS BIGINT)) END AS guess
  FROM rooms
),
settled AS (
  SELECT user_id, CASE
    WHEN square + 2 * cross_term <= room THEN {PARTS}
    WHEN room <= 0 THEN 0
    WHEN {_fits("guess + 1")} THEN guess + 1
    WHEN {_fits("guess")} THEN guess
    ELSE guess - 1 END AS parts
  FROM guessed
),
kept AS (
  SELECT capped.user_id, publisher_index, asked, before,
    whole_div(capped * parts, {PARTS}) AS kept
  FROM capped JOIN settled ON settled.user_id = capped.user_id
)
SELECT user_id, publisher_index, asked, kept, kept * {multiplier} AS moved,
  wide(kept * {multiplier}) * (2 * before + {terms.own} * wide(kept * {multiplier})) AS charge
FROM kept""",
        )

    def _paid(self, users: str, kept: str) -> str:
        """Everybody's account after what was kept is charged."""
        return f"""
WITH charges AS (
  SELECT user_id, sum(charge) AS charge FROM {self._name(kept)} GROUP BY user_id
)
SELECT users.user_id, need, spent + coalesce(charge, wide(0)) AS spent
FROM {self._name(users)} AS users LEFT JOIN charges ON charges.user_id = users.user_id"""

    def _what_was_cut(self, terms: Terms, cut_column: int) -> str:
        """A cell for each user of whom something was cut, in the column for that."""
        return f"""
WITH cost_with (slot, cost) AS (VALUES {_values(terms.costs)}),
lost AS (
  SELECT user_id, CAST(sum(asked - kept) AS BIGINT) AS asked
  FROM {self._name("kept")} GROUP BY user_id HAVING sum(asked - kept) > 0
),
earlier AS (
  SELECT past.user_id, sum(wide(past.moved * cost)) AS before
  FROM {self._name("past")} AS past
  JOIN lost ON lost.user_id = past.user_id
  JOIN cost_with ON cost_with.slot = past.slot
  WHERE past.publisher_index = {cut_column}
  GROUP BY past.user_id
)
SELECT lost.user_id, {cut_column} AS publisher_index, asked,
  coalesce(before, wide(0)) AS before
FROM lost LEFT JOIN earlier ON earlier.user_id = lost.user_id"""

    def _write(self, slot: int) -> None:
        self._engine.write_parquet(
            "write cells",
            f"""
SELECT user_id, CAST({slot} AS BIGINT) AS slot, CAST(publisher_index AS BIGINT) AS publisher_index,
  asked, moved
FROM {self._name("kept")}
UNION ALL
SELECT user_id, CAST({slot} AS BIGINT) AS slot, CAST(publisher_index AS BIGINT) AS publisher_index,
  CAST(0 AS BIGINT) AS asked, moved
FROM {self._name("counted")} WHERE moved > 0""",
            self._books.new / CELLS,
        )
        self._engine.write_parquet(
            "write users",
            f"SELECT user_id, {_stored('need')}, {_stored('spent')}"
            f" FROM ({self._paid('paid', 'counted')}) AS after",
            self._books.new / USERS,
        )


def _wide(value: int) -> str:
    """A literal of up to 128 bits."""
    return f"wide('{int(value)}')"


def _values(costs: Sequence[int]) -> str:
    return ", ".join(
        f"(CAST({slot} AS BIGINT), CAST({int(cost)} AS BIGINT))"
        for slot, cost in enumerate(costs, start=1)
    )


def _stored(column: str) -> str:
    """Parquet knows no integers of 128 bits; decimals of 38 digits hold what the filter needs."""
    return f"CAST({column} AS DECIMAL(38, 0)) AS {column}"


def _fits(parts: str) -> str:
    return (
        f"square * wide(({parts}) * ({parts})) + cross_term * wide({2 * PARTS} * ({parts}))"
        f" <= room * wide({PARTS**2})"
    )
