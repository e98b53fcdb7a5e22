"""A plan inside a notebook: the promise, a picture of the errors to come, and what is expected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from markupsafe import Markup

from adsbpc.campaign.accuracy import REACH
from adsbpc.report import charts
from adsbpc.report.notebook import drawn
from adsbpc.report.palette import LIGHT
from adsbpc.report.rendering import render
from adsbpc.report.wording import promise_in_words

if TYPE_CHECKING:
    from adsbpc.campaign.plan import ExpectedError, Plan

# More points than pixels only make a picture large.
_MOST_POINTS = 400
_MOST_PICTURES = 4
# Of few slots every one has a dot.
_FEW = 24


def fragment_of(plan: Plan) -> str:
    lines = _lines(plan)
    return render(
        "plan.html",
        promise=promise_in_words(plan.promise),
        picture=_pictures(lines),
        accuracy=list(_accuracy(plan)),
        errors=[(name, f"\u00b1 {_error(rows[-1]):,.1f}") for name, rows in lines.items()],
        split=[(part, f"{float(rho):.4g}") for part, rho in plan.split.items()],
        proposal=_proposal(plan),
        condition=plan.condition,
        colours=LIGHT,
        font=charts.FONT,
    )


def _lines(plan: Plan) -> dict[str, list[ExpectedError]]:
    """Errors by sum, in the order of slots, of the first question that is asked of each."""
    found: dict[str, list[ExpectedError]] = {}
    for row in plan.queries:
        rows = found.setdefault(_name(row.measure, row.view), [])
        if not rows or row.slot > rows[-1].slot:
            rows.append(row)
    return found


def _name(measure: str, view: str) -> str:
    return measure if view == "total" else f"{measure} by {view}"


def _error(row: ExpectedError) -> float:
    return REACH * row.standard_error


def _pictures(lines: dict[str, list[ExpectedError]]) -> Markup:
    """One for each measure: what they count is not alike."""
    measures: dict[str, dict[str, list[ExpectedError]]] = {}
    for name, rows in lines.items():
        measures.setdefault(rows[0].measure, {})[name] = rows
    return Markup("").join(map(_picture, list(measures.values())[:_MOST_PICTURES]))


def _picture(shown: dict[str, list[ExpectedError]]) -> Markup:
    rows = [
        {"slot": row.slot, "error": _error(row), "sum": name}
        for name, own in shown.items()
        for row in own[:: -(-len(own) // _MOST_POINTS)]
    ]
    colours = [LIGHT[f"series-{place}"] for place, _ in enumerate(shown, start=1)]
    return drawn(
        {
            "width": 660,
            "height": 150,
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 2, "point": len(rows) <= _FEW},
            "encoding": {
                "x": {"field": "slot", "type": "quantitative", "title": "slot", "axis": _WHOLE},
                "y": {"field": "error", "type": "quantitative", "title": "off by, 95 of 100"},
                "color": {
                    "field": "sum",
                    "type": "nominal",
                    "scale": {"domain": list(shown), "range": colours},
                    "legend": {"title": None, "orient": "top", "columns": 3},
                },
            },
        }
    )


_WHOLE = {"tickMinStep": 1, "format": "d", "grid": False}


def _accuracy(plan: Plan) -> Iterator[tuple[str, ...]]:
    seen = set()
    for row in plan.accuracy:
        name = _name(row.measure, row.view)
        if row.period == "campaign" and name not in seen:
            seen.add(name)
            share = "" if row.view == "total" else ", an average one"
            yield (
                f"{name}{share}",
                f"{row.amount:,.0f}",
                f"\u00b1 {row.error:,.0f}",
                f"\u00b1 {100 * row.within:,.1f}%",
            )


def _proposal(plan: Plan) -> str:
    if plan.proposal is None:
        return ""
    shares = ", ".join(f"{name} {share:g}" for name, share in plan.proposal.shares.items())
    several = f", with the shares {shares}" if len(plan.proposal.shares) > 1 else ""
    return f"Proposed: rho = {plan.proposal.rho:g}{several}."
