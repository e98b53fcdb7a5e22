"""What pages with a report are made of: masthead, cards, data of the charts, style and scripts.

The stand-alone page and the dashboard put the same parts together.

Names come from campaign files and may hold anything: text goes through `escape`, data through
`json_in_html`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import TYPE_CHECKING, Any

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import charts, sections
from adsbpc.report.cells import Cell
from adsbpc.report.palette import DARK, LIGHT, variable, variables
from adsbpc.report.wording import summary

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class Parts:
    """HTML of the masthead and the cards, and what the script needs to draw the charts in them."""

    masthead: str
    cards: str
    data: dict[str, Any]


def parts_of(report: Report, download: str) -> Parts:
    """`download` is the HTML that stands beside the table's heading."""
    drawn = charts.drawn_publishers(report)
    bars = [(ALL_PUBLISHERS, "series-other"), *((each.publisher, each.colour) for each in drawn)]
    masthead = Template(resource("masthead.html")).substitute(
        name=escape(report.spec.campaign.name),
        summary=escape(summary(report)),
        facts=sections.facts(report),
    )
    cards = Template(resource("cards.html")).substitute(
        trend_note=escape(sections.trend_note(report, len(drawn))),
        chips=sections.chips(drawn),
        slots_title="Day by day" if report.timeline.word == "day" else "Hour by hour",
        slots_note=escape(sections.slots_note(report, len(charts.slots_with_bars(report)))),
        multiples=sections.multiples(bars),
        shares=sections.shares(report, drawn),
        models=sections.models_compared(report, drawn),
        download=download,
        table_note=escape(sections.table_note(report)),
        table=sections.table(report),
        gauges=sections.gauges(
            report.promise.guarantee.scope, report.campaign_budget, report.scope_budget
        ),
        promise=sections.promise(report),
    )
    data = {
        "config": charts.config(variable),
        "trend": charts.trend(report, variable),
        "bars": _bars(report, bars),
        "publishers": [each.publisher for each in drawn],
    }
    return Parts(masthead, cards, data)


def _bars(report: Report, publishers: list[tuple[str, str]]) -> list[charts.Spec]:
    def publisher(cell: Cell) -> str:
        return cell.publisher

    totals = report.slot_totals(charts.slots_with_bars(report))
    found = {name: list(cells) for name, cells in groupby(sorted(totals, key=publisher), publisher)}
    return [charts.bars(report, found[name], colour, variable) for name, colour in publishers]


def json_in_html(data: Any) -> str:
    """JSON in which no letter means anything to HTML, so that no name can end the script block."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def style() -> str:
    """Colours for light and dark screens, and the style sheet that uses them."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    return f":root {{ {variables(LIGHT)} }}\n{dark}\n{resource('page.css')}"


def script() -> str:
    """Draws the charts of a page that holds a report's data."""
    return resource("page.js")


@cache
def libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; putting it together takes a second."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


def resource(name: str) -> str:
    return files("adsbpc.report").joinpath(name).read_text(encoding="utf-8")
