"""Ratios of released figures, and of figures and spend, with intervals that hold.

Of two noisy figures x and y with known variances: all r for which x - r y cannot be told from 0 are
an interval (Fieller 1954), if y itself can be told from 0. Otherwise every r may be, and nothing is
said. Measures have noise of their own, so that no two figures go up and down together.

What was cut is missing from figures, never added, and whoever is cut in one of them is cut in the
other. So the part that is missing of what may be missing of one figure is taken to be at most
`APART` from that of the other, and the ends are those of the pairs of parts with which a ratio is
smallest and largest. They do not share the noise as those of a figure do (`Reach`): the room
between them rests on that assumption. Beside something public there is none, and the ends of a
figure are those of its ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS, Measure
from adsbpc.model.measure_spec import COUNTED_ONCE, PUBLISHER
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
# So far apart, at most, are the parts that are missing of what may be missing of two figures.
APART = 0.125
# Such parts above and below the line with which a ratio is smallest, and with which it is largest.
EXTREMES = ((0.0, APART), (1 - APART, 1.0), (APART, 0.0), (1.0, 1 - APART))


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
            yield name, divided(cells[above], cells[below], report.lens.reach)


def _cost(paid: float, cell: Cell) -> _Ends:
    """Told only of a figure that is above nothing; an adjusted one may be nothing at all."""
    if cell.low <= 0:
        return _NOT_TOLD
    return paid / cell.estimate, paid / cell.high, paid / cell.low


def divided(above: Cell, below: Cell, reach: float) -> _Ends:
    """One figure by another, each with what was cut of it."""
    ends = quotient_ends(above, below, 0.0, reach)
    if ends is None or below.low <= 0:
        return _NOT_TOLD
    return above.estimate / below.estimate, *ends


def quotient_ends(
    above: Cell, below: Cell, covariance: float, reach: float
) -> tuple[float, float] | None:
    """Of one figure by another whose noise has this covariance, None if it cannot be told."""
    found = [
        fieller(
            above.estimate + of_above * above.cut,
            below.estimate + of_below * below.cut,
            hypot(above.standard_error, of_above * above.cut_error) ** 2,
            hypot(below.standard_error, of_below * below.cut_error) ** 2,
            covariance,
            reach,
        )
        for of_above, of_below in EXTREMES
    ]
    told = [ends for ends in found if ends is not None]
    if len(told) < len(found):
        return None
    return min(low for low, _ in told), max(high for _, high in told)


def difference_ends(
    above: Cell, below: Cell, covariance: float, reach: float
) -> tuple[float, float]:
    """Of one figure less another: 0 is between them where 1 is between those of their ratio."""
    squares = above.standard_error**2 + below.standard_error**2
    noise = reach * sqrt(max(squares - 2 * covariance, 0.0))
    differences = [
        above.estimate + of_above * above.cut - below.estimate - of_below * below.cut
        for of_above, of_below in EXTREMES
    ]
    return min(differences) - noise, max(differences) + noise
