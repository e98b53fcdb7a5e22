"""Sums over any range of slots, from what was released: they cost nothing more.

A range is the difference of two running totals, and what changed between two ranges is that of two
differences. Their noise follows from how far running totals are off together.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from math import hypot, sqrt
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS, Answers, Measure, Measured, RunningNoise
from adsbpc.model.cut import squared_error
from adsbpc.model.layout import view_name
from adsbpc.model.running_noise import Range
from adsbpc.report.cells import Cell, Lens
from adsbpc.report.formats import plain
from adsbpc.report.ratios import difference_ends, quotient_ends

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Of a measure, after so many slots.
NoiseOf = Callable[[str, Sequence[int]], RunningNoise]
Span = tuple[int, int]
# By how many dimensions a view keeps, then by its sums.
Totals = list[list[float]]


def cells_between(
    report: Report, measure: Measure, first: int, last: int, lens: Lens | None = None
) -> tuple[Cell, ...]:
    """Of every view, the finest first, for the sum over these slots."""
    assert report.noise_of is not None
    noise = report.noise_of(measure.name, (first - 1, last))
    measured = report.of_measure(measure)
    totals = totals_without_cut(measured[last - 1])
    if first > 1:
        totals = less(totals, totals_without_cut(measured[first - 2]))
    found = range_answers(measure, noise, (0, 1), totals, f"range {first}..{last}")
    lens = lens or report.lens_of(measured)
    # What was cut is shared out as the newest release says.
    shared_by = measured[-1].model_copy(update={"slot": last})
    return tuple(lens.cells(shared_by, found, len(totals) - 1))


def range_answers(
    measure: Measure, noise: RunningNoise, places: Range, totals: Totals, query: str
) -> list[Answers]:
    """Of every view, for the range between two boundaries; `totals` are without what was cut."""
    own, added = noise.together(places, places), noise.added(places)
    first, last = noise.boundaries[places[0]] + 1, noise.boundaries[places[1]]
    found = []
    for depth, sums in enumerate(totals):
        values, errors = [], []
        for place, value in enumerate(sums):
            part = noise.part_of(depth, place)
            values.append(value + part * added.total)
            errors.append(sqrt(squared_error(noise.of_sum(own, depth, place), part, added)))
        found.append(
            Answers(
                tuple(each.name for each in measure.layout.dimensions[:depth]),
                query, tuple(values), hypot(*errors) / sqrt(len(errors)),
                (first, last), added.missing, standard_errors=tuple(errors), added=added.total,
            )
        )  # fmt: skip
    return found


def less(totals: Totals, before: Totals) -> Totals:
    return [
        [after - earlier for after, earlier in zip(*sums, strict=True)]
        for sums in zip(totals, before, strict=True)
    ]


def totals_without_cut(measured: Measured) -> Totals:
    """Running totals without what was added because it was cut, by view."""
    return [
        [
            value - answers.added * share
            for value, share in zip(answers.values, measured.shares(depth), strict=True)
        ]
        for depth, answers in enumerate(measured.running_totals)
    ]


@dataclass(frozen=True)
class Change:
    """What changed from `before` to `after`, of one sum of a measure: the difference, and the ratio
    after / before, which is None where `before` may be nothing."""

    after: Cell
    before: Cell
    difference: float
    low: float
    high: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None


def changes_between(report: Report, measure: Measure, after: Span, before: Span) -> list[Change]:
    """Of every view, the finest first; of numbers as they were released.

    What was cut is missing from either sum and is never negative. Of both, parts are missing that
    are as much alike as those of a ratio, so that a difference may be 0 where a ratio may be 1.
    """
    assert report.noise_of is not None
    ends = sorted({after[0] - 1, after[1], before[0] - 1, before[1]})
    noise = report.noise_of(measure.name, ends)
    spans = [(ends.index(first - 1), ends.index(last)) for first, last in (after, before)]
    both = noise.together(spans[0], spans[1])
    both_added = noise.added_together(spans[0], spans[1])
    places = {
        keys: place
        for depth in range(len(measure.layout.dimensions) + 1)
        for place, keys in enumerate(measure.layout.names(depth))
    }
    lens = Lens(report.timeline, report.level, None)
    cells = [cells_between(report, measure, *span, lens) for span in (after, before)]
    reach, found = report.lens.reach, []
    for x, y in zip(*cells, strict=True):
        at = len(x.keys), places[x.keys]
        shared = noise.of_sum(both, *at) + noise.part_of(*at) ** 2 * both_added
        of_ratio = quotient_ends(x, y, shared, reach) if y.estimate > 0 else None
        ratio = None if of_ratio is None else x.estimate / y.estimate
        found.append(
            Change(
                x, y, x.estimate - y.estimate, *difference_ends(x, y, shared, reach),
                ratio, *(of_ratio or (None, None)),
            )
        )  # fmt: skip
    return found


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
            paid = [
                None if report.spend is None else report.spend.by(own[:depth], first, last)
                for depth in range(len(own) + 1)
            ]
            for cell in cells_between(report, measure, first, last):
                keys = dict(zip(own, cell.keys, strict=False))
                spend = paid[len(keys)]
                row = (
                    monday, last - first + 1, measure.name, view_name(tuple(keys)),
                    *(keys.get(name, ALL_PUBLISHERS) for name in names),
                    cell.estimate, cell.standard_error, cell.low, cell.high,
                    # Empty where it is not known.
                    "" if spend is None else spend.get(cell.keys, 0.0),
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
