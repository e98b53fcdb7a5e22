"""`privacy.filter.admit` in SQL: texts over one slot's cells and the books of everybody in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from adsbpc.contributions.filter_sql import column_of, slot_values, whole, with_parts
from adsbpc.contributions.interface import LARGEST_SIZED
from adsbpc.engines import Relation
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import PARTS, Terms


def columns_sql(
    layout: Layout, places: int, rows: Mapping[str, Relation], costs: Sequence[int]
) -> Iterator[str]:
    """For every view, the columns of those who are in the slot: what they ask for in each, and what
    earlier slots add to its cost."""
    for view in layout.views:
        now = str(rows["asked"])
        asked = f"least(past.asked, {LARGEST_SIZED})" if "sizes" in rows else "past.asked"
        if view.stride > 1:
            now = f"""(
  SELECT {column_of("cell", view, places)} AS cell, CAST(sum(asked) AS BIGINT) AS asked
  FROM {now} AS cells GROUP BY {column_of("cell", view, places)})"""
        yield f"""
SELECT now.cell AS place, whole_div(now.cell, {places}) AS number, asked,
  {view.depth} AS depth, CAST({view.weight**2} AS BIGINT) AS squared_weight,
  coalesce(asked_before, wide(0)) AS asked_before, coalesce(before, wide(0)) AS before
FROM {now} AS now LEFT JOIN (
  SELECT now.cell, sum(wide({asked} * cost)) AS asked_before,
    sum(wide(past.moved * cost)) AS before
  FROM {rows["past"]} AS past
  JOIN {now} AS now ON now.cell = {column_of("past.cell", view, places)}
  JOIN (VALUES {slot_values(costs)}) AS cost_with (slot, cost) ON cost_with.slot = past.slot
  GROUP BY now.cell
) AS earlier ON earlier.cell = now.cell"""


def weight_of(layout: Layout) -> list[str]:
    """The factor of a column's squares, unless it is 1 for all of them."""
    return [] if [view.weight for view in layout.views] == [1] else ["squared_weight"]


@dataclass(frozen=True)
class AdmissionSql:
    """`rows` are the relations that the steps before have made, by name; `growth` joins people with
    the factors of the pace, if there is one."""

    terms: Terms
    layout: Layout
    places: int
    rows: Mapping[str, Relation]
    growth: str

    def of_cells(self, cell: str) -> tuple[str, str, str]:
        """What joins rows with a cell to its multiplier, the multiplier, and the cap."""
        if not self.terms.multipliers:
            return "", str(self.terms.multiplier), str(self.terms.cap(self.terms.multiplier))
        joined = f" JOIN {self.rows['weighed']} AS weighed"
        return f"{joined} ON weighed.cell_index = {cell} % {self.places}", "multiplier", "cap"

    def _above(self) -> str:
        """By column of every view, how much is asked for in cells above their cap: hardly anybody
        has such a cell, so that columns hold what was asked for."""
        joined, _, cap = self.of_cells("cells.cell")
        return "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {column_of('cell', view, self.places)} AS place,"
            f" CAST(sum(asked - {cap}) AS BIGINT) AS excess FROM {self.rows['asked']} AS cells"
            f"{joined} WHERE asked > {cap} GROUP BY {column_of('cell', view, self.places)}"
            for view in self.layout.views
        )

    def judged(self) -> str:
        """How many parts of each user's cells fit, and what they cost if all do."""
        terms = self.terms
        people = "number, own, across, seen, fixed, spent, square, cross_term, excess"
        moved = " * ".join([*weight_of(self.layout), "moved"])
        return f"""
WITH capped AS ({self._capped()}),
sums AS (
  SELECT number, {terms.own} * sum({moved} * moved) AS square,
    sum({moved} * before) AS cross_term, max(excess) AS excess
  FROM capped GROUP BY number
),
rooms AS (
  SELECT sums.number, own, across, seen, fixed, spent, square, cross_term, excess,
    {whole(terms.kept_limit)} - spent AS room
  FROM sums JOIN {self.rows["active"]} AS active ON active.number = sums.number
),
paced AS (SELECT * FROM rooms{self.growth})
SELECT number, own, across, seen, fixed, spent, square + 2 * cross_term AS charge,
  CASE WHEN excess IS NULL THEN 0 ELSE 1 END AS is_capped, parts
FROM ({with_parts("paced", people, terms.pace)}) AS judged"""

    def _capped(self) -> str:
        """Columns with what would be moved of them, and what is above caps, if anything is."""
        joined, multiplier, cap = self.of_cells("columns.place")
        if [view.stride for view in self.layout.views] == [1]:
            # Each column is a cell.
            return f"""
  SELECT number, squared_weight, before, CASE WHEN asked > {cap} THEN asked - {cap} END AS excess,
    wide(least(asked, {cap}) * {multiplier}) AS moved
  FROM {self.rows["columns"]} AS columns{joined}"""
        return f"""
  SELECT number, squared_weight, before, excess,
    wide((asked - coalesce(excess, 0)) * {multiplier}) AS moved
  FROM {self.rows["columns"]} AS columns{joined} LEFT JOIN ({self._above()}) AS above
    ON above.depth = columns.depth AND above.place = columns.place"""

    def short(self) -> str:
        """Cells of the few users of whom not everything is kept."""
        joined, multiplier, cap = self.of_cells("cells.cell")
        return f"""
SELECT cell, number, asked, kept, kept * multiplier AS moved FROM (
  SELECT cell, judged.number, asked, CAST({multiplier} AS BIGINT) AS multiplier,
    whole_div(least(asked, {cap}) * parts, {PARTS}) AS kept
  FROM {self.rows["asked"]} AS cells{joined}
  JOIN {self.rows["judged"]} AS judged ON judged.number = whole_div(cell, {self.places})
  WHERE parts < {PARTS} OR is_capped = 1
) AS parted"""

    def charged(self) -> str:
        """What is cut of those users, and what the rest costs them."""
        terms = self.terms
        kept_of = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {column_of('cell', view, self.places)} AS place,"
            f" wide(CAST(sum(moved) AS BIGINT)) AS moved"
            f" FROM {self.rows['short']} GROUP BY {column_of('cell', view, self.places)}"
            for view in self.layout.views
        )
        return f"""
WITH kept AS ({kept_of}),
charges AS (
  SELECT number, sum(squared_weight * moved * (2 * before + {terms.own} * moved)) AS charge
  FROM kept JOIN {self.rows["columns"]} AS columns
    ON columns.depth = kept.depth AND columns.place = kept.place
  GROUP BY number
)
SELECT cut.number, cut, charge FROM (
  SELECT number, CAST(sum(asked - kept) AS BIGINT) AS cut FROM {self.rows["short"]} GROUP BY number
) AS cut JOIN charges ON charges.number = cut.number"""

    def earlier_cut(self, past: Relation, left: str) -> str:
        """What earlier slots add to the cost of a column that counts what was cut, and what it has
        cost."""
        return f"""
  SELECT past.number, sum(wide(past.moved * coalesce(cost, 0))) AS before,
    sum(wide_of(charge_high, charge_low)) AS spent
  FROM {past} AS past
  JOIN ({left}) AS cut_now ON cut_now.number = past.number
  LEFT JOIN (VALUES {slot_values(self.terms.listed)}) AS cost_with (slot, cost)
    ON cost_with.slot = past.slot
  GROUP BY past.number"""

    def counted(self, number: int, earlier: str, left: str) -> str:
        """How much of what is left of each of them a column counts, as far as its budget goes."""
        terms, tier = self.terms, self.terms.cuts[number - 1]
        return f"""
WITH earlier AS ({earlier}
),
rooms AS (
  SELECT cut_now.number, left_over, coalesce(before, wide(0)) AS before,
    coalesce(spent, wide(0)) AS spent, least(left_over, {terms.cap(tier.multiplier)}) AS capped
  FROM ({left}) AS cut_now LEFT JOIN earlier ON earlier.number = cut_now.number
),
sums AS (
  SELECT number, left_over, spent, before, capped,
    {terms.own} * wide(capped * {tier.multiplier}) * wide(capped * {tier.multiplier}) AS square,
    wide(capped * {tier.multiplier}) * before AS cross_term, {whole(tier.limit)} - spent AS room
  FROM rooms
),
counted AS (
  SELECT number, left_over, spent, before, whole_div(capped * parts, {PARTS}) AS counted
  FROM ({with_parts("sums", "number, left_over, spent, before, capped")}) AS parted
)
SELECT number, counted, left_over - counted AS left_over, counted * {tier.multiplier} AS moved,
  spent, wide(counted * {tier.multiplier})
    * (2 * before + {terms.own} * wide(counted * {tier.multiplier})) AS charge
FROM counted"""

    def kept_cells(self) -> str:
        """Cells of everybody: the few that were cut short, and all others whole."""
        joined, multiplier, _ = self.of_cells("cells.cell")
        return f"""
SELECT cell, asked, kept, moved FROM {self.rows["short"]} AS short
UNION ALL
SELECT cell, asked, asked AS kept, asked * {multiplier} AS moved
FROM {self.rows["asked"]} AS cells{joined}
LEFT JOIN (SELECT DISTINCT number FROM {self.rows["short"]} AS short) AS cut_short
  ON cut_short.number = whole_div(cells.cell, {self.places})
WHERE cut_short.number IS NULL"""

    def after(self) -> str:
        """Accounts of the users of the slot."""
        return f"""
SELECT judged.number, own, across, seen, fixed,
  judged.spent + coalesce(charged.charge, judged.charge) AS spent
FROM {self.rows["judged"]} AS judged
LEFT JOIN {self.rows["charged"]} AS charged ON charged.number = judged.number"""
