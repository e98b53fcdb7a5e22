"""What a planned campaign is expected to be like: errors, promise, and what the budget buys."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from adsbpc.campaign import Plan
from adsbpc.model import CampaignSpec
from adsbpc.report import charts
from adsbpc.report.numbers import about, one_in, rounded_up, small
from adsbpc.report.palette import variable
from adsbpc.report.wording import BUYS, odds, strength

_LEVEL = 0.95
_REACH = NormalDist().inv_cdf((1 + _LEVEL) / 2)
# More points than pixels only make a page slow.
_MOST_POINTS = 200
_ONE, _ALL = "one publisher", "all together"


@dataclass(frozen=True)
class Part:
    name: str
    rho: str
    percent: float
    buys: str


@dataclass(frozen=True)
class Expected:
    """Errors are half the width of a 95% interval around a total after the last slot."""

    word: str
    slots: int
    one: str
    all: str
    publishers: int
    condition: str
    epsilon: str
    delta: str
    chance: str
    odds: str
    strength: str
    parts: tuple[Part, ...]
    chart: dict[str, Any]
    fit_slot: int | None


def expected(spec: CampaignSpec, plan: Plan) -> Expected:
    word = "day" if spec.campaign.slot == "1d" else "hour"
    root = len(plan.publishers) ** 0.5
    last = _REACH * plan.queries[-1].standard_error
    whole = float(sum(plan.split.values()))
    return Expected(
        word=word,
        slots=spec.campaign.slots,
        one=about(last),
        all=about(root * last),
        publishers=len(plan.publishers),
        condition=plan.condition,
        epsilon=rounded_up(plan.promise.epsilon, 3),
        delta=small(plan.promise.delta),
        chance=one_in(plan.promise.delta),
        odds=odds(plan.promise),
        strength=strength(plan.promise),
        parts=tuple(
            Part(name, f"{float(rho):.4g}", 100 * float(rho) / whole, BUYS[name])
            for name, rho in plan.split.items()
        ),
        chart={"config": charts.config(variable), "spec": _chart(plan, word, root)},
        fit_slot=plan.fit.slot if plan.fit else None,
    )


def _chart(plan: Plan, word: str, root: float) -> dict[str, Any]:
    """Errors of running totals as slots go by, for one publisher and for all."""
    every = -(-len(plan.queries) // _MOST_POINTS)
    # Counted from the last slot back, so that it is always there.
    queries = plan.queries[::-1][::every][::-1]
    rows = [
        {
            "slot": query.slot,
            "of": of,
            "error": factor * _REACH * query.standard_error,
            "shown": f"± {about(factor * _REACH * query.standard_error)}",
        }
        for of, factor in ((_ALL, root), (_ONE, 1.0))
        for query in queries
    ]
    colours = {_ALL: variable("series-other"), _ONE: variable("series-1")}
    encoding = {
        "x": {
            "field": "slot",
            "type": "quantitative",
            "scale": {"domain": [1, max(plan.queries[-1].slot, 2)], "nice": False},
            "axis": {"title": word, "grid": False, "tickMinStep": 1, "offset": 6, "tickCount": 6},
        },
        "y": {
            "field": "error",
            "type": "quantitative",
            "scale": {"domainMin": 0, "nice": True},
            "axis": {
                "title": None,
                "tickCount": 4,
                "domain": False,
                "ticks": False,
                "format": ",~f",
            },
        },
        "color": {
            "field": "of",
            "type": "nominal",
            "scale": {"domain": list(colours), "range": list(colours.values())},
            "legend": {"title": None, "orient": "top", "symbolType": "stroke"},
        },
    }
    tooltip = [
        {"field": "slot", "type": "quantitative", "title": word},
        {"field": "of", "type": "nominal", "title": "total of"},
        {"field": "shown", "type": "nominal", "title": "95% of the time"},
    ]
    return {
        "description": "Expected error of totals so far, slot by slot",
        "width": "container",
        "height": "container",
        "data": {"values": rows},
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2.25, "strokeJoin": "round"}},
            {
                "mark": {"type": "point", "filled": True, "size": 220, "opacity": 0},
                "encoding": {"tooltip": tooltip},
            },
        ],
    }
