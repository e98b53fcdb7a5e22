"""Ratios of released figures, and of figures and spend, with intervals that hold.

Of two noisy figures x and y with known variances: all r for which x - r y cannot be told from 0 are
an interval (Fieller 1954), if y itself can be told from 0. Otherwise every r may be, and nothing is
said. Measures have noise of their own, so that no two figures go up and down together.

What personal budgets cut is missing from figures, never added. So a ratio is smallest if all that
was cut is missing below the line, and largest if it is missing above: each end is that of such a
pair, with the noise of what was cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.model.measure_spec import COUNTED_ONCE
from adsbpc.report.cells import Cell

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
    """After a slot, of everything from the first slot on or from `first_slot`. `value`, `low` and
    `high` are None where the denominator may be nothing."""

    name: str
    publisher: str
    slot: int
    value: float | None
    low: float | None
    high: float | None
    first_slot: int = 1


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
    report: Report, cells: Mapping[str, tuple[Cell, ...]], first: int, last: int
) -> list[Ratio]:
    """For everything and for each publisher, from the figures of some slots by metric, as far as
    measures and spend give them."""
    by_name = {
        metric: {cell.publisher: cell for cell in found if len(cell.keys) <= 1}
        for metric, found in cells.items()
    }
    names = dict.fromkeys([ALL_PUBLISHERS, *(name for own in by_name.values() for name in own)])
    return [
        Ratio(ratio, name, last, *ends, first)
        for name in names
        for ratio, ends in _of(
            report,
            {metric: own[name] for metric, own in by_name.items() if name in own},
            _paid(report, name, first, last),
        )
    ]


def divides_any_slots(metric: str) -> bool:
    """Whether its sum over slots in the middle of a campaign may be divided, or divide. Who was
    counted before is in none of them."""
    return metric not in COUNTED_ONCE


def _paid(report: Report, publisher: str, first: int, last: int) -> float:
    if report.spend is None:
        return 0.0
    name = None if publisher == ALL_PUBLISHERS else publisher
    return report.spend.until(last, name) - report.spend.until(first - 1, name)


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
            yield name, divided(cells[above], cells[below], report.lens.reach)


def _cost(paid: float, cell: Cell) -> _Ends:
    """Told only of a figure that is above nothing; an adjusted one may be nothing at all."""
    if cell.low <= 0:
        return _NOT_TOLD
    return paid / cell.estimate, paid / cell.high, paid / cell.low


def divided(above: Cell, below: Cell, reach: float) -> _Ends:
    """One figure by another, each with what was cut of it."""
    x, y = above.estimate, below.estimate
    var_x, var_y = above.standard_error**2, below.standard_error**2
    smallest = fieller(x, y + below.cut, var_x, var_y + below.cut_error**2, 0.0, reach)
    largest = fieller(x + above.cut, y, var_x + above.cut_error**2, var_y, 0.0, reach)
    if smallest is None or largest is None or below.low <= 0:
        return _NOT_TOLD
    return x / y, smallest[0], largest[1]
