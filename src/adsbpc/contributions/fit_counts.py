"""What everybody adds to a set of counts, weighed so that nobody moves them by more than promised:
on an engine, and in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from adsbpc.attribution import CountSet, Journeys, fit_cells_sql, fit_users_sql
from adsbpc.contributions.interface import Integers
from adsbpc.engines import Relation
from adsbpc.errors import ContributionError
from adsbpc.events import EventTables
from adsbpc.privacy import COUNT_UNITS, full_weight, user_weight


def engine_counts(
    events: EventTables,
    counts: CountSet,
    journeys: Journeys,
    starts_at: int,
    holdout: Relation | None = None,
) -> Integers:
    """Sums over users of what they add, times their weight, for every cell of the set: of journeys
    that end at `starts_at` or later. `holdout` are the users of a set that counts them apart."""
    full, engine = full_weight(counts.full_squared), events.engine
    users = engine.table(
        "fit_users", fit_users_sql(journeys, starts_at, events, holdout), row_key="user_key"
    )
    # `guess` comes from floating point and may be off by one; `fits` settles it in integers.
    found = engine.rows(
        f"counts of {counts.name}",
        f"""
WITH {fit_cells_sql(counts, journeys, events, users)},
norms AS (
  SELECT user_key, CAST(sum(amount * amount) AS BIGINT) AS squared FROM all_cells GROUP BY user_key
),
guessed AS (
  SELECT user_key, squared,
    CAST(floor({COUNT_UNITS} / sqrt(CAST(squared AS DOUBLE))) AS BIGINT) AS guess
  FROM norms
),
weights AS (
  SELECT user_key, least({full}, CASE
    WHEN {_fits("guess + 1")} THEN guess + 1
    WHEN {_fits("guess")} THEN guess
    ELSE guess - 1 END) AS weight
  FROM guessed
)
SELECT all_cells.cell, CAST(sum(all_cells.amount * weights.weight) AS BIGINT) AS total
FROM all_cells JOIN weights ON weights.user_key = all_cells.user_key
GROUP BY all_cells.cell""",
    )
    engine.drop(users)
    return _in_order(counts, found)


def _fits(weight: str) -> str:
    return f"({weight}) * ({weight}) * squared <= {COUNT_UNITS**2}"


def plain_counts(counts: CountSet, users: Iterable[Mapping[int, int]]) -> Integers:
    """The same from what each user adds, cell by cell: slow, and the definition."""
    totals: dict[int, int] = defaultdict(int)
    for cells in users:
        squared = sum(amount**2 for amount in cells.values())
        weight = user_weight(squared, counts.full_squared)
        for cell, amount in cells.items():
            totals[cell] += amount * weight
    return _in_order(counts, totals.items())


def _in_order(counts: CountSet, found: Iterable[tuple[int, int]]) -> Integers:
    values = np.zeros(len(counts.cells), dtype=np.int64)
    for cell, total in found:
        if cell not in counts.positions:
            raise ContributionError(
                f"cell {cell}: was not declared among the {len(counts.cells)} of {counts.name}"
            )
        values[counts.positions[cell]] = total
    return values
