"""What stands on top of a page: the total of every measure, and every ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adsbpc.report.cells import Cell
from adsbpc.report.numbers import amount, decimals_of, interval

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class Figure:
    """One number of everything so far, as it is shown."""

    label: str
    value: str
    interval: str


def headline_of(report: Report) -> list[Figure]:
    """The total of every measure and every ratio, so far."""
    totals = [
        _total(f"{measure.name}, {measure.currency}" if measure.currency else measure.name,
               measure.metric, report.newest_totals(measure)[-1])
        for measure in report.explored
    ]  # fmt: skip
    ratios = [
        Figure(each.name, f"{each.value:,.2f}", f"{each.low:,.2f} to {each.high:,.2f}")
        if each.value is not None
        else Figure(each.name, "cannot be told", "yet")
        for each in report.ratios
        if each.is_of_everything
    ]
    return [*totals, *ratios]


def _total(label: str, metric: str, cell: Cell) -> Figure:
    digits = decimals_of("value" if metric == "value" else "conversions", cell.standard_error)
    return Figure(label, amount(cell.estimate, digits), interval(cell.low, cell.high, digits))
