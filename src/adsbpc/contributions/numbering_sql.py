"""From user ids to numbers, in SQL: texts over one slot's contributions and the names of the books.

Users that were never seen get the next numbers; only for them do rows keep the long name. Names are
texts: compared with numbers, an engine might take two of them for one.
"""

from __future__ import annotations

from itertools import accumulate

from adsbpc.engines import Relation
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import largest_cell


def named_sql(contributions: Relation, slot: int, names_before: Relation) -> str:
    """The slot's contributions, with a number or, of newcomers, the name."""
    return f"""
SELECT number, CASE WHEN number IS NULL THEN now.user_id END AS newcomer, cell_index, weight
FROM (
  SELECT CAST(user_id AS STRING) AS user_id, cell_index, weight
  FROM {contributions} WHERE slot = {slot} AND weight > 0
) AS now
LEFT JOIN {names_before} AS names ON names.user_id = now.user_id"""


def new_names_sql(named: Relation, known: int) -> str:
    return f"""
SELECT user_id, CAST({known} + row_number() OVER (ORDER BY user_id) AS BIGINT) AS number
FROM (
  SELECT DISTINCT newcomer AS user_id FROM {named} WHERE newcomer IS NOT NULL
) AS newcomers"""


def asked_sql(layout: Layout, places: int, named: Relation, new_names: Relation) -> str:
    """What each user asks for in each cell."""
    place, sums = _places_of(layout)
    return f"""
SELECT cell, CAST(least(sum(weight), {largest_cell(layout)}) AS BIGINT) AS asked
FROM (
  SELECT number * {places} + {place} AS cell, weight FROM (
    SELECT number, cell_index, weight FROM {named} AS named WHERE number IS NOT NULL
    UNION ALL
    SELECT names.number, cell_index, weight FROM {named} AS named
    JOIN {new_names} AS names ON names.user_id = named.newcomer
  ) AS numbered{sums}
) AS cells GROUP BY cell"""


def _places_of(layout: Layout) -> tuple[str, str]:
    """The cells that a row of a finest cell counts in, and what joins rows with them: where a
    layout is taken apart, those of the sums that it is part of, too."""
    if not layout.apart:
        return "cell_index", ""
    firsts = accumulate((view.columns for view in layout.stood_for), initial=0)
    sums = ", ".join(
        f"(CAST({first} AS BIGINT), CAST({view.stride} AS BIGINT))"
        for first, view in zip(firsts, layout.stood_for, strict=False)
    )
    joined = f" CROSS JOIN (VALUES {sums}) AS sums (first_place, stride)"
    return "(first_place + whole_div(cell_index, stride))", joined
