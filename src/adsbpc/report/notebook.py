"""The report inside a notebook: a picture, a small table and the promise, without any script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from adsbpc.report import charts
from adsbpc.report.palette import LIGHT
from adsbpc.report.rendering import render
from adsbpc.report.wording import decimals

if TYPE_CHECKING:
    from adsbpc.report.report import Report

_MOST_ROWS = 12


def fragment_of(report: Report) -> str:
    publishers = report.standings.publishers
    return render(
        "notebook.html",
        report=report,
        shown=publishers[:_MOST_ROWS],
        left_out=max(len(publishers) - _MOST_ROWS, 0),
        decimals=decimals(report),
        picture=_picture(report),
        colours=LIGHT,
        font=charts.FONT,
    )


def _picture(report: Report) -> Markup:
    import vl_convert

    spec = charts.trend(report, LIGHT.__getitem__) | {"width": 660, "height": 240}
    spec["encoding"]["color"]["legend"] = {
        "title": None,
        "orient": "top",
        "columns": 4,
        "symbolOpacity": 1,
    }
    picture = vl_convert.vegalite_to_svg(spec, config=charts.config(LIGHT.__getitem__))
    # The size gives way to narrow cells.
    return Markup(picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1))
