"""Ratios of released figures, and of figures and spend, with intervals that hold.

Of two noisy figures x and y with known variances: all r for which x - r y cannot be told from 0 are
an interval (Fieller 1954), if y itself can be told from 0. Otherwise every r may be, and nothing is
said. What was cut widens a figure's own interval upwards; the interval of a ratio holds for every
pair within both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report.cells import Cell

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class Ratio:
    """`value`, `low` and `high` are None where the denominator may be nothing."""

    name: str
    publisher: str
    slot: int
    value: float | None
    low: float | None
    high: float | None


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


def ratios_of(report: Report) -> list[Ratio]:
    """After the newest slot, for everything and for each publisher: cost per conversion, return on
    spend, and value per conversion, as far as measures and spend give them."""
    cells = {
        metric: {cell.publisher: cell for cell in report.totals_of(metric)}
        for metric in ("conversions", "value")
    }
    counts, values = cells["conversions"], cells["value"]
    names = list(dict.fromkeys([ALL_PUBLISHERS, *counts, *values]))
    found = []
    for name in names:
        found += list(_of(report, name, counts.get(name), values.get(name)))
    return found


def _of(report: Report, name: str, count: Cell | None, value: Cell | None) -> Iterator[Ratio]:
    slot, reach = report.newest.slot, report.lens.reach
    if report.spend is not None:
        paid = report.spend.until(slot, None if name == ALL_PUBLISHERS else name)
        if count is not None and paid > 0:
            told = count.low > 0
            yield Ratio(
                "cost per conversion", name, slot, paid / count.estimate if told else None,
                paid / count.high if told else None, paid / count.low if told else None,
            )  # fmt: skip
        if value is not None and paid > 0:
            yield Ratio(
                "return on spend", name, slot, value.estimate / paid, value.low / paid,
                value.high / paid,
            )  # fmt: skip
    if count is not None and value is not None:
        ratio = _value_per_conversion(name, slot, value, count, reach)
        yield _with_cut(ratio, value, count) if report.estimates_cut else ratio


def _value_per_conversion(name: str, slot: int, value: Cell, count: Cell, reach: float) -> Ratio:
    """Two measures have noise of their own, so that nothing goes up and down together."""
    ends = fieller(
        value.estimate, count.estimate, value.standard_error**2, count.standard_error**2, 0.0, reach
    )
    if ends is None or count.low <= 0:
        return Ratio("value per conversion", name, slot, None, None, None)
    return Ratio("value per conversion", name, slot, value.estimate / count.estimate, *ends)


def _with_cut(ratio: Ratio, value: Cell, count: Cell) -> Ratio:
    """What was cut is known together, of either measure: both ends are those of the pairs within
    both intervals that lie furthest apart."""
    if ratio.low is None or ratio.high is None:
        return ratio
    furthest = value.low / count.high, value.high / count.low
    return replace(ratio, low=min(ratio.low, furthest[0]), high=max(ratio.high, furthest[1]))
