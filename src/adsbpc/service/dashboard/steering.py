"""Forms on the page of a campaign with which the operator pauses or ends it."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.service.auth.access import backend_of, campaign_for, signed_in
from adsbpc.service.auth.permissions import Action, Principal, allows
from adsbpc.service.dashboard.pages import SentForm
from adsbpc.service.releases.course import Course

router = APIRouter()


def steering_of(principal: Principal, course: Course) -> Literal["", "waiting", "running"]:
    """Which forms there are: none for those who may not, nor once nothing more is to come."""
    if not allows(principal, Action.CLOSE) or course.stage.last_slot >= course.slots:
        return ""
    return "running" if course.stage.started else "waiting"


@router.post("/campaigns/{campaign}/pause")
def pause(request: Request, form: SentForm, campaign: str) -> Response:
    registered = campaign_for(request, signed_in(request), campaign, Action.PAUSE)
    backend_of(request).lifecycle.pause(registered)
    return RedirectResponse(f"/campaigns/{campaign}", 303)


@router.post("/campaigns/{campaign}/resumption")
def resume(request: Request, form: SentForm, campaign: str) -> Response:
    registered = campaign_for(request, signed_in(request), campaign, Action.PAUSE)
    backend_of(request).lifecycle.resume(registered)
    return RedirectResponse(f"/campaigns/{campaign}", 303)


@router.post("/campaigns/{campaign}/closing")
def close(request: Request, form: SentForm, campaign: str) -> Response:
    registered = campaign_for(request, signed_in(request), campaign, Action.CLOSE)
    backend_of(request).lifecycle.close(registered)
    return RedirectResponse(f"/campaigns/{campaign}", 303)


@router.post("/campaigns/{campaign}/withdrawal")
def withdraw(request: Request, form: SentForm, campaign: str) -> Response:
    registered = campaign_for(request, signed_in(request), campaign, Action.WITHDRAW)
    backend_of(request).lifecycle.withdraw(registered)
    return RedirectResponse("/campaigns", 303)
