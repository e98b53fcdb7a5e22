"""From user ids to numbers, in SQL: texts over one slot's contributions and the names of the books.

Users that were never seen get the next numbers; only for them do rows keep the long name. Names are
texts: compared with numbers, an engine might take two of them for one.
"""

from __future__ import annotations

from itertools import accumulate

from adsbpc.contributions.filter_sql import column_of
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
    """What each user asks for in each cell; a layout that is taken apart has cells of sums, too."""
    largest = largest_cell(layout)
    asked = f"""
SELECT number * {places} + cell_index AS cell,
  CAST(least(sum(weight), {largest}) AS BIGINT) AS asked
FROM (
  SELECT number, cell_index, weight FROM {named} AS named WHERE number IS NOT NULL
  UNION ALL
  SELECT names.number, cell_index, weight FROM {named} AS named
  JOIN {new_names} AS names ON names.user_id = named.newcomer
) AS numbered GROUP BY number * {places} + cell_index"""
    if not layout.apart:
        return asked
    # Nearly every row has a finest cell of its own: sums are made of those, not of rows.
    firsts = accumulate((view.columns for view in layout.stood_for), initial=0)
    parts = [
        f"SELECT cell + {first} AS cell, asked FROM finest"
        if view.stride == 1
        else f"SELECT {column_of('cell', view, places)} + {first} AS cell,"
        f" CAST(least(sum(asked), {largest}) AS BIGINT) AS asked"
        f" FROM finest GROUP BY {column_of('cell', view, places)}"
        for first, view in zip(firsts, layout.stood_for, strict=False)
    ]
    sums = "\nUNION ALL\n".join(parts)
    return f"WITH finest AS ({asked}\n)\n{sums}"
