"""The books of one slot, row by row: what rows must be, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adsbpc.audit.book_files import BookRows
from adsbpc.audit.columns import Columns
from adsbpc.audit.promised_plan import CONVERSION
from adsbpc.audit.stretches import ReleasedRow
from adsbpc.engines import Engine, Relation

# Where a renewal keeps what released rows have cost in a column of what was cut, and coming ones.
FIXED, COMING = 0, -1


@dataclass(frozen=True)
class SlotSums:
    """Sums of `moved` by slot and place, cells first, then the columns of what was cut; and rows
    that must not be there."""

    moved: list[list[int]]
    rows: int
    faults: dict[str, int]


class SlotAudit:
    """Of the books of one slot, which a renewal makes about all slots so far."""

    def __init__(
        self, engine: Engine, books: BookRows, row: ReleasedRow, columns: Columns, cuts: int
    ) -> None:
        self._engine, self._books, self._row = engine, books, row
        self._cells, self._cuts, self._places = columns.cells, cuts, columns.books_places

    def sums(self) -> SlotSums:
        slots, cells = self._row.slots, self._cells
        joined, multiplier = self._multiplied()
        place = f"cell % {self._places}"
        found = self._sorted_out(
            f"{self._books.cells} AS cells{joined}", place, multiplier,
            ("slot", "cell", "asked", "moved"),
            f"""WHEN {place} NOT BETWEEN 0 AND {cells - 1} OR cell < 0
      THEN 'outside the public list'
    WHEN wide(moved) > wide(asked) * {multiplier} THEN 'above what was asked'""",
        )  # fmt: skip
        for number, cut in enumerate(self._books.cuts):
            own = str(self._row.multipliers[cells + number]) if number < self._cuts else "1"
            more = "" if number < self._cuts else "WHEN 1 = 1 THEN 'of a column that is not there'"
            found += self._sorted_out(
                f"{cut} AS counted", str(cells + number), own, ("slot", "number", "moved"), more
            )
        moved, faults = [[0] * (cells + self._cuts) for _ in slots], dict[str, int]()
        for slot, place_found, fault, count, total in found:
            if fault is not None:
                faults[fault] = faults.get(fault, 0) + count
            elif slot >= slots[0]:
                moved[slot - slots[0]][place_found] += int(total)
        beyond = self._cut_beyond(joined, multiplier)
        if beyond:
            faults["counted as cut, above what was cut"] = beyond
        return SlotSums(moved, sum(row[3] for row in found), faults)

    def _multiplied(self) -> tuple[str, str]:
        """What joins cells to their multipliers, and the multiplier."""
        of_cells = self._row.multipliers[: self._cells]
        if len(set(of_cells)) == 1:
            return "", str(of_cells[0])
        table = self._engine.numbers(
            "multipliers", {"place": list(range(self._cells)), "multiplier": list(of_cells)}
        )
        joined = f" LEFT JOIN {table} AS own ON own.place = cell % {self._places}"
        return joined, "coalesce(multiplier, 1)"

    def _sorted_out(
        self, rows: str, place: str, multiplier: str, columns: Sequence[str], more: str
    ) -> list[tuple[Any, ...]]:
        """Rows by slot and place and by what is wrong with them: how many, and their sum."""
        empty = " OR ".join(f"{name} IS NULL" for name in columns)
        slots = self._row.slots
        other = f"slot NOT BETWEEN {slots[0]} AND {slots[-1]}"
        if self._row.is_renewal and "number" in columns:
            other = f"({other} AND NOT (slot IN ({FIXED}, {COMING}) AND moved = 0))"
        return self._engine.rows(
            "sums of a slot",
            f"""
SELECT slot, place, fault, count(*), sum(wide(moved)) FROM (
  SELECT slot, {place} AS place, moved, CASE
    WHEN {empty} THEN 'empty'
    WHEN {other} THEN 'of another slot'
    WHEN moved < 0 THEN 'below 0'
    WHEN moved % {multiplier} <> 0 THEN 'no multiple of the multiplier'
    {more} END AS fault
  FROM {rows}) AS judged GROUP BY slot, place, fault""",
        )

    def _cut_beyond(self, joined: str, multiplier: str) -> int:
        """People of whom more was counted as cut on a slot than was asked for and not let in."""
        of_cuts = self._row.multipliers[self._cells :]
        counted = " UNION ALL ".join(
            f"SELECT slot, number, whole_div(moved, {own}) AS units FROM {cut} WHERE slot > 0"
            for own, cut in zip(of_cuts, self._books.cuts, strict=False)
        )
        number = f"whole_div(cell, {self._places})"
        ((beyond,),) = self._engine.rows(
            "cut of people",
            f"""
WITH counted AS (
  SELECT slot, number, sum(units) AS units FROM ({counted}) AS columns GROUP BY slot, number
),
cut_of AS (
  SELECT slot, {number} AS number, sum(asked - whole_div(moved, {multiplier})) AS missing
  FROM {self._books.cells} AS cells{joined}
  WHERE {number} IN (SELECT number FROM counted) GROUP BY slot, {number}
)
SELECT count(*) FROM counted
LEFT JOIN cut_of ON cut_of.number = counted.number AND cut_of.slot = counted.slot
WHERE units > coalesce(missing, 0)""",
        )
        return int(beyond)


def counted_once(engine: Engine, columns: Columns, cells: Relation) -> tuple[int, dict[str, int]]:
    """How many rows of all slots there are, and how many do not count somebody once. Whoever is in
    a sum is in the coarser one from that slot on, at the latest."""
    coarser, places = columns.coarser(), columns.books_places
    above = engine.numbers(
        "coarser", {"place": [fine for fine, _ in coarser], "above": [up for _, up in coarser]}
    )
    ((rows, other, twice, alone),) = engine.rows(
        "people counted once",
        f"""
SELECT count(*), count(*) FILTER (WHERE asked <> {CONVERSION}), count(*) - count(DISTINCT cell),
  (SELECT count(*) FROM {cells} AS fine
   JOIN {above} AS above ON above.place = fine.cell % {places}
   LEFT JOIN (SELECT cell, min(slot) AS slot FROM {cells} GROUP BY cell) AS coarse
     ON coarse.cell = fine.cell - above.place + above.above
   WHERE coarse.slot IS NULL OR coarse.slot > fine.slot)
FROM {cells}""",
    )
    return rows, {
        "rows that are not one person": other,
        "rows for somebody who was counted before": twice,
        "rows for somebody who is missing from the sum above": alone,
    }


def in_two_arms(
    engine: Engine, columns: Columns, arms_list: int, cells: Relation
) -> tuple[int, int]:
    """How many people there are, and how many of them have rows in more than one arm."""
    places, of_books = columns.in_list(arms_list), columns.books_places
    arms = engine.numbers(
        "arms", {"place": [place for place, _ in places], "arm": [arm for _, arm in places]}
    )
    ((people, several),) = engine.rows(
        "people in two arms",
        f"""
SELECT count(*), count(*) FILTER (WHERE arms > 1) FROM (
  SELECT whole_div(cell, {of_books}) AS number, count(DISTINCT arms.arm) AS arms
  FROM {cells} AS cells JOIN {arms} AS arms ON arms.place = cell % {of_books}
  GROUP BY whole_div(cell, {of_books})) AS by_person""",
    )
    return people, several
