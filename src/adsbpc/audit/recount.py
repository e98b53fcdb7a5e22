"""The books added up again, in SQL of the auditor's own on DuckDB: exact integers of 128 bits.

Costs: the square of all shifts of a person, || B z ||^2, is the sum over columns and over slots
s <= t of G_ts z_t z_s, twice where s < t, with G = B^T B over all rows. G and z are >= 0, so what
a person costs only grows, and so do the limits. So everybody was within the limit of every slot
that allows what they cost in the end; they are followed through the slots before those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from adsbpc.audit.book_files import BookRows
from adsbpc.audit.columns import Columns
from adsbpc.audit.promised_plan import CONVERSION, Rows, gram
from adsbpc.engines import Engine, Relation

# People are gone through in parts of about this many rows, so that memory stays low.
ROWS_OF_A_PART = 6_000_000
# Of each part so many people are counted again in plain Python: the largest, and at random.
LARGEST, AT_RANDOM = 300, 300
# But no more than so many of their moves times rows of the strategy.
_PLAIN_STEPS = 4_000_000


@dataclass(frozen=True)
class SlotSums:
    """Sums of `moved` by place, the last one of what was cut, and rows that must not be there."""

    moved: list[int]
    rows: int
    newcomers: int
    faults: dict[str, int]


@dataclass(frozen=True)
class PeopleRange:
    """People with numbers in a range, and how many were followed through slots; `largest` is what
    the largest of them cost. `faults` counts what must not be, with a first example of each."""

    people: int
    followed: int
    largest: int
    faults: dict[str, int]
    examples: dict[str, tuple[Any, ...]]


class Recount:
    """Places of cells are 0, 1, ...; the one after them stands for what was cut. So it is with the
    columns that costs are of, which are sums of cells."""

    def __init__(
        self,
        engine: Engine,
        books: BookRows,
        rows: Rows,
        columns: Columns,
        limits: Sequence[int],
    ) -> None:
        self._engine, self.books, self._columns = engine, books, columns
        self._cut_place, self._cut_column = columns.cells, columns.count
        self._of_books = columns.books_places
        self._of_columns = max(self._of_books, 2 ** (columns.count + 1).bit_length())
        self._first_limit = limits[0]
        weights = {
            (slot, earlier): cost if slot == earlier else 2 * cost
            for (slot, earlier), cost in gram(rows).items()
        }
        self._weights = engine.numbers(
            "weights",
            {
                "slot": [slot for slot, _ in weights],
                "earlier": [earlier for _, earlier in weights],
                "weight": list(weights.values()),
            },
        )
        self._limits = Relation.of(
            "SELECT * FROM (VALUES "
            + ", ".join(f"({slot}, {_wide(most)})" for slot, most in enumerate(limits, start=1))
            + ") AS limits (slot, most)",
        )
        self._moves = Relation.of(
            f"{self._in_columns(books.cells)} UNION ALL SELECT slot,"
            f" number * {self._of_columns} + {self._cut_column} AS cell, moved FROM {books.cut}",
        )
        self._most_steps = max(1, _PLAIN_STEPS // len(rows))

    def _in_columns(self, cells: Relation) -> str:
        """Moves of columns, with the weights of their views."""
        parts = []
        for first, summed, weight in self._columns.views:
            number = f"whole_div(cell, {self._of_books}) * {self._of_columns}"
            column = f"{number} + {first} + whole_div(cell % {self._of_books}, {summed})"
            if summed == 1:
                # Row by row, so that one that stands there twice is seen.
                parts.append(
                    f"SELECT slot, {column} AS cell, {weight} * moved AS moved FROM {cells}"
                )
            else:
                parts.append(
                    f"SELECT slot, {column} AS cell, CAST({weight} * sum(moved) AS BIGINT) AS moved"
                    f" FROM {cells} GROUP BY slot, {column}"
                )
        return " UNION ALL ".join(parts)

    # ---- slot by slot --------------------------------------------------------------------------

    def slot_sums(
        self, books: BookRows, slot: int, multiplier: int, cut_multiplier: int
    ) -> SlotSums:
        """Of the books of one slot: what rows must be, sums by place."""
        place = f"cell % {self._of_books}"
        cells = self._sorted_out(
            books.cells, place, slot, multiplier, ("slot", "cell", "asked", "moved"),
            f"""WHEN {place} NOT BETWEEN 0 AND {self._cut_place - 1} OR cell < 0
      THEN 'outside the public list'
    WHEN wide(moved) > wide(asked) * {multiplier} THEN 'above what was asked'""",
        )  # fmt: skip
        cut = self._sorted_out(
            books.cut, str(self._cut_place), slot, cut_multiplier, ("slot", "number", "moved"), ""
        )
        moved, faults = [0] * (self._cut_place + 1), dict[str, int]()
        for place_found, fault, count, total in (*cells, *cut):
            if fault is None:
                moved[place_found] += int(total)
            else:
                faults[fault] = faults.get(fault, 0) + count
        beyond = self._cut_beyond(books, multiplier, cut_multiplier)
        if beyond:
            faults["counted as cut, above what was cut"] = beyond
        ((newcomers,),) = self._engine.rows("newcomers", f"SELECT count(*) FROM {books.names}")
        return SlotSums(moved, sum(row[2] for row in (*cells, *cut)), newcomers, faults)

    def _sorted_out(
        self,
        rows: Relation,
        place: str,
        slot: int,
        multiplier: int,
        columns: Sequence[str],
        more: str,
    ) -> list[tuple[Any, ...]]:
        """Rows by place and by what is wrong with them: how many, and their sum."""
        empty = " OR ".join(f"{name} IS NULL" for name in columns)
        return self._engine.rows(
            "sums of a slot",
            f"""
SELECT place, fault, count(*), sum(wide(moved)) FROM (
  SELECT {place} AS place, moved, CASE
    WHEN {empty} THEN 'empty'
    WHEN slot <> {slot} THEN 'of another slot'
    WHEN moved < 0 THEN 'below 0'
    WHEN moved % {multiplier} <> 0 THEN 'no multiple of the multiplier'
    {more} END AS fault
  FROM {rows}) AS judged GROUP BY place, fault""",
        )

    def _cut_beyond(self, books: BookRows, multiplier: int, cut_multiplier: int) -> int:
        """People of whom more was counted as cut than was asked for and not let in."""
        ((beyond,),) = self._engine.rows(
            "cut of people",
            f"""
WITH cut_of AS (
  SELECT whole_div(cell, {self._of_books}) AS number,
    sum(wide(asked) * {multiplier} - moved) AS missing
  FROM {books.cells}
  WHERE whole_div(cell, {self._of_books}) IN (SELECT number FROM {books.cut}) GROUP BY number
)
SELECT count(*) FROM {books.cut} AS counted LEFT JOIN cut_of ON cut_of.number = counted.number
WHERE wide(moved) * {multiplier} > coalesce(missing, wide(0)) * {cut_multiplier}""",
        )
        return int(beyond)

    def counted_once(self) -> tuple[int, dict[str, int]]:
        """How many rows there are, and how many do not count somebody once. Whoever is in a sum is
        in the coarser one from that slot on, at the latest."""
        coarser = self._columns.coarser()
        above = self._engine.numbers(
            "coarser", {"place": [fine for fine, _ in coarser], "above": [up for _, up in coarser]}
        )
        cells, of_books = self.books.cells, self._of_books
        ((rows, other, twice, alone),) = self._engine.rows(
            "people counted once",
            f"""
SELECT count(*), count(*) FILTER (WHERE asked <> {CONVERSION}), count(*) - count(DISTINCT cell),
  (SELECT count(*) FROM {cells} AS fine
   JOIN {above} AS above ON above.place = fine.cell % {of_books}
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

    # ---- person by person ----------------------------------------------------------------------

    def ranges(self) -> list[tuple[int | None, int | None]]:
        """Ranges of numbers that hold everybody, the outer ones without an end."""
        ((least, most),) = self._engine.rows(
            "numbers", f"SELECT min(number), max(number) FROM {self.books.names}"
        )
        ((rows,),) = self._engine.rows("count moves", f"SELECT count(*) FROM {self._moves}")
        if least is None:
            return [(None, None)]
        count = -(-max(rows, 1) // ROWS_OF_A_PART)
        edges = [least + (most + 1 - least) * k // count for k in range(1, count)]
        return list(zip([None, *edges], [*edges, None], strict=True))

    def part(self, first: int | None, end: int | None) -> PeopleRange:
        """Count everybody with a number from `first` to before `end`."""
        engine = self._engine
        within = _within("cell", first, end, self._of_columns)
        self._part = engine.table(
            "part", f"SELECT slot, cell, moved FROM {self._moves} WHERE {within}"
        )
        self._pairs = engine.table("pairs", self._pairs_sql())
        self._terms = Relation.of(self._terms_sql())
        self._people = engine.table("people", self._people_sql(first, end))
        ((people, followed, largest, repeated),) = engine.rows(
            "people",
            f"""
SELECT count(*), count(*) FILTER (WHERE kept + cut > {_wide(self._first_limit)}),
  coalesce(max(kept + cut), wide(0)), (SELECT count(*) FROM {self._pairs} WHERE slot = earlier)
FROM {self._people}""",
        )
        faults, examples = {"repeated": repeated} if repeated else {}, {}
        for fault, sql in self._faults(first, end).items():
            ((count,),) = engine.rows(fault, f"SELECT count(*) FROM ({sql}) AS found")
            if count:
                faults[fault] = count
                examples[fault] = engine.rows(fault, f"{sql} ORDER BY 1 LIMIT 1")[0]
        return PeopleRange(people, followed, int(largest), faults, examples)

    def _faults(self, first: int | None, end: int | None) -> dict[str, str]:
        """Queries that find nothing if the books of the part are as they should be."""
        # Only slots that allow less than the person costs in the end.
        below_the_end = f"""
      JOIN {self._people} AS people ON people.number = whole_div(cell, {self._of_columns})
      JOIN {self._limits} AS limits
        ON limits.slot = terms.slot AND limits.most < people.kept + people.cut"""
        return {
            "nameless": f"SELECT number FROM {self._people} WHERE named <> 1",
            "without rows": f"SELECT number FROM {self._people} WHERE has_cells = 0",
            "without account": f"SELECT number FROM {self._people} WHERE accounts <> 1",
            "other account": f"SELECT number, spent, kept FROM {self._people}"
            " WHERE accounts = 1 AND spent <> kept",
            "other cut": f"""
SELECT coalesce(found.number, told.number), coalesce(found.slot, told.slot),
  coalesce(charge, wide(0)), coalesce(cost, wide(0))
FROM (
  SELECT whole_div(cell, {self._of_columns}) AS number, slot, sum(cost) AS cost FROM {self._terms}
  WHERE cell % {self._of_columns} = {self._cut_column} GROUP BY number, slot
) AS found
FULL JOIN (
  SELECT slot, number, wide_of(charge_high, charge_low) AS charge
  FROM {self.books.cut} WHERE {_within("number", first, end, 1)}
) AS told
  ON told.number = found.number AND told.slot = found.slot
WHERE coalesce(charge, wide(-1)) <> coalesce(cost, wide(-1))""",
            "above": f"""
SELECT number, so_far.slot, kept + cut, most FROM ({self._so_far(below_the_end)}) AS so_far
JOIN {self._limits} AS limits ON limits.slot = so_far.slot WHERE kept + cut > most""",
        }

    def _pairs_sql(self) -> str:
        """Two moves in the same column; of the same slot only if a row stands there twice."""
        return f"""
SELECT later.cell, later.slot, earlier.slot AS earlier, later.moved, earlier.moved AS moved_before
FROM {self._part} AS later
JOIN {self._part} AS earlier ON earlier.cell = later.cell AND (earlier.slot < later.slot
  OR (earlier.slot = later.slot AND earlier.rowid <> later.rowid))"""

    def _terms_sql(self) -> str:
        """Terms of the costs of a part: products of two moves in the same column."""
        return f"""
SELECT cell, part.slot, wide(moved) * wide(moved) * weight AS cost FROM {self._part} AS part
JOIN {self._weights} AS weights ON weights.slot = part.slot AND weights.earlier = part.slot
UNION ALL
SELECT cell, pairs.slot, wide(moved) * wide(moved_before) * weight AS cost
FROM {self._pairs} AS pairs
JOIN {self._weights} AS weights ON weights.slot = pairs.slot AND weights.earlier = pairs.earlier"""

    def _people_sql(self, first: int | None, end: int | None) -> str:
        """A row for each number that names, moves or accounts have."""
        within = _within("number", first, end, 1)
        return f"""
SELECT number, sum(named) AS named, max(has_cells) AS has_cells, sum(accounts) AS accounts,
  sum(kept) AS kept, sum(cut) AS cut, sum(spent) AS spent
FROM (
  SELECT number, 1 AS named, 0 AS has_cells, 0 AS accounts, wide(0) AS kept, wide(0) AS cut,
    wide(0) AS spent
  FROM {self.books.names} WHERE {within}
  UNION ALL
  SELECT number, 0, 0, 1, wide(0), wide(0), wide_of(spent_high, spent_low)
  FROM {self.books.users} WHERE {within}
  UNION ALL
  SELECT number, 0, 1, 0, kept, cut, wide(0) FROM ({self._added("number")}) AS added
) AS all_of_them GROUP BY number"""

    def _added(self, keys: str, more: str = "") -> str:
        """What was let in and what was counted of the cut cost, added up by keys; `more` joins
        what the terms are narrowed down by."""
        return f"""
  SELECT {keys}, CASE WHEN is_cut THEN wide(0) ELSE cost END AS kept,
    CASE WHEN is_cut THEN cost ELSE wide(0) END AS cut
  FROM (
    SELECT {keys}, is_cut, sum(cost) AS cost FROM (
      SELECT whole_div(cell, {self._of_columns}) AS number,
        cell % {self._of_columns} = {self._cut_column} AS is_cut, terms.slot, cost
      FROM {self._terms} AS terms {more}
    ) AS placed GROUP BY {keys}, is_cut
  ) AS summed"""

    def _so_far(self, more: str) -> str:
        """What people had cost after each of their slots."""
        return f"""
SELECT number, slot, sum(kept) OVER so_far AS kept, sum(cut) OVER so_far AS cut
FROM (
  SELECT number, slot, sum(kept) AS kept, sum(cut) AS cut
  FROM ({self._added("number, slot", more)}) AS parts GROUP BY number, slot
) AS added WINDOW so_far AS (PARTITION BY number ORDER BY slot)"""

    def chosen(self) -> Iterator[tuple[list[tuple[int, int, int]], dict[int, tuple[int, int]]]]:
        """Of the last part, the largest people and some at random: their moves (slot, place,
        moved), and what SQL found that they had cost after each slot."""
        by_chance = f"fingerprint(number, '{uuid4().hex}')"
        chosen: dict[int, None] = {}
        for by, most in (("kept + cut DESC", LARGEST), (by_chance, AT_RANDOM)):
            found = self._engine.rows(
                "chosen people",
                f"""
SELECT number, count(*) FROM (
  SELECT number, kept, cut FROM {self._people} ORDER BY {by} LIMIT {most}
) AS picked
JOIN {self._part} ON whole_div(cell, {self._of_columns}) = number
GROUP BY number, kept, cut ORDER BY {by}""",
            )
            steps = 0
            for number, moves in found:
                steps += moves
                if steps <= self._most_steps or steps == moves:
                    chosen[number] = None
        picked = self._engine.numbers("chosen", {"number": list(chosen)})
        only_chosen = (
            f" JOIN {picked} AS chosen ON chosen.number = whole_div(cell, {self._of_columns})"
        )
        costs: dict[int, dict[int, tuple[int, int]]] = {number: {} for number in chosen}
        for number, slot, kept, cut in self._engine.rows(
            "costs of chosen people", self._so_far(only_chosen)
        ):
            costs[number][slot] = (int(kept), int(cut))
        moves_of: dict[int, list[tuple[int, int, int]]] = {number: [] for number in chosen}
        for number, slot, place, moved in self._engine.rows(
            "moves of chosen people",
            f"SELECT number, slot, cell % {self._of_columns}, moved FROM {self._part}{only_chosen}",
        ):
            moves_of[number].append((slot, place, moved))
        for number in chosen:
            yield moves_of[number], costs[number]


def _within(column: str, first: int | None, end: int | None, factor: int) -> str:
    """Rows of the people from `first` to before `end`; without a first one, also those that are
    nobody's."""
    low = f"{column} >= {first * factor}" if first is not None else ""
    high = f"{column} < {end * factor}" if end is not None else ""
    if first is None and end is not None:
        high = f"({high} OR {column} IS NULL)"
    return " AND ".join(filter(None, (low, high))) or "1 = 1"


def _wide(value: int) -> str:
    return f"wide('{value}')"
