"""What the page's script needs to show any range of slots without a server.

Running totals, and how far they are off together: every range and every change follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from adsbpc.model import Measure
from adsbpc.model.cut import CAUTION, HIDING, SHOWN, UNEVEN
from adsbpc.model.measure_spec import PUBLISHER
from adsbpc.model.running_noise import Cut
from adsbpc.report import wording
from adsbpc.report.numbers import decimals_of
from adsbpc.report.ranges import totals_without_cut
from adsbpc.report.ratios import COSTS, EXTREMES, OF_METRICS, RETURN
from adsbpc.report.reach import STEP

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# More would make a page slow: then ranges start and end at every so many slots, and levels below
# publishers are left to files.
_MOST_BOUNDARIES = 400
_MOST_VALUES = 100_000
_SPEND = "spend"
_USUAL_PERIODS = {"hour": (24, 168), "day": (7, 28), "week": (4, 13), "month": (3, 12)}


def explorer_of(report: Report) -> dict[str, Any]:
    places = _boundaries(report)
    timeline = report.timeline
    measures = report.explored
    return {
        "reach": report.lens.shared_reach.by_room,
        "reach_step": STEP,
        "extremes": EXTREMES,
        "word": timeline.word,
        "periods": _USUAL_PERIODS[timeline.word],
        "boundaries": places,
        "first": [timeline.choice(b + 1, ends=False) for b in places[:-1]],
        "last": [timeline.choice(b, ends=True) for b in places[1:]],
        "names": [timeline.name(b) for b in places[1:]],
        "shown": [each.name for each in measures].index(report.measure.name),
        "measures": [_measure(report, each, places) for each in measures],
        "spend": _spend(report, places),
        "ratios": _ratios(report),
    }


def _boundaries(report: Report) -> list[int]:
    """After how many slots a range may begin or end, counted from the newest back."""
    newest = report.newest.slot
    widest = max(each.layout.sizes[1] for each in report.explored)
    every = max(-(-newest // _MOST_BOUNDARIES), -(-newest * widest // _MOST_VALUES))
    return sorted({0, *range(newest, 0, -every)})


def _measure(report: Report, measure: Measure, places: Sequence[int]) -> dict[str, Any]:
    assert report.noise_of is not None
    measured, noise = report.of_measure(measure), report.noise_of(measure.name, places)
    totals = [measured[b - 1].running_totals for b in places[1:]]
    counted = [totals_without_cut(measured[b - 1]) for b in places[1:]]
    layout, depth = measure.layout, 1
    while depth < len(layout.dimensions) and layout.sizes[depth + 1] * len(places) <= _MOST_VALUES:
        depth += 1
    adjustment = report.lens_of(measured).adjustment
    adjusted = None
    if adjustment is not None:
        adjusted = [
            [_short(adjustment.running_totals[keys][b] for b in places) for keys in layout.names(k)]
            for k in range(depth + 1)
        ]
    return {
        "name": measure.name,
        "label": f"{measure.name}, {measure.currency}" if measure.currency else measure.name,
        "metric": measure.metric,
        "title": wording.counted_name(measure),
        "once": layout.once,
        "levels": [each.name for each in layout.dimensions[:depth]],
        "left_out": [each.name for each in layout.dimensions[depth:]],
        "values": [each.values for each in layout.dimensions[:depth]],
        "totals": [
            [_short((0.0, *series)) for series in zip(*(each[k] for each in counted), strict=True)]
            for k in range(depth + 1)
        ],
        "adjusted": adjusted,
        "weights": [_short(_trimmed(row)) for row in noise.weights],
        "variances": _short(noise.variances),
        "stretches": [
            {
                "first": each.first,
                "times": [_short(t) for t in each.times[: depth + 1]],
                "together": each.together,
            }
            for each in noise.stretches
        ],
        "cut": _cut(noise.cut, depth),
        "paid": [_paid(report, measure, k, places) for k in range(depth + 1)],
        "decimals": decimals_of(measure.metric, totals[-1][1].standard_error),
    }


def _ratios(report: Report) -> list[dict[str, Any]]:
    """Which ratios there are: of measures, by their number, and of spend. The same as so far."""
    found: dict[str, int] = {}
    for place, each in enumerate(report.explored):
        if each.layout.dimensions[0].name == PUBLISHER:
            found.setdefault(each.metric, place)
    parts: dict[str, tuple[str, str, int]] = {
        **{name: (_SPEND, metric, per) for name, (metric, per) in COSTS.items()},
        RETURN: ("value", _SPEND, 1),
        **{name: (above, below, 1) for name, (above, below) in OF_METRICS.items()},
    }
    return [
        {"name": each.name, "over": found.get(above, _SPEND), "under": found.get(below, _SPEND),
         "times": times}
        for each in report.ratios
        if each.is_of_everything
        for above, below, times in (parts[each.name],)
    ]  # fmt: skip


def _spend(report: Report, places: Sequence[int]) -> list[float] | None:
    """Paid so far, to all publishers together."""
    return None if report.spend is None else _short(report.spend.until(b) for b in places)


def _paid(
    report: Report, measure: Measure, depth: int, places: Sequence[int]
) -> list[list[float]] | None:
    """Paid so far for each sum of a view, None if that is not known."""
    names = [each.name for each in measure.layout.dimensions[:depth]]
    if report.spend is None or report.spend.by(names, 1, 0) is None:
        return None
    ranges = [report.spend.by(names, a + 1, b) or {} for a, b in pairwise(places)]
    return [
        _short(accumulate((each.get(keys, 0.0) for each in ranges), initial=0.0))
        for keys in measure.layout.names(depth)
    ]


def _cut(cut: Cut | None, depth: int) -> dict[str, Any] | None:
    if cut is None:
        return None
    return {
        "is_added": cut.is_added,
        "squared": cut.squared,
        "parts": [_short(each) for each in cut.parts[: depth + 1]],
        "columns": [
            {"counts": _short(each.counts), "variances": _short(each.variances)}
            for each in cut.columns
        ],
        "uneven": cut.trust.uneven,
        "unsure": UNEVEN,
        "trembling": cut.trust.trembling,
        "power": cut.trust.power,
        "expected": cut.expected,
        "caution": CAUTION,
        "at_least": cut.at_least,
        "shown": SHOWN,
        "hiding": HIDING,
    }


def _trimmed(row: Sequence[float]) -> list[float]:
    """Without the zeros at its end: later rows are in no earlier total."""
    found = list(row)
    while found and found[-1] == 0:
        found.pop()
    return found


def _short(values: Any) -> list[float]:
    """Digits beyond these are seen nowhere, and make a page large."""
    return [float(f"{value:.10g}") for value in values]
