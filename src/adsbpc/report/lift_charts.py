"""The curve of an effect with both bands, as a Vega-Lite specification, and the card around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adsbpc.report.charts import Paint, Spec, horizontal, labels, vertical
from adsbpc.report.lift import Lift
from adsbpc.report.lift_words import (
    arm_rows,
    calibration_rows,
    caused_by,
    newest_lifts,
    people_words,
    sentence,
)
from adsbpc.report.numbers import amount, decimals_of, interval
from adsbpc.report.palette import SERIES
from adsbpc.report.rendering import render

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class LiftFigure:
    title: str
    sentence: str
    colour: str
    curve: list[Lift]


def lift_figures(report: Report) -> list[LiftFigure]:
    """One for each measure and pair of arms; further dimensions are told in words and in files."""
    found: dict[tuple[str, str, str], list[Lift]] = {}
    for each in report.lifts:
        if not each.keys:
            found.setdefault((each.measure, each.arm, each.control), []).append(each)
    return [
        LiftFigure(
            f"{measure} by {caused_by(curve[-1])}: {arm} against {control}",
            sentence(report, curve[-1]), f"series-{place % SERIES + 1}", curve,
        )
        for place, ((measure, arm, control), curve) in enumerate(found.items())
    ]  # fmt: skip


def lift_card(report: Report) -> str:
    """HTML of the card; nothing where there are no arms."""
    if report.spec.lift is None:
        return ""
    return render(
        "lift.html",
        report=report,
        figures=lift_figures(report),
        further=[sentence(report, each) for each in newest_lifts(report) if each.keys],
        arms=arm_rows(report),
        calibrations=calibration_rows(report),
        people=people_words(report),
    )


def lift_curves(report: Report, paint: Paint) -> list[Spec]:
    return [_curve(report, each, paint) for each in lift_figures(report)]


def _curve(report: Report, figure: LiftFigure, paint: Paint) -> Spec:
    rows = [_row(report, each) for each in figure.curve]
    colour = paint(figure.colour)
    height = vertical(
        [{"low": row.get("band_low", row["low"]), "high": row.get("band_high", row["high"])}
         for row in rows], "~s", ticks=4,
    )  # fmt: skip
    band = {
        "mark": {"type": "area", "color": colour, "opacity": 0.14},
        "transform": [{"filter": "isValid(datum.band_low)"}],
        "encoding": {"y": height | {"field": "band_low"}, "y2": {"field": "band_high"}},
    }
    titles = {
        "when": report.timeline.word, "amount": "incremental", "interval": "one look",
        "band": "all looks",
    }  # fmt: skip
    return {
        "description": f"{figure.title}: incremental, with an interval for one look and for all",
        "width": "container",
        "height": "container",
        "data": {"values": rows},
        "params": [labels(report, 0)],
        "encoding": {"x": horizontal(report, 0)},
        "layer": [
            *([band] if any("band_low" in row for row in rows) else []),
            {
                "mark": {"type": "area", "color": colour, "opacity": 0.24},
                "encoding": {"y": height | {"field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {
                    "type": "rule",
                    "description": "no effect",
                    "color": paint("ink"),
                    "opacity": 0.5,
                    "strokeDash": [4, 3],
                },
                "encoding": {"y": {"datum": 0}, "x": {"value": 0}, "x2": {"value": "width"}},
            },
            {
                "mark": {"type": "line", "color": colour, "strokeWidth": 2.25},
                "encoding": {"y": height},
            },
            {
                "mark": {
                    "type": "point",
                    "filled": True,
                    "size": 200,
                    "color": colour,
                    "opacity": 0,
                },
                "encoding": {
                    "y": height,
                    "tooltip": [
                        {"field": key, "type": "nominal", "title": title}
                        for key, title in titles.items()
                    ],
                },
            },
        ],
    }


def _row(report: Report, lift: Lift) -> dict[str, Any]:
    metric = next(each.metric for each in report.spec.measures if each.name == lift.measure)
    shown = decimals_of(metric, lift.standard_error)
    row: dict[str, Any] = {
        "boundary": lift.slot, "estimate": lift.incremental, "low": lift.low, "high": lift.high,
        "when": report.timeline.name(lift.slot), "amount": amount(lift.incremental, shown),
        "interval": interval(lift.low, lift.high, shown), "band": "not yet",
    }  # fmt: skip
    if lift.band_low is not None and lift.band_high is not None:
        row |= {
            "band_low": lift.band_low,
            "band_high": lift.band_high,
            "band": interval(lift.band_low, lift.band_high, shown),
        }
    return row
