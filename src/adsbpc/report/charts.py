"""Charts as Vega-Lite specifications with their data inside.

The horizontal axis counts boundaries between slots, and its labels are made here: dates then are
those of the campaign's time zone wherever the page is read, and no hour is drawn twice or left out
when clocks change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adsbpc.model import OTHER_PUBLISHER
from adsbpc.report.cells import Cell
from adsbpc.report.numbers import amount, decimals_of, interval
from adsbpc.report.palette import SERIES
from adsbpc.report.wording import level_name, metric_name

if TYPE_CHECKING:
    from adsbpc.report.report import Report

Spec = dict[str, Any]
Paint = Callable[[str], str]

FONT = "-apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"
# More points than pixels only make a page slow.
_MOST_TREND_POINTS = 400
_MOST_BARS = {"hour": 72, "day": 62, "week": 53, "month": 60}
# A campaign that has just begun shows its first days beside the room for more.
_FEWEST_SLOTS_DRAWN = 7


@dataclass(frozen=True)
class PublisherLine:
    """A publisher that has a line, and the name of its colour."""

    publisher: str
    colour: str


def drawn_publishers(report: Report) -> tuple[PublisherLine, ...]:
    """The largest ones, in order."""
    names = [standing.publisher for standing in report.standings.publishers[:SERIES]]
    listed = [name for name in names if name != OTHER_PUBLISHER]
    colours = {name: f"series-{place}" for place, name in enumerate(listed, start=1)}
    return tuple(PublisherLine(name, colours.get(name, "series-other")) for name in names)


def trend(report: Report, paint: Paint) -> Spec:
    """Running totals of the largest publishers with bands; the signal `picked` dims the others,
    and `from` is where the totals start."""
    drawn = drawn_publishers(report)
    kept = {each.publisher for each in drawn}
    newest = report.newest.slot
    every = -(-newest // _MOST_TREND_POINTS)
    # Counted from the newest slot back, so that it is always there.
    slots = sorted(range(newest, 0, -every))
    # What holds for all slots at once lies behind, and lighter.
    areas = [("band_low", "band_high", 0.1)] if report.band else []
    areas.append(("low", "high", 0.16))
    # Nothing was counted before the first slot: that is known without noise.
    rows = [
        dict.fromkeys(("boundary", "estimate", *(end for each in areas for end in each[:2])), 0)
        | {"publisher": each.publisher}
        for each in drawn
    ]
    rows += [
        _row(report, cell) | {"boundary": cell.slot}
        for cell in report.running_totals(slots)
        if cell.publisher in kept
    ]
    colour = {
        "field": "publisher",
        "type": "nominal",
        "scale": {
            "domain": [each.publisher for each in drawn],
            "range": [paint(each.colour) for each in drawn],
        },
        "legend": None,
    }
    in_front = "picked === '' || datum.publisher === picked"
    height = vertical([_outermost(row) for row in rows], ",~f", ticks=5)

    def seen(strong: float, dimmed: float) -> Spec:
        return {"condition": {"test": in_front, "value": strong}, "value": dimmed}

    return {
        "description": f"Running totals of {metric_name(report)} with {level_name(report)} bands",
        "width": "container",
        "height": "container",
        "data": {"values": rows},
        "params": [
            {"name": "picked", "value": ""},
            {"name": "from", "value": 0},
            labels(report, 0),
        ],
        "encoding": {"x": horizontal(report, 0), "color": colour},
        "layer": [
            *(
                {
                    "mark": {"type": "area"},
                    # Long campaigns have no band after some slots.
                    **(
                        {"transform": [{"filter": f"isValid(datum.{low})"}]} if low != "low" else {}
                    ),
                    "encoding": {
                        "y": height | {"field": low},
                        "y2": {"field": high},
                        "opacity": seen(opacity, 0.03),
                    },
                }
                for low, high, opacity in areas
            ),
            {
                "mark": {"type": "line", "strokeWidth": 2.25, "strokeJoin": "round"},
                "encoding": {"y": height, "opacity": seen(1, 0.15)},
            },
            _points(report, height, paint),
        ],
    }


def _points(report: Report, height: Spec, paint: Paint) -> Spec:
    """Seen when pointed at, with their numbers."""
    return {
        "transform": [{"filter": "datum.boundary > from"}],
        "params": [
            {
                "name": "hovered",
                "select": {"type": "point", "on": "pointerover", "clear": "pointerout"},
            }
        ],
        # Large enough for a finger to meet; the stroke leaves a small dot to see.
        "mark": {
            "type": "point",
            "filled": True,
            "size": 320,
            "stroke": paint("card"),
            "strokeWidth": 9,
        },
        "encoding": {
            "y": height,
            "opacity": {
                "condition": {"param": "hovered", "empty": False, "value": 1},
                "value": 0,
            },
            "tooltip": _tooltip(report, "so far"),
        },
    }


def bars(report: Report, cells: Sequence[Cell], colour: str, paint: Paint) -> Spec:
    """One publisher's slots, each alone; bars that cannot be told from zero are pale."""
    rows = [
        _row(report, cell)
        | {
            "left": cell.slot - 0.88,
            "middle": cell.slot - 0.5,
            "right": cell.slot - 0.12,
            "zero": 0,
            "noisy": cell.noisy,
        }
        for cell in cells
    ]
    first = cells[0].slot - 1
    height = vertical(rows, "~s", ticks=3)
    return {
        "description": (
            f"{metric_name(report)} of each {report.timeline.word}, {cells[0].publisher}, with "
            f"{level_name(report)} intervals"
        ),
        "width": "container",
        "height": "container",
        "data": {"values": rows},
        "params": [labels(report, first)],
        "encoding": {"tooltip": _tooltip(report, f"this {report.timeline.word}")},
        "layer": [
            {
                "mark": {"type": "rect", "color": paint(colour)},
                "encoding": {
                    "x": horizontal(report, first, ticks=4) | {"field": "left"},
                    "x2": {"field": "right"},
                    "y": height,
                    "y2": {"field": "zero"},
                    "opacity": {"condition": {"test": "datum.noisy", "value": 0.3}, "value": 0.85},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1, "color": paint("ink"), "opacity": 0.6},
                "encoding": {
                    "x": {"field": "middle", "type": "quantitative"},
                    "y": height | {"field": "low"},
                    "y2": {"field": "high"},
                },
            },
        ],
    }


def slots_with_bars(report: Report) -> range:
    newest = report.newest.slot
    return range(max(newest - _MOST_BARS[report.timeline.word], 0) + 1, newest + 1)


def config(paint: Paint) -> Spec:
    """How every chart looks."""
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": paint("quiet"),
            "titleColor": paint("quiet"),
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "gridColor": paint("line"),
            "domainColor": paint("line"),
            "tickColor": paint("line"),
        },
        "legend": {"labelColor": paint("ink"), "labelFontSize": 12, "labelLimit": 220},
    }


def _row(report: Report, cell: Cell) -> dict[str, Any]:
    shown = decimals_of(report.measure.metric, cell.standard_error)
    return {
        "publisher": cell.publisher,
        "estimate": cell.estimate,
        "low": cell.low,
        "high": cell.high,
        "when": report.timeline.name(cell.slot),
        "amount": amount(cell.estimate, shown),
        "interval": interval(cell.low, cell.high, shown),
        **(_band(cell, shown) if report.band else {}),
    }


def _band(cell: Cell, shown: int) -> dict[str, Any]:
    if cell.band_low is None or cell.band_high is None:
        return {"band": ""}
    return {
        "band_low": cell.band_low,
        "band_high": cell.band_high,
        "band": interval(cell.band_low, cell.band_high, shown),
    }


def _outermost(row: Spec) -> Spec:
    return {"low": row.get("band_low", row["low"]), "high": row.get("band_high", row["high"])}


def _tooltip(report: Report, count: str) -> list[Spec]:
    titles = {
        "publisher": "publisher",
        "when": report.timeline.word,
        "amount": count,
        "interval": f"{level_name(report)} interval",
    }
    if report.band and count == "so far":
        titles["band"] = "all at once"
    return [{"field": key, "type": "nominal", "title": title} for key, title in titles.items()]


def _last_boundary(report: Report, first: int) -> int:
    room = min(_FEWEST_SLOTS_DRAWN, report.spec.campaign.slots)
    return max(report.newest.slot, first + room if first == 0 else 0)


def labels(report: Report, first: int) -> Spec:
    ticks = report.timeline.ticks(first, _last_boundary(report, first))
    return {"name": "labels", "value": {str(boundary): label for boundary, label in ticks.items()}}


def horizontal(report: Report, first: int, ticks: int | None = None) -> Spec:
    last = _last_boundary(report, first)
    boundaries = list(report.timeline.ticks(first, last))
    if ticks is not None:
        boundaries = boundaries[:: -(-len(boundaries) // ticks)]
    return {
        "field": "boundary",
        "type": "quantitative",
        "scale": {"domain": [first, last], "nice": False},
        "axis": {
            "title": None,
            "values": boundaries,
            "labelExpr": "labels[datum.value]",
            "labelOverlap": "greedy",
            "labelFlush": False,
            "offset": 6,
            "grid": False,
        },
    }


def vertical(rows: Sequence[Spec], format: str, ticks: int) -> Spec:
    return {
        "field": "estimate",
        "type": "quantitative",
        "scale": {
            "domainMin": min(0.0, *(row["low"] for row in rows)),
            "domainMax": max(0.0, *(row["high"] for row in rows)),
            "nice": False,
        },
        "axis": {
            "title": None,
            "format": format,
            # SI prefixes would write zero as "0k".
            "labelExpr": "datum.value === 0 ? '0' : datum.label",
            "tickCount": ticks,
            "domain": False,
            "ticks": False,
        },
    }
