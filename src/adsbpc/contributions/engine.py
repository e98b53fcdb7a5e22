"""Contributions held by an engine: SQL over one slot at a time, aggregates to Python.

Rows: user_id, slot, time_us, conversion_number, cell_index, weight. They stand in a table of the
engine, or are read from elsewhere; a Parquet dataset with a folder per slot keeps memory low,
because one slot is read at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adsbpc.contributions.interface import (
    Integers,
    check_bound,
    check_edges,
    check_slot,
)
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout
from adsbpc.model.measure import Measure

# Time order of a user's conversions; cells of one conversion follow the layout.
_TIME_ORDER = "time_us, conversion_number, cell_index"
# Somebody's square grows up to here, that of some 39,000 conversions: whole numbers of 64 bits have
# room for many such people, and one person stops nobody.
_LARGEST_SQUARE = 2**50


def contributions_sql(measure: Measure, index_columns: Mapping[str, str], rows: Relation) -> str:
    """Weights on the grid, in a measure's cells, from credits, or from exposures where impressions
    are counted. Either carry their place in the list of each dimension in its index column."""
    # Cells are the product of the lists, in their order.
    cell = "0"
    for dimension in measure.layout.dimensions:
        index = index_columns[dimension.name]
        cell = index if cell == "0" else f"({cell}) * {len(dimension.values)} + {index}"
    if measure.is_squared:
        return _squares_sql(cell, rows, measure.value_cap)
    if measure.layout.once:
        return _people_sql(measure.layout, cell, rows)
    if measure.of_impressions:
        return _impressions_sql(cell, rows, is_click=measure.metric == "clicks")
    return _conversions_sql(cell, rows, measure.value_cap)


def _conversions_sql(cell: str, credits: Relation, value_cap: float | None) -> str:
    """A row per conversion and cell. With a cap on values a conversion at or above it weighs
    720,720 units and one below it proportionally less, rounded down: the same grid, and no weight
    above a conversion's units."""
    weight = "units"
    if value_cap is not None:
        cap = f"CAST({value_cap!r} AS DOUBLE)"
        weight = f"CAST(floor(units * (least(value, {cap}) / {cap})) AS BIGINT)"
    return f"""
SELECT user_id, slot, time_us, conversion_number, cell_index, {weight} AS weight
FROM (
  SELECT user_id, slot, time_us, conversion_number, {cell} AS cell_index, value,
    CAST(sum(credit_units) AS BIGINT) AS units
  FROM {credits}
  GROUP BY user_id, slot, time_us, conversion_number, {cell}, value
) AS by_cell
WHERE {weight} > 0"""


def _squares_sql(cell: str, conversions: Relation, value_cap: float | None) -> str:
    """A row per user, slot and cell: by how much the square of all that the user has so far grows,
    in squares of a conversion or of the cap. `conversions` are those of all slots so far; whole
    numbers below 2^53 are squared in floating point, alike on every engine."""
    units = f"CAST({UNITS_PER_CONVERSION} AS BIGINT)"
    if value_cap is not None:
        cap = f"CAST({value_cap!r} AS DOUBLE)"
        share = f"(least(value, {cap}) / {cap})"
        units = f"CAST(floor({UNITS_PER_CONVERSION} * {share}) AS BIGINT)"

    def squared(total: str) -> str:
        total = f"CAST({total} AS DOUBLE)"
        square = f"{total} * {total} / {UNITS_PER_CONVERSION}"
        return f"CAST(floor(least({square}, CAST({_LARGEST_SQUARE} AS DOUBLE))) AS BIGINT)"

    return f"""
SELECT user_id, slot, time_us, CAST(1 AS BIGINT) AS conversion_number, cell_index,
  {squared("so_far")} - {squared("so_far - units")} AS weight
FROM (
  SELECT user_id, slot, time_us, cell_index, units,
    CAST(sum(units) OVER (PARTITION BY user_id, cell_index ORDER BY slot
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS so_far
  FROM (
    SELECT user_id, slot, min(time_us) AS time_us, cell_index, CAST(sum(units) AS BIGINT) AS units
    FROM (
      SELECT user_id, slot, time_us, {cell} AS cell_index, {units} AS units
      FROM {conversions} AS counted
    ) AS weighed GROUP BY user_id, slot, cell_index
  ) AS by_slot
) AS growing"""


def _impressions_sql(cell: str, exposures: Relation, is_click: bool) -> str:
    """A row per moment and cell; an impression, or a click, weighs as much as a conversion."""
    return f"""
SELECT user_id, slot, time_us, CAST(1 AS BIGINT) AS conversion_number, {cell} AS cell_index,
  CAST(count(*) * {UNITS_PER_CONVERSION} AS BIGINT) AS weight
FROM {exposures} AS exposures WHERE {"" if is_click else "NOT "}is_click
GROUP BY user_id, slot, time_us, {cell}"""


def _people_sql(layout: Layout, cell: str, rows: Relation) -> str:
    """A row per user, slot and sum of any view: who is in it on that slot weighs as much as a
    conversion. Whether somebody was in it before, the books say: they know what was counted, where
    events that came late would say what should have been."""
    sums = ", ".join(
        f"({sum(layout.sizes[:depth])}, {layout.sizes[-1] // size})"
        for depth, size in enumerate(layout.sizes)
    )
    in_sum = "first_sum + whole_div(finest, summed)"
    return f"""
SELECT user_id, slot, min(time_us) AS time_us, CAST(1 AS BIGINT) AS conversion_number,
  {in_sum} AS cell_index, CAST({UNITS_PER_CONVERSION} AS BIGINT) AS weight
FROM (
  SELECT user_id, slot, {cell} AS finest, min(time_us) AS time_us
  FROM {rows} AS met GROUP BY user_id, slot, {cell}
) AS met CROSS JOIN (VALUES {sums}) AS sums (first_sum, summed)
GROUP BY user_id, slot, {in_sum}"""


class EngineContributions:
    """Answers from rows in `relation`, which must not change while this lives; the interface says
    what each one means.

    Per-user sums of the slot last asked about are kept in a temporary table, because a mechanism
    asks several questions about a slot and then moves on; and so are its rows, if they stand in no
    table: of those engines know how many there are, and choose how to join them by that.
    """

    def __init__(self, engine: Engine, relation: Relation, slots: int, layout: Layout) -> None:
        self.slots = slots
        self.layout = layout
        self._engine = engine
        self._relation = relation
        # Of the current slot.
        self._kept: dict[str, Relation] = {}
        self._current_slot: int | None = None

    def _keep(self, slot: int, what: str, sql: str) -> Relation:
        if slot != self._current_slot:
            before, self._kept, self._current_slot = self._kept, {}, slot
            for relation in before.values():
                self._engine.drop(relation)
        if what not in self._kept:
            self._kept[what] = self._engine.table(what, sql)
        return self._kept[what]

    def _rows_of(self, slot: int) -> str:
        check_slot(slot, self.slots)
        # Rows without weight are nobody's; the caps count on weights above zero.
        rows = f"""
SELECT user_id, time_us, conversion_number, cell_index, weight
FROM {self._relation} AS all_rows WHERE slot = {int(slot)} AND weight > 0"""
        if self._relation.is_table:
            return f"({rows}) AS slot_rows"
        return f"{self._keep(slot, 'slot_rows', rows)} AS slot_rows"

    def _totals_of_users(self, slot: int) -> Relation:
        return self._keep(
            slot,
            "user_totals",
            "SELECT user_id, CAST(sum(weight) AS BIGINT) AS total"
            f" FROM {self._rows_of(slot)} GROUP BY user_id",
        )

    def _per_cell(self, found: list[tuple[Any, ...]]) -> Integers:
        totals = np.zeros(len(self.layout), dtype=np.int64)
        for cell_index, total in found:
            totals[self._position(cell_index)] = int(total)
        return totals

    def _position(self, cell_index: int) -> int:
        if not 0 <= cell_index < len(self.layout):
            raise ContributionError(
                f"cell_index = {cell_index}: the layout has cells 0 to {len(self.layout) - 1}"
            )
        return cell_index

    def histogram(self, slot: int, edges: Sequence[int]) -> Integers:
        check_edges(edges)
        users = self._totals_of_users(slot)
        bins = "".join(f" WHEN total <= {int(edge)} THEN {i}" for i, edge in enumerate(edges))
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        found = self._engine.rows(
            "histogram",
            f"SELECT bin, count(*) FROM (SELECT CASE{bins} ELSE {len(edges)} END AS bin"
            f" FROM {users}) AS binned GROUP BY bin",
        )
        for position, count in found:
            counts[position] = count
        return counts

    def users_above(self, slot: int, bound: int) -> int:
        check_bound(bound)
        users = self._totals_of_users(slot)
        ((count,),) = self._engine.rows(
            "users above bound",
            f"SELECT count(*) FROM {users} WHERE total > {int(bound)}",
        )
        return int(count)

    def totals(self, slot: int, bound: int | None = None) -> Integers:
        plain = self._engine.rows(
            "totals",
            "SELECT cell_index, CAST(sum(weight) AS BIGINT)"
            f" FROM {self._rows_of(slot)} GROUP BY cell_index",
        )
        totals = self._per_cell(plain)
        if bound is None:
            return totals
        check_bound(bound)
        users = self._totals_of_users(slot)
        # Few users pass a sensible bound: only their rows are put in order, to take off the rest.
        cut = self._engine.rows(
            "cut above bound",
            f"""
WITH running AS (
  SELECT cell_index, weight, sum(weight) OVER (
      PARTITION BY slot_rows.user_id ORDER BY {_TIME_ORDER}
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running
  FROM {self._rows_of(slot)}
  JOIN {users} AS users ON users.user_id = slot_rows.user_id
  WHERE users.total > {int(bound)}
)
SELECT cell_index,
  CAST(sum(weight - greatest(0, least(weight, {int(bound)} - (running - weight)))) AS BIGINT)
FROM running GROUP BY cell_index""",
        )
        return totals - self._per_cell(cut)
