"""Campaigns at a glance, and the page of one campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from adsbpc.errors import AdsbpcError
from adsbpc.report.timeline import Timeline
from adsbpc.report.wording import attribution
from adsbpc.service.access import backend_of, campaign_for, require, signed_in
from adsbpc.service.api.campaigns import readable_campaigns
from adsbpc.service.backend import Backend
from adsbpc.service.campaigns import Registered
from adsbpc.service.dashboard.rendering import page
from adsbpc.service.dashboard.shown import Glance, body_of, glance_at
from adsbpc.service.dashboard.states import State, Tone, state_of
from adsbpc.service.logs import log_failure, told
from adsbpc.service.permissions import Action, allows

router = APIRouter()

_ORDER: dict[Tone, int] = {"bad": 0, "good": 1, "calm": 2, "done": 3}


@dataclass(frozen=True)
class Card:
    registered: Registered
    word: str
    glance: Glance | None
    state: State


@router.get("/campaigns")
def list_campaigns(request: Request) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    require(request, principal, Action.LIST_CAMPAIGNS)
    cards = [_card(backend, each) for each in readable_campaigns(request, principal)]
    # What needs a look comes first.
    cards.sort(key=lambda card: _ORDER[card.state.tone])
    return page(
        request,
        "campaigns.html",
        principal,
        cards=cards,
        counts=Counter(card.state.word.lower() for card in cards),
        may_create=allows(principal, Action.CREATE_CAMPAIGN),
    )


def _card(backend: Backend, registered: Registered) -> Card:
    word = Timeline(registered.spec.grid).word
    try:
        glance = glance_at(backend, registered)
    except AdsbpcError as error:
        # One campaign that cannot be read must not hide the others.
        log_failure("card failed", error, campaign=registered.campaign_id, problem=told(error))
        return Card(registered, word, None, State("Cannot be read", "bad", ""))
    state = state_of(backend, registered, glance.released if glance else 0)
    return Card(registered, word, glance, state)


@router.get("/campaigns/{campaign}")
def show_campaign(request: Request, campaign: str) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    registered = campaign_for(request, principal, campaign, Action.READ_RELEASES)
    body = body_of(backend, registered)
    released = body.released if body else 0
    state = state_of(backend, registered, released)
    may_operate = allows(principal, Action.OPERATE)
    common: dict[str, Any] = {
        "registered": registered,
        # That a release failed follows from events.
        "problem": registered.problem if may_operate else "",
        "state": state,
        "released": released,
        "is_over": released >= registered.spec.campaign.slots,
    }
    if body is None:
        visible = backend.publication.visible(registered)
        expected = _expected(registered, visible)
        return page(request, "campaign-waiting.html", principal, **common, **expected)
    return page(request, "campaign.html", principal, **common, body=body)


def _expected(registered: Registered, visible: Mapping[str, int]) -> dict[str, Any]:
    """What is known before anything of it is visible."""
    spec, campaign = registered.spec, registered.campaign
    promise, status = campaign.promise, campaign.status(visible)
    timeline = Timeline(spec.grid)
    facts = {
        "Metric": f"attributed {spec.campaign.metric}",
        "Period": f"{timeline.period(spec.campaign.slots)} ({spec.campaign.timezone})",
        "Published": f"no {timeline.word} yet, of {spec.campaign.slots}",
        "Attribution": attribution(spec.attribution),
        "Advertiser": spec.campaign.advertiser,
    }
    return {
        "facts": facts,
        "publishers": spec.campaign.publishers,
        "campaign_budget": status.campaign_budget,
        "scope_budget": status.scope_budget,
        "promise": promise,
    }
