"""The page of a new campaign: a form, and a planner that says what to expect. It spends nothing."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any, get_args
from zoneinfo import available_timezones

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.campaign.accuracy import SMALL_PART
from adsbpc.campaign.plan import ExpectedError, Plan, plan
from adsbpc.errors import AdsbpcError
from adsbpc.model import CampaignSpec
from adsbpc.model.measure_spec import PUBLISHER
from adsbpc.model.slots import Weekday
from adsbpc.report import charts
from adsbpc.report.model_words import model_name
from adsbpc.report.numbers import about, rounded_up, small
from adsbpc.report.palette import variable
from adsbpc.report.timeline import Timeline
from adsbpc.report.wording import BUYS, MECHANISMS, odds, strength
from adsbpc.service.auth.access import backend_of, campaign_for, require, signed_in
from adsbpc.service.auth.permissions import Action, Principal
from adsbpc.service.dashboard import campaign_form as fields
from adsbpc.service.dashboard import measure_form
from adsbpc.service.dashboard.campaign_form import Wrong, continuable, continued, wrongs_of
from adsbpc.service.dashboard.measure_form import Values
from adsbpc.service.dashboard.pages import SentForm, page

_LEVEL = 0.95
_REACH = NormalDist().inv_cdf((1 + _LEVEL) / 2)
# More points than pixels only make a page slow.
_MOST_POINTS = 200
_ONE, _ALL = "one publisher", "all together"


def expected(spec: CampaignSpec, plan: Plan, targeted: bool = False) -> SimpleNamespace:
    """What the page shows of a plan, whose proposal is for targets if it is `targeted`. Errors are
    half the width of a 95% interval around a total after the last slot."""
    word = Timeline(spec.grid).word
    views = _by_view(plan)
    one, together = (_REACH * views[of][-1].standard_error for of in (_ONE, _ALL))
    whole = float(sum(plan.split.values()))
    return SimpleNamespace(
        word=word,
        slots=spec.campaign.slots,
        one=about(one),
        all=about(together),
        one_part=_part(plan, 1),
        all_part=_part(plan, 0),
        condition=plan.condition,
        rho=f"{float(plan.promise.guarantee.rho):g}",
        epsilon=rounded_up(plan.promise.epsilon, 3),
        delta=small(plan.promise.delta),
        odds=odds(plan.promise),
        strength=strength(plan.promise),
        parts=[
            {"rho": f"{float(rho):.4g}", "percent": 100 * float(rho) / whole, "buys": _buys(name)}
            for name, rho in plan.split.items()
        ],
        sums=_sums(plan),
        first=plan.queries[0].measure if len(spec.measures) > 1 else "",
        shares="" if targeted else _shares(plan),
        needed=_needed(plan) if targeted else "",
        small_publishers=_small_publishers(plan),
        frontiers=_frontiers(plan),
        chart={"config": charts.config(variable), "spec": _chart(views, word)},
        fit_slot=plan.fit.slot if plan.fit else None,
    )


def _buys(part: str) -> str:
    """Of several measures each has its parts."""
    measure, _, name = part.rpartition(": ")
    return f"{measure}: {BUYS[name].removesuffix(' and publisher')}" if measure else BUYS[name]


def _sums(plan: Plan) -> list[SimpleNamespace]:
    """How far every kind of sum is off in the end, where there are more than the two on top."""
    last = {(row.measure, row.view): row.standard_error for row in plan.queries}
    parts = {
        (row.measure, row.view): f"± {about(100 * row.within)}%"
        for row in reversed(plan.accuracy)
        if row.period == "campaign"
    }
    if len(last) <= 2:
        return []
    return [
        SimpleNamespace(
            measure=measure,
            of="all together" if view == "total" else f"one {view.replace(' x ', ' and ')}",
            error=about(_REACH * error),
            part=parts.get((measure, view), ""),
        )
        for (measure, view), error in last.items()
    ]


def _shares(plan: Plan) -> str:
    """Of a proposal for several measures, where enough is expected of them for one."""
    if plan.proposal is None or len(plan.proposal.shares) < 2:
        return ""
    return ", ".join(f"{name} {share:g}" for name, share in plan.proposal.shares.items())


def _needed(plan: Plan) -> str:
    """The budget that reaches all targets."""
    if plan.proposal is None:
        return ""
    shares = _shares(plan)
    return f"rho = {plan.proposal.rho:g}" + (f", with shares {shares}" if shares else "")


def _small_publishers(plan: Plan) -> list[SimpleNamespace]:
    """How far a publisher's total with a small part of everything is off, measure by measure."""
    return [
        SimpleNamespace(
            measure=row.measure, percent=f"{100 * row.part:g}", within=about(100 * row.within)
        )
        for row in plan.accuracy
        if (row.view, row.period, row.part) == (PUBLISHER, "campaign", SMALL_PART)
    ]


def _frontiers(plan: Plan) -> list[SimpleNamespace]:
    """The total against its parts, of measures of which something is expected."""
    return [
        SimpleNamespace(
            measure=measure,
            views=list(rows[0].errors),
            rows=[
                (", ".join(map(str, row.weights)), [about(each) for each in row.errors.values()])
                for row in rows
            ],
        )
        for measure, group in groupby(plan.frontier, key=lambda row: row.measure)
        if measure in plan.expected and (rows := list(group))
    ]


def _part(plan: Plan, depth: int) -> str:
    """How far a total of the first measure is off in the end, as a part of what is expected of it;
    of the average one of publishers. Nothing where nothing is expected."""
    first = [row for row in plan.accuracy if row.measure == plan.queries[0].measure]
    views = list(dict.fromkeys(row.view for row in first))
    return next((f"± {about(100 * row.within)}%" for row in first if row.view == views[depth]), "")


def _by_view(plan: Plan) -> dict[str, list[ExpectedError]]:
    """Expected errors of the first measure, of everything together and of one publisher."""
    first = plan.queries[0].measure
    own = [query for query in plan.queries if query.measure == first]
    total, publisher, *_ = dict.fromkeys(query.view for query in own)
    return {
        of: [query for query in own if query.view == view]
        for of, view in ((_ALL, total), (_ONE, publisher))
    }


def _chart(views: dict[str, list[ExpectedError]], word: str) -> dict[str, Any]:
    """Errors of running totals as slots go by, for one publisher and for all."""
    every = -(-len(views[_ONE]) // _MOST_POINTS)
    rows = [
        {
            "slot": query.slot,
            "of": of,
            "error": _REACH * query.standard_error,
            "shown": f"± {about(_REACH * query.standard_error)}",
        }
        for of, queries in views.items()
        # Counted from the last slot back, so that it is always there.
        for query in queries[::-1][::every][::-1]
    ]
    colours = {_ALL: variable("series-other"), _ONE: variable("series-1")}
    encoding = {
        "x": {
            "field": "slot",
            "type": "quantitative",
            "scale": {"domain": [1, max(views[_ONE][-1].slot, 2)], "nice": False},
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


router = APIRouter()


@router.get("/campaigns/new")
def show(request: Request, previous: str = "") -> Response:
    """Empty, or filled with what a campaign said that is over and goes on as a new one."""
    backend, principal = backend_of(request), signed_in(request)
    require(request, principal, Action.PLAN)
    values = fields.defaults(backend.clock.now().date())
    if previous:
        registered = campaign_for(request, principal, previous, Action.READ_CAMPAIGN)
        values |= continued(backend, registered)
    return _form(request, principal, values, [])


@router.post("/campaigns/new")
def plan_or_create(request: Request, form: SentForm) -> Response:
    """Two buttons: one only shows what to expect."""
    backend, principal = backend_of(request), signed_in(request)
    known = fields.defaults(backend.clock.now().date())
    values = {field: form.get(field, "") for field in known}
    if form.get("action") != "create":
        require(request, principal, Action.PLAN)
        return _form(request, principal, values, [])
    require(request, principal, Action.CREATE_CAMPAIGN, target=values["name"])
    try:
        registered = backend.campaigns.create(fields.content_of(values), principal)
    except AdsbpcError as error:
        return _form(request, principal, values, wrongs_of(error, values), 422)
    return RedirectResponse(f"/campaigns/{registered.campaign_id}", 303)


def _form(
    request: Request, principal: Principal, values: Values, wrongs: list[Wrong], status: int = 200
) -> Response:
    found, obstacles = _plan(request, values)
    return page(
        request,
        "new-campaign.html",
        principal,
        status,
        values=values,
        labels=fields.LABELS,
        wrongs=wrongs,
        wrong_of={wrong.field: wrong.text for wrong in wrongs if wrong.field},
        expected=found,
        obstacles=obstacles,
        models=fields.models(),
        rows=measure_form.ROWS,
        row_labels=measure_form.row_labels(),
        metrics=measure_form.METRICS,
        breakdowns=measure_form.BREAKDOWNS,
        continuable=continuable(backend_of(request)),
        model_name=model_name,
        zones=_zones(),
        mechanisms={name: words.title for name, words in MECHANISMS.items()},
        weekdays={day: day.capitalize() for day in get_args(Weekday)},
    )


def _plan(request: Request, values: Values) -> tuple[SimpleNamespace | None, list[Wrong]]:
    try:
        spec = backend_of(request).campaigns.spec(fields.planned(values))
        targets = measure_form.targets_of(values)
        planned = plan(spec, fields.bound_of(values), targets=targets)
        return expected(spec, planned, bool(targets)), []
    except AdsbpcError as error:
        return None, wrongs_of(error, values)


@cache
def _zones() -> list[str]:
    return sorted(zone for zone in available_timezones() if "/" in zone and "Etc/" not in zone)
