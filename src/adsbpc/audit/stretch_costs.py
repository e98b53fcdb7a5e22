"""What people cost in the rows of one stretch, in SQL of the auditor's own on DuckDB, in exact
integers of 128 bits.

The square of all shifts of a person, || B z ||^2 over some rows, is the sum over columns and over
slots s <= t of G_ts z_t z_s, twice where s < t, with G the products of entries of B summed over
those rows. Tier 0 has the columns of cells, and each column that counts what was cut is a tier of
its own. G and z are >= 0, so what a person costs only grows from slot to slot of a stretch, and so
do the limits. So everybody was within the limit of every slot that allows what they cost at the
stretch's end; they are followed through the slots before those.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from adsbpc.audit.book_files import BookRows
from adsbpc.audit.columns import Columns
from adsbpc.audit.slot_sums import COMING, FIXED
from adsbpc.audit.stretches import Stretch
from adsbpc.engines import Engine, Relation

# How much more than what it costs somebody may be charged for in a long campaign: a part of it, and
# so much of what is rounded up.
DEARER, ROUNDED_UP = 0.02, 2**66


class StretchCosts:
    """`limits` are by slot and tier. What earlier stretches have cost is handed from one to the
    next, and their books too: a renewal asks for what was asked for before."""

    costs: Relation

    def __init__(
        self,
        engine: Engine,
        stretch: Stretch,
        books: BookRows,
        columns: Columns,
        limits: Sequence[Sequence[int]],
        is_long: bool = False,
    ) -> None:
        self._is_long = is_long
        self._engine, self._books, self._columns = engine, books, columns
        self.stretch, self._of_books = stretch, columns.books_places
        self._cuts = len(limits[0]) - 1
        self._of_columns = max(self._of_books, 2 ** (columns.count + self._cuts).bit_length())
        twice = {pair: 1 if pair[0] == pair[1] else 2 for pair in stretch.whole}
        self._weights = engine.numbers(
            "weights",
            {
                "slot": [slot for slot, _ in twice],
                "earlier": [earlier for _, earlier in twice],
                "ended_weight": [times * stretch.ended[pair] for pair, times in twice.items()],
                "whole_weight": [times * stretch.whole[pair] for pair, times in twice.items()],
            },
        )
        self._limits = Relation.of(
            "SELECT * FROM (VALUES "
            + ", ".join(
                f"({slot}, {tier}, {wide(most)})"
                for slot in stretch.slots
                for tier, most in enumerate(limits[slot - 1])
            )
            + ") AS limits (slot, tier, most)",
        )
        self._moves = Relation.of(" UNION ALL ".join([*self._of_cells(), *self._of_cuts()]))

    def _of_cells(self) -> list[str]:
        """Moves of columns, with the weights of their views."""
        parts, cells = [], self._books.cells
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
        return parts

    def _of_cuts(self) -> list[str]:
        return [
            f"SELECT slot, number * {self._of_columns} + {self._columns.count + place} AS cell,"
            f" moved FROM {cut} WHERE slot > 0"
            for place, cut in enumerate(self._books.cuts[: self._cuts])
        ]

    def count(self) -> int:
        ((rows,),) = self._engine.rows("count moves", f"SELECT count(*) FROM {self._moves}")
        return int(rows)

    # ---- a part of the people ------------------------------------------------------------------

    def open_part(self, first: int | None, end: int | None, before: StretchCosts | None) -> None:
        """Count everybody with a number from `first` to before `end`. Makes `costs`: a row for each
        person and tier, with what earlier stretches have `fixed`, what the rows of this one have
        cost that `ended`, what all rows from its first one do, and of that the `past`, in so many
        rows."""
        engine, self._first, self._end, self._before = self._engine, first, end, before
        within = people_within("cell", first, end, self._of_columns)
        self._part = engine.table(
            "part", f"SELECT slot, cell, moved FROM {self._moves} WHERE {within}"
        )
        self._pairs = engine.table("pairs", self._pairs_sql())
        self._terms = Relation.of(self._terms_sql())
        earlier = "" if before is None else f"""
  UNION ALL SELECT number, tier, 0, wide(0), wide(0), wide(0), 0, fixed + ended
  FROM {before.costs}"""  # fmt: skip
        self.costs = engine.table(
            "costs",
            f"""
SELECT number, tier, max(has_rows) AS has_rows, sum(ended) AS ended, sum(whole) AS whole,
  sum(past) AS past, CAST(sum(past_rows) AS BIGINT) AS past_rows, sum(fixed) AS fixed
FROM (
  SELECT number, tier, 1 AS has_rows, ended, whole,
    CASE WHEN slot < {self.stretch.first} THEN whole ELSE wide(0) END AS past,
    CASE WHEN slot < {self.stretch.first} THEN is_row ELSE 0 END AS past_rows, wide(0) AS fixed
  FROM {self._terms} AS terms{earlier}
) AS parts GROUP BY number, tier""",
        )

    def _pairs_sql(self) -> str:
        """Two moves in the same column; of the same slot only if a row stands there twice."""
        return f"""
SELECT later.cell, later.slot, earlier.slot AS earlier, later.moved, earlier.moved AS moved_before
FROM {self._part} AS later
JOIN {self._part} AS earlier ON earlier.cell = later.cell AND (earlier.slot < later.slot
  OR (earlier.slot = later.slot AND earlier.rowid <> later.rowid))"""

    def _terms_sql(self) -> str:
        """Terms of the costs of a part: products of two moves in the same column."""
        place = f"CAST(cell % {self._of_columns} AS INTEGER)"
        return f"""
SELECT whole_div(cell, {self._of_columns}) AS number,
  greatest({place} - {self._columns.count - 1}, 0) AS tier, slot, is_row,
  product * ended_weight AS ended, product * whole_weight AS whole
FROM (
  SELECT cell, part.slot, 1 AS is_row, wide(moved) * wide(moved) AS product, ended_weight,
    whole_weight
  FROM {self._part} AS part
  JOIN {self._weights} AS weights ON weights.slot = part.slot AND weights.earlier = part.slot
  UNION ALL
  SELECT cell, pairs.slot, 0, wide(moved) * wide(moved_before), ended_weight, whole_weight
  FROM {self._pairs} AS pairs
  JOIN {self._weights} AS weights
    ON weights.slot = pairs.slot AND weights.earlier = pairs.earlier
) AS products"""

    def repeated(self) -> int:
        ((found,),) = self._engine.rows(
            "repeated", f"SELECT count(*) FROM {self._pairs} WHERE slot = earlier"
        )
        return int(found)

    def followed(self) -> int:
        """People who end with more than the stretch's first slot allows."""
        ((found,),) = self._engine.rows(
            "followed people",
            f"""
SELECT count(DISTINCT number) FROM {self.costs} AS costs JOIN {self._limits} AS limits
  ON limits.slot = {self.stretch.first} AND limits.tier = costs.tier
WHERE fixed + whole > most""",
        )
        return int(found)

    def faults(self) -> dict[str, str]:
        """Queries that find nothing if the books of the part are as they should be."""
        # Only slots that allow less than the person costs in the end.
        below_the_end = f"""
  JOIN {self._limits} AS limits ON limits.slot = greatest(moments.slot, {self.stretch.first})
    AND limits.tier = moments.tier AND limits.most < costs.fixed + costs.whole"""
        found = {
            "above": f"""
SELECT number, so_far.tier, so_far.slot, cost, most
FROM ({self._so_far(below_the_end)}) AS so_far JOIN {self._limits} AS limits
  ON limits.slot = so_far.slot AND limits.tier = so_far.tier WHERE cost > most""",
            "other cut": self._other_cut(),
        }
        return found if self._before is None else found | {"other past": self._other_past()}

    def _so_far(self, narrowed: str) -> str:
        """What people had cost after each of their slots, by tier."""
        first = self.stretch.first
        return f"""
SELECT number, tier, slot, sum(cost) OVER so_far AS cost FROM (
  SELECT moments.number, moments.tier, greatest(moments.slot, {first}) AS slot,
    sum(moments.cost) AS cost
  FROM (
    SELECT number, tier, slot, whole AS cost FROM {self._terms} AS terms
    UNION ALL
    SELECT number, tier, {first} AS slot, fixed FROM {self.costs} AS costs WHERE fixed > 0
  ) AS moments
  JOIN {self.costs} AS costs ON costs.number = moments.number AND costs.tier = moments.tier
  {narrowed}
  GROUP BY moments.number, moments.tier, greatest(moments.slot, {first})
) AS added WINDOW so_far AS (PARTITION BY number, tier ORDER BY slot)"""

    def rounded_up(self, tier: int, cost: str, rows: str) -> str:
        """What is said at most of a past that costs so much: it was let in again in parts, whose
        last unit was charged and dropped. Norms add up at most."""
        own = self.stretch.multipliers
        cells, past = own[: self._columns.cells], range(1, self.stretch.first)
        unit = self._columns.squared(1, substitution=False) if tier == 0 else 1
        most = max(cells) if tier == 0 else own[self._columns.cells + tier - 1]
        longest = max((self.stretch.whole[slot, slot] for slot in past), default=0)
        one = most * sqrt(unit * longest)
        return f"(pow(sqrt(CAST({cost} AS DOUBLE)) + {rows} * {one!r}, 2) * (1 + 1e-9) + 1)"

    def _other_cut(self) -> str:
        """Charges for what was cut against what it costs: exactly, but for the past of a renewal,
        which is charged in one sum that was rounded up."""
        first, told, room = self.stretch.first, [], []
        for tier, cut in enumerate(self._books.cuts[: self._cuts], start=1):
            told.append(
                f"SELECT {tier} AS tier, slot, number, wide_of(charge_high, charge_low) AS charge"
                f" FROM {cut} WHERE {people_within('number', self._first, self._end, 1)}"
            )
            at_most = self.rounded_up(tier, "coalesce(cost, wide(0))", str(first - 1))
            room.append(f"WHEN coalesce(found.tier, told.tier) = {tier} THEN {at_most}")
        past = "" if first == 1 else f"""
  UNION ALL SELECT number, tier, {FIXED} AS slot, fixed FROM {self.costs} AS costs
  WHERE tier > 0 AND fixed > 0"""  # fmt: skip
        return f"""
SELECT coalesce(found.number, told.number), coalesce(found.slot, told.slot),
  coalesce(charge, wide(0)), coalesce(cost, wide(0))
FROM (
  SELECT number, tier, CASE WHEN slot < {first} AND slot > 0 THEN {COMING} ELSE slot END AS slot,
    sum(cost) AS cost
  FROM (
    SELECT number, tier, slot, whole AS cost FROM {self._terms} AS terms WHERE tier > 0{past}
  ) AS terms
  GROUP BY number, tier, CASE WHEN slot < {first} AND slot > 0 THEN {COMING} ELSE slot END
) AS found
FULL JOIN (
  SELECT * FROM ({" UNION ALL ".join(told)}) AS rows
  WHERE charge <> wide(0) OR slot >= {first}
) AS told ON told.number = found.number AND told.slot = found.slot AND told.tier = found.tier
WHERE CASE WHEN coalesce(found.slot, told.slot) = {COMING}
  THEN coalesce(charge, wide(0)) < coalesce(cost, wide(0))
    OR coalesce(charge, wide(0)) > CASE {" ".join(room)} END
  ELSE {self.is_other("coalesce(charge, wide(-1))", "coalesce(cost, wide(-1))")} END"""

    def is_other(self, charge: str, cost: str) -> str:
        """Whether a charge is not what the rows cost. Running sums of a long campaign charge no
        less than that, and hardly more."""
        if not self._is_long:
            return f"{charge} <> {cost}"
        most = f"CAST({cost} AS DOUBLE) * {1 + DEARER} + {wide(ROUNDED_UP)}"
        return f"({charge} < {cost} OR CAST({charge} AS DOUBLE) > {most})"

    def _other_past(self) -> str:
        """Rows that were let in again for something else than what was asked for before."""
        assert self._before is not None
        within = people_within("cell", self._first, self._end, self._of_books)
        now, before = (
            f"(SELECT slot, cell, asked FROM {books.cells}"
            f" WHERE {within} AND slot < {self.stretch.first})"
            for books in (self._books, self._before._books)
        )
        return f"""
SELECT coalesce(now.cell, before.cell), coalesce(now.slot, before.slot)
FROM {now} AS now FULL JOIN {before} AS before
  ON before.slot = now.slot AND before.cell = now.cell
WHERE now.asked IS DISTINCT FROM before.asked"""

    # ---- some of them --------------------------------------------------------------------------

    def rows_of(self, chosen: Relation) -> list[tuple[int, int]]:
        """How many moves each of them has."""
        return self._engine.rows(
            "rows of chosen people",
            f"SELECT number, count(*) FROM {chosen} AS chosen JOIN {self._part}"
            f" ON whole_div(cell, {self._of_columns}) = number GROUP BY number",
        )

    def moves_of(self, chosen: Relation) -> dict[int, list[tuple[int, int, int]]]:
        """Their moves, by number: (slot, column, moved)."""
        found: dict[int, list[tuple[int, int, int]]] = {}
        for number, slot, place, moved in self._engine.rows(
            "moves of chosen people",
            f"SELECT number, slot, cell % {self._of_columns}, moved FROM {self._part}"
            f" JOIN {chosen} AS chosen ON chosen.number = whole_div(cell, {self._of_columns})",
        ):
            found.setdefault(number, []).append((slot, place, moved))
        return found

    def costs_of(self, chosen: Relation) -> dict[int, dict[tuple[int, int], int]]:
        """What they had cost after slots, by number: (tier, slot) to cost."""
        found: dict[int, dict[tuple[int, int], int]] = {}
        only = f"JOIN {chosen} AS chosen ON chosen.number = moments.number"
        for number, tier, slot, cost in self._engine.rows(
            "costs of chosen people", self._so_far(only)
        ):
            found.setdefault(number, {})[tier, slot] = int(cost)
        return found


def people_within(column: str, first: int | None, end: int | None, factor: int) -> str:
    """Rows of the people from `first` to before `end`; without a first one, also those that are
    nobody's."""
    low = f"{column} >= {first * factor}" if first is not None else ""
    high = f"{column} < {end * factor}" if end is not None else ""
    if first is None and end is not None:
        high = f"({high} OR {column} IS NULL)"
    return " AND ".join(filter(None, (low, high))) or "1 = 1"


def wide(value: int) -> str:
    return f"wide('{value}')"
