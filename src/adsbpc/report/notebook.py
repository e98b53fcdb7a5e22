"""The report inside a notebook: pictures, a small table and the promise, without any script; or the
whole page, in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from adsbpc.report import charts
from adsbpc.report.lift_charts import LiftFigure, lift_curves, lift_figures
from adsbpc.report.palette import LIGHT
from adsbpc.report.rendering import render
from adsbpc.report.wording import decimals

if TYPE_CHECKING:
    from adsbpc.report.report import Report

_MOST_ROWS = 12
_SIZE = {"width": 660, "height": 240}


@dataclass(frozen=True)
class FramedPage:
    """The page of a report with its charts, ranges and tables to choose from. It needs no widgets
    and no network: its scripts are in it, and its own policy lets no others run."""

    page: str
    title: str
    height: int

    def _repr_html_(self) -> str:
        return render("frame.html", page=self.page, title=self.title, height=self.height)


def fragment_of(report: Report) -> str:
    publishers = report.standings.publishers
    return render(
        "notebook.html",
        report=report,
        shown=publishers[:_MOST_ROWS],
        left_out=max(len(publishers) - _MOST_ROWS, 0),
        decimals=decimals(report),
        picture=_picture(report),
        lifts=_lifts(report),
        colours=LIGHT,
        font=charts.FONT,
    )


def _picture(report: Report) -> Markup:
    spec = charts.trend(report, LIGHT.__getitem__) | _SIZE
    spec["encoding"]["color"]["legend"] = {
        "title": None,
        "orient": "top",
        "columns": 4,
        "symbolOpacity": 1,
    }
    return drawn(spec)


def _lifts(report: Report) -> list[tuple[LiftFigure, Markup]]:
    """What the campaign caused, where it has arms: each effect with its curve."""
    curves = lift_curves(report, LIGHT.__getitem__)
    pairs = zip(lift_figures(report), curves, strict=True)
    return [(figure, drawn(curve | _SIZE)) for figure, curve in pairs]


def drawn(spec: charts.Spec) -> Markup:
    """A chart as a picture."""
    import vl_convert

    picture = vl_convert.vegalite_to_svg(spec, config=charts.config(LIGHT.__getitem__))
    # The size gives way to narrow cells.
    return Markup(picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1))
