"""What pages with a report are made of: masthead, cards, data of the charts, style and scripts.

The stand-alone page and the dashboard put the same parts together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import charts
from adsbpc.report.cells import Cell
from adsbpc.report.charts import PublisherLine
from adsbpc.report.explorer import explorer_of
from adsbpc.report.headline import headline_of
from adsbpc.report.lift_charts import lift_card, lift_curves
from adsbpc.report.palette import DARK, LIGHT, variable, variables
from adsbpc.report.rendering import render
from adsbpc.report.share_figures import model_figures, scale_of_shares
from adsbpc.report.wording import decimals

if TYPE_CHECKING:
    from adsbpc.report.report import Report


@dataclass(frozen=True)
class Parts:
    """HTML of the masthead and the cards, and what the script needs to draw the charts in them."""

    masthead: Markup
    cards: Markup
    data: dict[str, Any]


def parts_of(report: Report, file_name: str = "", links: Mapping[str, str] | None = None) -> Parts:
    """All cells can be downloaded from `links`, or else from the page itself as `file_name`."""
    drawn = charts.drawn_publishers(report)
    bars = (PublisherLine(ALL_PUBLISHERS, "series-other"), *drawn)
    cards = render(
        "cards.html",
        report=report,
        drawn=drawn,
        bars=bars,
        slots_drawn=len(charts.slots_with_bars(report)),
        scale=scale_of_shares(report, len(drawn)),
        comparison=model_figures(report, drawn),
        decimals=decimals(report),
        headline=headline_of(report),
        lift=Markup(lift_card(report)),
        cells=f"{len(report.rows()):,}",
        file_name=file_name,
        links=links,
    )
    data = {
        "config": charts.config(variable),
        "trend": charts.trend(report, variable),
        "bars": _bars(report, bars),
        "lift": lift_curves(report, variable),
        "publishers": [each.publisher for each in drawn],
        "explorer": explorer_of(report),
    }
    masthead = render("masthead.html", report=report)
    return Parts(Markup(masthead), Markup(cards), data)


def _bars(report: Report, publishers: Sequence[PublisherLine]) -> list[charts.Spec]:
    def publisher(cell: Cell) -> str:
        return cell.publisher

    totals = report.slot_totals(charts.slots_with_bars(report))
    found = {name: list(cells) for name, cells in groupby(sorted(totals, key=publisher), publisher)}
    return [
        charts.bars(report, found[each.publisher], each.colour, variable) for each in publishers
    ]


def style() -> str:
    """Colours for light and dark screens, and the style sheet that uses them."""
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    return f":root {{ {variables(LIGHT)} }}\n{dark}\n{_resource('page.css')}"


def script() -> str:
    """Draws the charts of a page that holds a report's data, and shows any range of it."""
    return "\n".join(map(_resource, ("ranges.js", "view.js", "explorer.js", "page.js")))


@cache
def libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; putting it together takes a second."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


def _resource(name: str) -> str:
    return files("adsbpc.report").joinpath(name).read_text(encoding="utf-8")
