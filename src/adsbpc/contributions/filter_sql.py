"""`privacy.filter` in SQL, over integers of 128 bits."""

from __future__ import annotations

from adsbpc.model.layout import View
from adsbpc.privacy.filter import FORECAST_BITS, LARGEST_COST, PARTS, Growth, Pace


def whole(value: int) -> str:
    """A literal of up to 128 bits."""
    return f"wide('{int(value)}')"


def column_of(cell: str, view: View, places: int) -> str:
    """The user's column of a view that a cell is in."""
    if view.stride == 1:
        return cell
    within = f"{cell} % {places}"
    return f"({cell} - {within} + whole_div({within}, {view.stride}))"


def shifted(value: str, bits: int) -> str:
    """A value from 0 to 2^116 without its last bits, of which there are at most 53."""
    return f"(wide(high({value})) * {2 ** (53 - bits)} + whole_div(low({value}), {2**bits}))"


def expected(growth: Growth) -> str:
    """`Growth.of` over columns own, across, and the factors of how often somebody was seen."""
    most = whole(growth.largest)
    return (
        f"(least({shifted('own', FORECAST_BITS)}, {most}) * wide(own_factor)"
        f" + least({shifted('across', FORECAST_BITS)}, {most}) * wide(across_factor))"
    )


def factors(growth: Growth) -> dict[str, list[int]]:
    """Columns of a table with the factors, by how often somebody was seen."""
    return {
        "times": list(range(1, len(growth.own) + 1)),
        "own_factor": list(growth.own),
        "across_factor": list(growth.across),
    }


def _guess(square: str, cross: str, room: str) -> str:
    """How many parts fit, in floating point: off by one at most."""
    return f"""CASE
    WHEN {square} + 2 * {cross} <= {room} OR {room} <= 0 THEN 0
    ELSE least({PARTS}, CAST(floor({PARTS} * CAST({room} AS DOUBLE) / (CAST({cross} AS DOUBLE)
      + sqrt(CAST({cross} AS DOUBLE) * CAST({cross} AS DOUBLE)
        + CAST({square} AS DOUBLE) * CAST({room} AS DOUBLE)))) AS BIGINT)) END"""


def _fits(square: str, cross: str, room: str, parts: str) -> str:
    return (
        f"{square} * wide(({parts}) * ({parts})) + {cross} * wide({2 * PARTS} * ({parts}))"
        f" <= {room} * wide({PARTS**2})"
    )


def _settled(square: str, cross: str, room: str, guess: str) -> str:
    """The largest number of parts that fits: integers settle what floating point has guessed."""
    return f"""CASE
    WHEN {square} + 2 * {cross} <= greatest({room}, wide(0)) THEN {PARTS}
    WHEN {room} <= 0 THEN 0
    WHEN {_fits(square, cross, room, f"{guess} + 1")} THEN {guess} + 1
    WHEN {_fits(square, cross, room, guess)} THEN {guess}
    ELSE {guess} - 1 END"""


_PLAIN = ("square", "cross_term", "room")
_UNTIL_THE_END = ("until_the_end", "wide(0)", "room")
_FREE = ("square", "cross_term", "free_room")


def with_parts(relation: str, columns: str, pace: Pace | None = None) -> str:
    """Rows of `relation`, which has square, cross_term, spent and room, with how many parts are
    kept; if there is a pace, it has own, across and their factors too."""
    if pace is None:
        guessed = f"SELECT *, {_guess(*_PLAIN)} AS guess FROM {relation}"
        return (
            f"SELECT {columns}, {_settled(*_PLAIN, 'guess')} AS parts FROM ({guessed}) AS guessed"
        )
    forecast = f"""
SELECT *, {whole(pace.free)} - spent AS free_room,
  least(square + 2 * cross_term + {expected(pace.growth)}, {whole(LARGEST_COST)}) AS until_the_end
FROM {relation}"""
    guessed = f"""
SELECT *, {_guess(*_PLAIN)} AS guess,
  CASE WHEN square + 2 * cross_term <= free_room THEN 0
    ELSE {_guess(*_UNTIL_THE_END)} END AS paced_guess,
  CASE WHEN square + 2 * cross_term <= free_room THEN 0 ELSE {_guess(*_FREE)} END AS free_guess
FROM ({forecast}) AS forecast"""
    return f"""
SELECT {columns}, CASE
  WHEN square + 2 * cross_term <= free_room THEN {_settled(*_PLAIN, "guess")}
  ELSE least({_settled(*_PLAIN, "guess")}, greatest(
    {_settled(*_UNTIL_THE_END, "paced_guess")}, {_settled(*_FREE, "free_guess")})) END AS parts
FROM ({guessed}) AS guessed"""
