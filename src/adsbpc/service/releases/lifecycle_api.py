"""Campaigns, steered by the operator: withdrawn, paused, resumed, closed."""

from __future__ import annotations

from decimal import Decimal

from fastapi import APIRouter, Request, Response, Security
from pydantic import BaseModel, Field

from adsbpc.service.auth.access import Caller, backend_of, bearer, campaign_for
from adsbpc.service.auth.permissions import Action
from adsbpc.service.http.problems import problems
from adsbpc.service.releases.campaign_api import CampaignId
from adsbpc.service.releases.course import State

router = APIRouter(
    prefix="/v1/campaigns/{campaign}", tags=["campaigns"], dependencies=[Security(bearer)]
)


class Steered(BaseModel):
    """How a campaign stands after what was done to it."""

    id: str
    state: State


class Closed(Steered):
    returned: str = Field(description="The rho that went back to its scope, to the last decimal.")


@router.delete(
    "", status_code=204, summary="Withdraw a campaign", responses=problems(404, 409, 422)
)
def withdraw_campaign(request: Request, caller: Caller, campaign: CampaignId) -> Response:
    """Before it starts, that is before its first slot is released. Its room in the scope and its
    name are free again."""
    registered = campaign_for(request, caller, campaign, Action.WITHDRAW)
    backend_of(request).lifecycle.withdraw(registered)
    return Response(status_code=204)


@router.post("/pause", summary="Pause a campaign", responses=problems(404, 409, 422))
def pause_campaign(request: Request, caller: Caller, campaign: CampaignId) -> Steered:
    """Nothing is released until it is resumed. Events are taken as before, and no slot is lost."""
    registered = campaign_for(request, caller, campaign, Action.PAUSE)
    backend_of(request).lifecycle.pause(registered)
    return _steered(request, campaign)


@router.post("/resumption", summary="Resume a campaign", responses=problems(404, 409, 422))
def resume_campaign(request: Request, caller: Caller, campaign: CampaignId) -> Steered:
    """Slots that ended meanwhile are released first, in their order."""
    registered = campaign_for(request, caller, campaign, Action.PAUSE)
    backend_of(request).lifecycle.resume(registered)
    return _steered(request, campaign)


@router.post("/closing", summary="Close a campaign", responses=problems(404, 409, 422))
def close_campaign(request: Request, caller: Caller, campaign: CampaignId) -> Closed:
    """Ends it for good. What was released stays and stays charged; what it has not spent goes back
    to its scope. Safe to repeat."""
    registered = campaign_for(request, caller, campaign, Action.CLOSE)
    returned = backend_of(request).lifecycle.close(registered)
    exact = f"{Decimal(returned.numerator) / returned.denominator:f}"
    return Closed(**_steered(request, campaign).model_dump(), returned=exact)


def _steered(request: Request, campaign: str) -> Steered:
    book = backend_of(request).campaigns
    registered = book.get(campaign)
    assert registered is not None
    return Steered(id=campaign, state=book.course(registered).state)
