"""`privacy.largest_parts` in SQL, over columns square, cross_term and room of 128 bits."""

from __future__ import annotations

from collections.abc import Sequence

from adsbpc.privacy.filter import PARTS


def _fits(parts: str) -> str:
    return (
        f"square * wide(({parts}) * ({parts})) + cross_term * wide({2 * PARTS} * ({parts}))"
        f" <= room * wide({PARTS**2})"
    )


# The largest number of parts that fits; floating point has guessed it, integers settle it.
PARTS_THAT_FIT = f"""CASE
    WHEN square + 2 * cross_term <= room THEN {PARTS}
    WHEN room <= 0 THEN 0
    WHEN {_fits("guess + 1")} THEN guess + 1
    WHEN {_fits("guess")} THEN guess
    ELSE guess - 1 END"""


def guessed(relation: str, columns: str) -> str:
    """Rows of `relation` with a guess of how many parts fit, off by one at most."""
    return f"""
  SELECT {columns}, square, cross_term, room, CASE
    WHEN square + 2 * cross_term <= room OR room <= 0 THEN 0
    ELSE least({PARTS}, CAST(floor({PARTS} * CAST(room AS DOUBLE) / (CAST(cross_term AS DOUBLE)
      + sqrt(CAST(cross_term AS DOUBLE) * CAST(cross_term AS DOUBLE)
        + CAST(square AS DOUBLE) * CAST(room AS DOUBLE)))) AS BIGINT)) END AS guess
  FROM {relation}"""


def whole(value: int) -> str:
    """A literal of up to 128 bits."""
    return f"wide('{int(value)}')"


def slot_values(costs: Sequence[int]) -> str:
    """Rows (slot, cost) for a VALUES clause."""
    return ", ".join(
        f"(CAST({slot} AS BIGINT), CAST({int(cost)} AS BIGINT))"
        for slot, cost in enumerate(costs, start=1)
    )
