"""Sums over any range of slots, from what was released: they cost nothing more.

A range is the difference of two running totals. Its noise is not: under personal budgets slots have
noise in common, so that the mechanism says how large it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS, Answers, Measure
from adsbpc.model.layout import view_name
from adsbpc.report.cells import Cell
from adsbpc.report.formats import plain

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Of a measure, first and last slot: standard errors by depth, and that of what was cut.
RangeErrors = Callable[[str, int, int], tuple[list[float], float]]


def cells_between(report: Report, measure: Measure, first: int, last: int) -> tuple[Cell, ...]:
    """Of every view, the finest first, for the sum over these slots."""
    assert report.range_errors is not None
    errors, cut_error = report.range_errors(measure.name, first, last)
    measured = report.of_measure(measure)
    totals = measured[last - 1].running_totals
    before = measured[first - 2].running_totals if first > 1 else None
    found = []
    for depth, answers in enumerate(totals):
        values, cut = answers.values, answers.cut
        if before is not None:
            earlier = before[depth]
            values = tuple(a - b for a, b in zip(values, earlier.values, strict=True))
            cut = max(cut - earlier.cut, 0.0)
        found.append(
            Answers(
                answers.view, f"range {first}..{last}", values, errors[depth], (first, last), cut,
                cut_error,
            )
        )  # fmt: skip
    lens = report.lens_of(measured)
    return tuple(lens.cells(measured[last - 1], found, len(totals) - 1))


def weekly_csv(report: Report) -> str:
    """For marketing mix models: a row for each week, measure and cell, Mondays first."""
    names = list(
        dict.fromkeys(d.name for each in report.spec.measures for d in each.layout.dimensions)
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["week", "slots", "measure", "view", *names, *_FIGURES, "spend"])
    for monday, first, last in _weeks(report):
        for measure in report.spec.measures:
            own = [dimension.name for dimension in measure.layout.dimensions]
            for cell in cells_between(report, measure, first, last):
                keys = dict(zip(own, cell.keys, strict=False))
                row = (
                    monday, last - first + 1, measure.name, view_name(tuple(keys)),
                    *(keys.get(name, ALL_PUBLISHERS) for name in names),
                    cell.estimate, cell.standard_error, cell.low, cell.high,
                    _spend(report, cell, first, last),
                )  # fmt: skip
                writer.writerow([plain(value) for value in row])
    return text.getvalue()


_FIGURES = ("value", "standard_error", "low", "high")


def _weeks(report: Report) -> Iterator[tuple[date, int, int]]:
    """Monday, first and last slot of every week with a released slot; slots count for the week that
    they start in."""

    def monday_of(slot: int) -> date:
        day = report.timeline.moment(slot - 1).date()
        return day - timedelta(days=day.weekday())

    for monday, group in groupby(range(1, report.newest.slot + 1), key=monday_of):
        own = list(group)
        yield monday, own[0], own[-1]


def _spend(report: Report, cell: Cell, first: int, last: int) -> float | str:
    """What was paid for it in the week, where that is known: of everything and of publishers."""
    if report.spend is None or len(cell.keys) > 1:
        return ""
    publisher = cell.keys[0] if cell.keys else None
    return report.spend.until(last, publisher) - report.spend.until(first - 1, publisher)
