"""The page: one file with styles, scripts and data inside, that asks the network for nothing.

Names come from campaign files and may hold anything: text goes through `escape`, data through
`_json_in_html`, and the security policy lets only the two scripts of this package run.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import TYPE_CHECKING, Any

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import charts, sections
from adsbpc.report.cells import Cell
from adsbpc.report.palette import DARK, LIGHT, variable, variables
from adsbpc.report.wording import metric_name, summary

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Beyond this a browser opens the page slowly; the other formats have no limit.
_MOST_CELLS_IN_PAGE = 50_000


def page_of(report: Report) -> str:
    libraries, script = _libraries(), _resource("page.js")
    drawn = charts.drawn_publishers(report)
    bars = [(ALL_PUBLISHERS, "series-other"), *((each.publisher, each.colour) for each in drawn)]
    with_cells = len(report.rows()) <= _MOST_CELLS_IN_PAGE
    return Template(_resource("page.html")).substitute(
        policy=escape(_policy(libraries, script)),
        name=escape(report.spec.campaign.name),
        metric=escape(metric_name(report)),
        light=variables(LIGHT),
        dark=variables(DARK),
        style=_resource("page.css"),
        summary=escape(summary(report)),
        facts=sections.facts(report),
        trend_note=escape(sections.trend_note(report, len(drawn))),
        chips=sections.chips(drawn),
        slots_title="Day by day" if report.timeline.word == "day" else "Hour by hour",
        slots_note=escape(sections.slots_note(report, len(charts.slots_with_bars(report)))),
        multiples=sections.multiples(bars),
        shares=sections.shares(report, drawn),
        models=sections.models_compared(report, drawn),
        download=sections.download(report, _file_name(report) if with_cells else None),
        table_note=escape(sections.table_note(report)),
        table=sections.table(report),
        gauges=sections.gauges(report),
        promise=sections.promise(report),
        data=_json_in_html(
            {
                "config": charts.config(variable),
                "trend": charts.trend(report, variable),
                "bars": _bars(report, bars),
                "publishers": [each.publisher for each in drawn],
                "csv": report.to_csv() if with_cells else "",
            }
        ),
        libraries=libraries,
        script=script,
    )


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; putting it together takes a second."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle


def _bars(report: Report, publishers: list[tuple[str, str]]) -> list[charts.Spec]:
    def publisher(cell: Cell) -> str:
        return cell.publisher

    totals = report.slot_totals(charts.slots_with_bars(report))
    found = {name: list(cells) for name, cells in groupby(sorted(totals, key=publisher), publisher)}
    return [charts.bars(report, found[name], colour, variable) for name, colour in publishers]


def _policy(*scripts: str) -> str:
    """Only these scripts, known by their fingerprints; no request to anywhere."""
    prints = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in prints)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def _json_in_html(data: Any) -> str:
    """JSON in which no letter means anything to HTML, so that no name can end the script block."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _file_name(report: Report) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", report.spec.campaign.name).strip("-.") or "campaign"
    return f"{name}-{report.timeline.word}-{report.newest.slot}.csv"


def _resource(name: str) -> str:
    return files("adsbpc.report").joinpath(name).read_text(encoding="utf-8")
