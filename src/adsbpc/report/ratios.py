"""Ratios of released figures, and of figures and spend, with intervals that hold.

Of two noisy figures x and y with known variances: all r for which x - r y cannot be told from 0 are
an interval (Fieller 1954), if y itself can be told from 0. Otherwise every r may be, and nothing is
said. Measures have noise of their own, so that no two figures go up and down together.

What personal budgets cut is missing from figures, never added. So a ratio is smallest if all that
was cut is missing below the line, and largest if it is missing above: each end is that of such a
pair, with the noise of what was cut. Between the two there is a room, as there is of a single
figure, so that the ends share the noise (`Reach`): x - r y misses what is missing of x and r times
what is missing of y. They share as much as where there is least of it, among the r between the ends
that share nothing: a ratio between those is then missed as seldom as the level says, and another
one would have been missed anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS, Measure
from adsbpc.model.measure_spec import COUNTED_ONCE, PUBLISHER
from adsbpc.report.cells import Cell
from adsbpc.report.reach import Reach

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Spend beside a metric: per so many of it.
COSTS = {"cost per conversion": ("conversions", 1), "cost per thousand reached": ("reach", 1_000)}
RETURN = "return on spend"
# A metric, and the one that it is divided by.
OF_METRICS = {
    "value per conversion": ("value", "conversions"),
    "conversion rate": ("conversions", "reach"),
    "conversions per click": ("conversions", "clicks"),
    "frequency": ("impressions", "reach"),
}
METRICS = ("conversions", "value", "clicks", "impressions", "reach")


@dataclass(frozen=True)
class Ratio:
    """After a slot, of everything from the first slot on or from `first_slot`. `keys` are values of
    dimensions beyond publishers, by their names. `value`, `low` and `high` are None where the
    denominator may be nothing."""

    name: str
    publisher: str
    slot: int
    value: float | None
    low: float | None
    high: float | None
    first_slot: int = 1
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_of_everything(self) -> bool:
        return self.publisher == ALL_PUBLISHERS


def fieller(
    x: float, y: float, var_x: float, var_y: float, covariance: float, reach: float
) -> tuple[float, float] | None:
    """The interval of x / y, None if y cannot be told from 0."""
    square = reach**2
    a = y**2 - square * var_y
    if a <= 0:
        return None
    b = x * y - square * covariance
    c = x**2 - square * var_x
    root = sqrt(max(b**2 - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def ratios_of(
    report: Report, cells: Iterable[tuple[Measure, tuple[Cell, ...]]], first: int, last: int
) -> list[Ratio]:
    """From the figures of some slots, for every sum that two of these measures have, or that one
    has and spend is known of: everything first. Where two measures have a metric's sum, it is the
    first one's."""
    sums: dict[frozenset[tuple[str, str]], tuple[dict[str, str], dict[str, Cell]]] = {}
    for measure, found in cells:
        names = [dimension.name for dimension in measure.layout.dimensions]
        for cell in found:
            where = dict(zip(names, cell.keys, strict=False))
            _, by_metric = sums.setdefault(frozenset(where.items()), (where, {}))
            by_metric.setdefault(measure.metric, cell)
    paid: dict[tuple[str, ...], dict[tuple[str, ...], float]] = {}
    ratios = []
    for where, by_metric in sorted(sums.values(), key=lambda each: len(each[0])):
        kept = tuple(where)
        if kept not in paid:
            paid[kept] = (report.spend and report.spend.by(kept, first, last)) or {}
        further = {name: value for name, value in where.items() if name != PUBLISHER}
        publisher = where.get(PUBLISHER, ALL_PUBLISHERS)
        ratios += [
            Ratio(name, publisher, last, *ends, first, further)
            for name, ends in _of(report, by_metric, paid[kept].get(tuple(where.values()), 0.0))
        ]
    return ratios


def divides_any_slots(metric: str) -> bool:
    """Whether its sum over slots in the middle of a campaign may be divided, or divide. Who was
    counted before is in none of them."""
    return metric not in COUNTED_ONCE


# Value, low and high.
_Ends = tuple[float | None, float | None, float | None]
_NOT_TOLD: _Ends = (None, None, None)


def _of(report: Report, cells: Mapping[str, Cell], paid: float) -> Iterator[tuple[str, _Ends]]:
    if paid > 0:
        for name, (metric, per) in COSTS.items():
            if (cell := cells.get(metric)) is not None:
                yield name, _cost(per * paid, cell)
        if (value := cells.get("value")) is not None:
            yield RETURN, (value.estimate / paid, value.low / paid, value.high / paid)
    for name, (above, below) in OF_METRICS.items():
        if above in cells and below in cells:
            yield name, divided(cells[above], cells[below], report.lens.shared_reach)


def _cost(paid: float, cell: Cell) -> _Ends:
    """Told only of a figure that is above nothing; an adjusted one may be nothing at all."""
    if cell.low <= 0:
        return _NOT_TOLD
    return paid / cell.estimate, paid / cell.high, paid / cell.low


def divided(above: Cell, below: Cell, reach: Reach) -> _Ends:
    """One figure by another, each with what was cut of it."""
    ends = quotient_ends(above, below, 0.0, reach)
    if ends is None or below.low <= 0:
        return _NOT_TOLD
    return above.estimate / below.estimate, *ends


def quotient_ends(
    above: Cell, below: Cell, covariance: float, reach: Reach
) -> tuple[float, float] | None:
    """Of one figure by another whose noise has this covariance, None if it cannot be told."""

    def between(errors: float) -> tuple[float, float] | None:
        x, y = above.estimate, below.estimate
        own, other = above.standard_error, below.standard_error
        smallest = fieller(
            x, y + below.cut, own**2, hypot(other, below.cut_error) ** 2, covariance, errors
        )
        largest = fieller(
            x + above.cut, y, hypot(own, above.cut_error) ** 2, other**2, covariance, errors
        )
        return None if smallest is None or largest is None else (smallest[0], largest[1])

    plain = between(reach.plain)
    if plain is None:
        return None
    return between(_shared(above, below, covariance, plain, reach))


def _shared(
    above: Cell, below: Cell, covariance: float, ends: tuple[float, float], reach: Reach
) -> float:
    """What the two ends leave: as at the ratio between them that has the least room."""
    first, last = (max(end, 0.0) for end in ends)
    var_x = above.standard_error**2 + above.cut_error**2
    var_y = below.standard_error**2 + below.cut_error**2
    # Room in standard errors rises and falls once between 0 and more, or falls and rises.
    turns_at = (below.room * var_x + above.room * covariance) / (
        (below.room * covariance + above.room * var_y) or 1.0
    )
    return max(
        reach.with_room(
            above.room + ratio * below.room,
            sqrt(max(var_x + ratio**2 * var_y - 2 * ratio * covariance, 0.0)),
        )
        for ratio in (first, min(max(turns_at, first), last), last)
    )
