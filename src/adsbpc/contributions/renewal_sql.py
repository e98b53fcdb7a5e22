"""`privacy.filter.renew` in SQL: texts over the books of everybody.

`pairs` has, for every pair of slots, what released rows and coming ones add for them. Users' sums
are joined with themselves by column: most people have one or two slots with a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adsbpc.contributions.filter_sql import column_of, shifted, whole, with_parts
from adsbpc.contributions.interface import LARGEST_NEED
from adsbpc.engines import Relation
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.filter import ALONE, LARGEST_COST, PARTS, Renewal, Tier


@dataclass(frozen=True)
class CutTier:
    """A column of what was cut, and its books: rows by slot and number; what released rows have
    cost stands at slot 0, and what coming ones do at slot -1."""

    number: int
    tier: Tier
    past: Relation


def needs_again(
    past: Relation, sizes: str, layout: Layout, places: int, pairs: Relation, largest: int
) -> str:
    """Own needs and those across slots of everybody before the slot, with other sizes, where what
    is asked for counts up to a largest weight. Only layouts without sums of cells have any."""
    (view,) = layout.views
    a, b = (f"wide(least({side}.asked, {largest}))" for side in "ab")
    size = "size * size * " if sizes else ""
    term = f"{view.weight**2} * {size}first_sum * {a} * {b}"
    most = whole(LARGEST_NEED)
    return f"""
SELECT whole_div(a.cell, {places}) AS number,
  least(sum(CASE WHEN a.slot = b.slot THEN {term} ELSE wide(0) END), {most}) AS own,
  least(sum(CASE WHEN a.slot = b.slot THEN wide(0) ELSE {term} END), {most}) AS across
FROM {past} AS a JOIN {past} AS b ON b.cell = a.cell AND b.slot >= a.slot
JOIN {pairs} AS pairs ON pairs.slot = a.slot AND pairs.later = b.slot
{sizes.replace("past.cell", "a.cell")}
GROUP BY whole_div(a.cell, {places})"""


@dataclass(frozen=True)
class RenewalSql:
    renewal: Renewal
    layout: Layout
    places: int
    rows: Mapping[str, Relation]

    def quadratics(self) -> str:
        """For everybody with a past: what rows since the last renewal have cost, what coming ones
        would with everything, and whether that is too much to be summed."""
        most = self.renewal.largest_sum(self.layout.views)
        texts = [self._of_view(view) for view in self.layout.views]
        return f"""
WITH too_much AS (
  SELECT number FROM (
    SELECT whole_div(cell, {self.places}) AS number, sum(wide(wish)) AS total
    FROM ({self._wishes()}) AS wishes GROUP BY whole_div(cell, {self.places})
  ) AS sums WHERE total > {whole(most)}
)
SELECT number, sum(ended) AS ended, sum(coming) AS coming, max(is_beyond) AS is_beyond
FROM ({" UNION ALL ".join(texts)}) AS views GROUP BY number"""

    def _wishes(self) -> str:
        """Cells of the past, with what would be moved of everything."""
        terms = self.renewal.terms
        if not terms.multipliers:
            return (
                f"SELECT slot, cell, moved, asked * {terms.multiplier} AS wish"
                f" FROM {self.rows['past']} AS past"
            )
        return (
            f"SELECT slot, cell, moved, asked * multiplier AS wish FROM {self.rows['past']} AS past"
            f" JOIN {self.rows['weighed']} AS weighed"
            f" ON weighed.cell_index = past.cell % {self.places}"
        )

    def _of_view(self, view: View) -> str:
        column = column_of("cell", view, self.places)
        sums = f"({self._wishes()})"
        if view.stride > 1:
            sums = f"""(
    SELECT slot, {column} AS cell, CAST(sum(moved) AS BIGINT) AS moved,
      CAST(sum(wish) AS BIGINT) AS wish
    FROM {sums} AS cells GROUP BY slot, {column})"""
        weight = view.weight**2
        return f"""
SELECT whole_div(a.cell, {self.places}) AS number,
  sum({weight} * first_sum * wide(a.moved) * wide(b.moved)) AS ended,
  sum(CASE WHEN too_much.number IS NULL
    THEN {weight} * second_sum * wide(a.wish) * wide(b.wish) ELSE wide(0) END) AS coming,
  max(CASE WHEN too_much.number IS NULL THEN 0 ELSE 1 END) AS is_beyond
FROM {sums} AS a JOIN {sums} AS b ON b.cell = a.cell AND b.slot >= a.slot
JOIN {self.rows["pairs"]} AS pairs ON pairs.slot = a.slot AND pairs.later = b.slot
LEFT JOIN too_much ON too_much.number = whole_div(a.cell, {self.places})
GROUP BY whole_div(a.cell, {self.places})"""

    def users(self, everybody: str, growth: str) -> str:
        """How many parts of everybody's past are kept, and their accounts."""
        limit = whole(self.renewal.terms.kept_limit)
        return _renewed(
            f"""
WITH paced AS (
  SELECT everybody.*, everybody.fixed + ended AS new_fixed, coming, is_beyond
    {", own_factor, across_factor" if growth else ""}
  FROM (SELECT number, own, across, seen, fixed FROM ({everybody}) AS everybody) AS everybody
  JOIN {self.rows["renewing"]} AS renewing ON renewing.number = everybody.number
  {growth}
),
rooms AS (
  SELECT number, own, across, new_fixed AS spent, is_beyond, {limit} - new_fixed AS room,
    CASE WHEN coming > {whole(LARGEST_COST)} THEN wide(0) ELSE coming END AS square,
    CASE WHEN coming > {whole(LARGEST_COST)} THEN 1 ELSE is_beyond END AS is_too_much,
    wide(0) AS cross_term{", own_factor, across_factor" if growth else ""}
  FROM paced
)""",
            with_parts("rooms", "number, spent, square, is_too_much", self.renewal.terms.pace),
            limit,
        )

    def cells(self, joined: str, multiplier: str, _cap: str) -> str:
        """The past as it is let in again."""
        return f"""
SELECT slot, cell, asked, kept, kept * {multiplier} AS moved FROM (
  SELECT slot, cell, asked, whole_div(asked * parts, {PARTS}) AS kept
  FROM {self.rows["past"]} AS cells JOIN {self.rows["renewed"]} AS renewed
    ON renewed.number = whole_div(cell, {self.places})
) AS past{joined}"""

    def left(self, of: CutTier) -> str:
        """What the columns before leave to a column, by slot and number."""
        if of.number == 1:
            number = f"whole_div(cell, {self.places})"
            return f"""
SELECT slot, {number} AS number, CAST(sum(asked - kept) AS BIGINT) AS left_over
FROM {self.rows["renewed_cells"]} AS cells WHERE asked > kept GROUP BY slot, {number}"""
        return f"""
SELECT left_before.slot, left_before.number,
  left_over - whole_div(coalesce(moved, 0), {self.renewal.terms.cuts[of.number - 2].multiplier})
    AS left_over
FROM {self.rows[f"left_{of.number - 1}"]} AS left_before
LEFT JOIN {self.rows[f"renewed_{of.number - 1}"]} AS counted
  ON counted.slot = left_before.slot AND counted.number = left_before.number"""

    def cut_users(self, of: CutTier) -> str:
        """How many parts of what is left a column counts, and what it has cost."""
        left, limit = self.rows[f"left_{of.number}"], whole(of.tier.limit)
        multiplier, most = of.tier.multiplier, self.renewal.largest_sum(ALONE)
        return _renewed(
            f"""
WITH ended AS (
  SELECT a.number, sum(first_sum * wide(a.moved) * wide(b.moved)) AS ended
  FROM {of.past} AS a JOIN {of.past} AS b ON b.number = a.number AND b.slot >= a.slot
  JOIN {self.rows["pairs"]} AS pairs ON pairs.slot = a.slot AND pairs.later = b.slot
  GROUP BY a.number
),
fixed AS (
  SELECT number, wide_of(charge_high, charge_low) AS fixed FROM {of.past} AS past WHERE slot = 0
),
sums AS (
  SELECT number, sum(wide(left_over * {multiplier})) AS total FROM {left} AS remaining
  GROUP BY number
),
coming AS (
  SELECT a.number, sum(second_sum * wide(a.left_over * {multiplier})
    * wide(b.left_over * {multiplier})) AS coming
  FROM {left} AS a JOIN {left} AS b ON b.number = a.number AND b.slot >= a.slot
  JOIN {self.rows["pairs"]} AS pairs ON pairs.slot = a.slot AND pairs.later = b.slot
  JOIN sums ON sums.number = a.number AND total <= {whole(most)}
  GROUP BY a.number
),
numbers AS (
  SELECT number FROM {of.past} AS past UNION SELECT number FROM {left} AS remaining
),
costs AS (
  SELECT numbers.number, coalesce(fixed, wide(0)) + coalesce(ended, wide(0)) AS spent,
    coalesce(coming, wide(0)) AS coming,
    CASE WHEN coalesce(total, wide(0)) > {whole(most)}
      OR coalesce(coming, wide(0)) > {whole(LARGEST_COST)} THEN 1 ELSE 0 END AS is_too_much
  FROM numbers LEFT JOIN fixed ON fixed.number = numbers.number
  LEFT JOIN ended ON ended.number = numbers.number
  LEFT JOIN coming ON coming.number = numbers.number
  LEFT JOIN sums ON sums.number = numbers.number
),
rooms AS (
  SELECT number, spent, is_too_much, {limit} - spent AS room, wide(0) AS cross_term,
    CASE WHEN is_too_much = 1 THEN wide(0) ELSE coming END AS square
  FROM costs
)""",
            with_parts("rooms", "number, spent, square, is_too_much"),
            limit,
        )

    def cut_rows(self, of: CutTier) -> str:
        """Books of a column: what it counts, and what it has cost and will."""
        counted = self.rows[f"renewing_{of.number}"]
        return f"""
SELECT remaining.slot, remaining.number,
  whole_div(left_over * parts, {PARTS}) * {of.tier.multiplier} AS moved,
  CAST(0 AS BIGINT) AS charge_high, CAST(0 AS BIGINT) AS charge_low
FROM {self.rows[f"left_{of.number}"]} AS remaining
JOIN {counted} AS counted ON counted.number = remaining.number
WHERE whole_div(left_over * parts, {PARTS}) > 0
UNION ALL
SELECT CAST(0 AS BIGINT) AS slot, number, CAST(0 AS BIGINT) AS moved, high(fixed) AS charge_high,
  low(fixed) AS charge_low FROM {counted} AS counted
UNION ALL
SELECT CAST(-1 AS BIGINT) AS slot, number, CAST(0 AS BIGINT) AS moved,
  high(spent - fixed) AS charge_high, low(spent - fixed) AS charge_low FROM {counted} AS counted"""


def _renewed(tables: str, parted: str, limit: str) -> str:
    """Accounts after a renewal; what is cut short is rounded against the user."""
    share = shifted("(square * wide(parts * parts))", 24)
    return f"""{tables},
parted AS (
  SELECT number, spent AS fixed, square, CASE WHEN is_too_much = 1 THEN 0 ELSE parts END AS parts
  FROM ({parted}) AS parted
)
SELECT number, fixed, parts, least({limit}, fixed + CASE WHEN parts = {PARTS} THEN square
  ELSE {share} + 1 END) AS spent
FROM parted"""
