"""`privacy.filter.admit` in SQL: texts over one slot's cells and the books of everybody in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adsbpc.contributions.columns_sql import Factors, Moves
from adsbpc.contributions.filter_sql import column_of, whole, with_parts
from adsbpc.engines import Relation
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import PARTS, Terms


def weights_of(layout: Layout) -> tuple[str, ...]:
    """The factor of a column's squares, unless it is 1 for all of them."""
    return () if [view.weight for view in layout.views] == [1] else ("squared_weight",)


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
        """What joins rows with a cell to its multiplier and its size, where cells are not alike;
        the multiplier, and the cap."""
        if "weighed" not in self.rows:
            return "", str(self.terms.multiplier), str(self.terms.cap(self.terms.multiplier))
        joined = f" JOIN {self.rows['weighed']} AS weighed"
        return f"{joined} ON weighed.cell_index = {cell} % {self.places}", "multiplier", "cap"

    def factors(self) -> Factors:
        joined, _, _ = self.of_cells("columns.place")
        return Factors(joined, weights_of(self.layout), ("size",) if joined else ())

    def moves(self) -> Moves:
        """What would be moved of a column if all of it fits. Whoever has a cell above its cap would
        cost more than anybody may: caps are for those who are close to their limit."""
        joined, multiplier, cap = self.of_cells("columns.place")
        if joined:
            return Moves(f"wide(least(asked, {cap}) * {multiplier})", 1, self.terms.kept_limit)
        return Moves("wide(asked)", self.terms.multiplier, self.terms.kept_limit)

    def close(self) -> str:
        """Those of whom not everything may fit. Hardly anybody is."""
        terms, most = self.terms, self.terms.kept_limit
        if terms.pace:
            most = min(most, terms.pace.free)
        return f"""
SELECT * FROM {self.rows["people"]} AS people
WHERE charge IS NULL OR (charge > 0 AND spent + charge > {whole(most)})"""

    def _capped(self) -> str:
        """Their columns, with what would be moved of what is within caps."""
        joined, multiplier, cap = self.of_cells("columns.place")
        moved = f"least(asked, {cap}) * {multiplier}"
        if [view.stride for view in self.layout.views] != [1]:
            above = "\nUNION ALL\n".join(
                f"SELECT {view.depth} AS depth, {column_of('cell', view, self.places)} AS place,"
                f" CAST(sum(asked - {cap}) AS BIGINT) AS excess FROM {self.rows['asked']} AS cells"
                f" WHERE asked > {cap} GROUP BY {column_of('cell', view, self.places)}"
                for view in self.layout.views
            )
            joined = f""" LEFT JOIN ({above}) AS above
    ON above.depth = columns.depth AND above.place = columns.place"""
            moved = f"(asked - coalesce(excess, 0)) * {multiplier}"
        return f"""
  SELECT columns.number, columns.depth, columns.place, squared_weight, wide({moved}) AS moved
  FROM {self.rows["columns"]} AS columns{joined}
  JOIN {self.rows["close"]} AS close ON close.number = columns.number"""

    def short(self) -> str:
        """Cells of the people of whom not everything is kept."""
        terms = self.terms
        joined, multiplier, cap = self.of_cells("cells.cell")
        return f"""
WITH capped AS ({self._capped()}
),
sums AS (
  SELECT capped.number, {terms.own} * sum(capped.squared_weight * moved * moved) AS square,
    coalesce(sum(capped.squared_weight * moved * before), wide(0)) AS cross_term
  FROM capped LEFT JOIN {self.rows["met"]} AS met
    ON met.depth = capped.depth AND met.place = capped.place
  GROUP BY capped.number
),
rooms AS (
  SELECT close.number, own, across, seen, spent, square, cross_term,
    {whole(terms.kept_limit)} - spent AS room
  FROM {self.rows["close"]} AS close JOIN sums ON sums.number = close.number
),
paced AS (SELECT * FROM rooms{self.growth}),
judged AS (
  SELECT number, parts FROM ({with_parts("paced", "number", terms.pace)}) AS judged
  WHERE parts < {PARTS}
)
SELECT cell, number, asked, kept, kept * multiplier AS moved FROM (
  SELECT cell, judged.number, asked, CAST({multiplier} AS BIGINT) AS multiplier,
    whole_div(least(asked, {cap}) * parts, {PARTS}) AS kept
  FROM {self.rows["asked"]} AS cells{joined}
  JOIN judged ON judged.number = whole_div(cells.cell, {self.places})
) AS parted"""

    def charged(self) -> str:
        """What is cut of those users, and what the rest costs them."""
        terms = self.terms
        kept_of = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {column_of('cell', view, self.places)} AS place,"
            f" number, {view.weight**2} AS squared_weight,"
            f" wide(CAST(sum(moved) AS BIGINT)) AS moved"
            f" FROM {self.rows['short']} AS short"
            f" GROUP BY {column_of('cell', view, self.places)}, number"
            for view in self.layout.views
        )
        return f"""
WITH kept AS ({kept_of}),
charges AS (
  SELECT kept.number, sum(kept.squared_weight * moved
    * (2 * coalesce(before, wide(0)) + {terms.own} * moved)) AS charge
  FROM kept LEFT JOIN {self.rows["met"]} AS met
    ON met.depth = kept.depth AND met.place = kept.place
  GROUP BY kept.number
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
  LEFT JOIN {self.rows["costs"]} AS cost_with ON cost_with.slot = past.slot
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
LEFT JOIN {self.rows["charged"]} AS charged
  ON charged.number = whole_div(cells.cell, {self.places})
WHERE charged.number IS NULL"""

    def after(self, carried: Sequence[str]) -> str:
        """Accounts of the people of the slot."""
        kept = "".join(f", {name}" for name in carried if name != "spent")
        return f"""
SELECT people.number, own, across, seen{kept},
  people.spent + coalesce(charged.charge, people.charge) AS spent
FROM {self.rows["people"]} AS people
LEFT JOIN {self.rows["charged"]} AS charged ON charged.number = people.number"""
