"""The page of a new campaign: a form and a planner in one. Planning spends nothing."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.campaign import plan
from adsbpc.errors import AdsbpcError
from adsbpc.report.wording import model_name
from adsbpc.service.access import backend_of, require, signed_in
from adsbpc.service.dashboard import campaign_form as fields
from adsbpc.service.dashboard.campaign_form import Values, Wrong, wrongs_of
from adsbpc.service.dashboard.expected import Expected, expected
from adsbpc.service.dashboard.forms import SentForm, check_token
from adsbpc.service.dashboard.rendering import page
from adsbpc.service.permissions import Action
from adsbpc.service.principal import Principal

router = APIRouter()


@router.get("/campaigns/new")
def show(request: Request) -> Response:
    principal = signed_in(request)
    require(request, principal, Action.PLAN)
    today = backend_of(request).clock.now().date()
    return _form(request, principal, fields.defaults(today), [])


@router.post("/campaigns/new")
def plan_or_create(request: Request, form: SentForm) -> Response:
    """Two buttons: one only shows what to expect."""
    backend, principal = backend_of(request), signed_in(request)
    check_token(request, principal, form)
    known = fields.defaults(backend.clock.now().date())
    values = {field: form.get(field, "") for field in known}
    if form.get("action") != "create":
        require(request, principal, Action.PLAN)
        return _form(request, principal, values, [])
    require(request, principal, Action.CREATE_CAMPAIGN, target=values["name"])
    try:
        registered = backend.campaigns.create(fields.content_of(values), principal)
    except AdsbpcError as error:
        return _form(request, principal, values, wrongs_of(error), 422)
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
        model_name=model_name,
        zones=_zones(),
    )


def _plan(request: Request, values: Values) -> tuple[Expected | None, list[Wrong]]:
    try:
        spec = backend_of(request).campaigns.spec(fields.planned(values))
        return expected(spec, plan(spec, fields.bound_of(values))), []
    except AdsbpcError as error:
        return None, wrongs_of(error)


@cache
def _zones() -> list[str]:
    return sorted(zone for zone in available_timezones() if "/" in zone and "Etc/" not in zone)
