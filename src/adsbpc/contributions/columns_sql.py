"""A slot's columns in SQL: what its people ask for in each, what earlier slots add to the cost of
those that have a past, and the sums of both by person.

Most columns have no past. So what people ask for stands apart from it, and is summed as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adsbpc.contributions.filter_sql import column_of, whole
from adsbpc.contributions.interface import LARGEST_NEED
from adsbpc.engines import Relation
from adsbpc.model.layout import Layout, View


def columns_sql(layout: Layout, places: int, asked: Relation, largest: int | None) -> str:
    """For every view, the columns of those who are in the slot; needs have cells up to a largest
    weight, if there is one."""
    needed = "asked" if largest is None else f"least(asked, {largest})"
    return "\nUNION ALL\n".join(_of_view(view, places, asked, needed) for view in layout.views)


def _of_view(view: View, places: int, asked: Relation, needed: str) -> str:
    if view.stride == 1:
        return f"""
SELECT cell AS place, whole_div(cell, {places}) AS number, asked, {needed} AS needed, {_of(view)}
FROM {asked} AS cells"""
    place = column_of("cell", view, places)
    return f"""
SELECT place, whole_div(place, {places}) AS number, asked, needed, {_of(view)}
FROM (
  SELECT {place} AS place, CAST(sum(asked) AS BIGINT) AS asked,
    CAST(sum({needed}) AS BIGINT) AS needed
  FROM {asked} AS cells GROUP BY {place}
) AS sums"""


def met_sql(
    layout: Layout,
    places: int,
    rows: Mapping[str, Relation],
    largest: int | None,
) -> str:
    """The columns that earlier slots have rows of, with what those add to their cost."""
    needed = "past.asked" if largest is None else f"least(past.asked, {largest})"
    return "\nUNION ALL\n".join(
        f"""
SELECT place, whole_div(place, {places}) AS number, asked, needed, {_of(view)}, asked_before, before
FROM (
  SELECT place, now.asked, needed, sum(wide({needed} * cost)) AS asked_before,
    sum(wide(past.moved * cost)) AS before
  FROM {rows["past"]} AS past
  JOIN {rows["columns"]} AS now ON now.place = {column_of("past.cell", view, places)}
  JOIN {rows["costs"]} AS cost_with ON cost_with.slot = past.slot
  WHERE now.depth = {view.depth}
  GROUP BY place, now.asked, needed
) AS earlier"""
        for view in layout.views
    )


def _of(view: View) -> str:
    return f"{view.depth} AS depth, CAST({view.weight**2} AS BIGINT) AS squared_weight"


@dataclass(frozen=True)
class Factors:
    """What joins columns to the sizes of cells, and the factors of their squares and of their
    needs."""

    joined: str
    weights: tuple[str, ...]
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class Moves:
    """What would be moved of a column, `times` a number that all have, and what that may cost."""

    moved: str
    times: int
    most: int


def people_sql(
    rows: Mapping[str, Relation],
    own: int,
    factors: Factors,
    carried: Sequence[str],
    moves: Moves | None = None,
    others: bool = True,
) -> str:
    """Everybody in the slot, and `others` before it: needs, with what `carried` columns of accounts
    say, and if it is known what would be moved, what all of it would cost, unless its square alone
    is more than that may be: then it may be too large to be counted."""
    needed = " * ".join(["needed", *factors.sizes])
    twice = " * ".join([*factors.weights, f"wide({' * '.join([needed, *factors.sizes])})"])
    squared = " * ".join([*factors.weights, f"wide({needed}) * wide({needed})"])
    of_now, of_met, charge = "", "", ""
    if moves:
        moved = " * ".join([*factors.weights, moves.moved])
        of_now = f", sum({moved} * {moves.moved}) AS squares"
        of_met = f", sum({moved} * before) AS crossed"
        square = own * moves.times**2
        charge = f""",
  CASE WHEN now.number IS NULL THEN wide(0)
    WHEN squares <= {whole(moves.most // square)}
    THEN {whole(square)} * squares + {2 * moves.times} * coalesce(crossed, wide(0)) END AS charge"""
    accounts = "".join(f",\n  coalesce(users.{name}, wide(0)) AS {name}" for name in carried)
    most = whole(LARGEST_NEED)
    return f"""
WITH now AS (
  SELECT number, {own} * sum({squared}) AS own{of_now}
  FROM {rows["columns"]} AS columns{factors.joined} GROUP BY number
),
met AS (
  SELECT number, 2 * sum({twice} * asked_before) AS across{of_met}
  FROM {rows["met"]} AS columns{factors.joined} GROUP BY number
)
SELECT coalesce(now.number, users.number) AS number,
  least(coalesce(users.own, wide(0)) + coalesce(now.own, wide(0)), {most}) AS own,
  least(coalesce(users.across, wide(0)) + coalesce(met.across, wide(0)), {most}) AS across,
  coalesce(seen, 0) + CASE WHEN now.number IS NULL THEN 0 ELSE 1 END AS seen{accounts}{charge}
FROM now LEFT JOIN met ON met.number = now.number
{"FULL" if others else "LEFT"} JOIN {rows["users_before"]} AS users ON users.number = now.number"""
