"""The operator's page: arrivals, the scheduler, the ledger, the audit log, the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from adsbpc.service.access import backend_of, require, signed_in
from adsbpc.service.backend import Backend
from adsbpc.service.clock import now_us
from adsbpc.service.dashboard.arrivals import HOURS, arrivals_of
from adsbpc.service.dashboard.forms import SentForm, check_token
from adsbpc.service.dashboard.rendering import page
from adsbpc.service.permissions import Action
from adsbpc.service.principal import Principal

router = APIRouter()

_AUDIT_LINES = 25


@dataclass(frozen=True)
class Verified:
    """What the ledger said when it was asked. `problem` is empty if nothing was changed."""

    campaign_id: str
    name: str
    scope: str
    entries: int
    problem: str


@router.get("/operations")
def show(request: Request) -> Response:
    principal = signed_in(request)
    require(request, principal, Action.OPERATE)
    return _page(request, principal, None)


@router.post("/operations/verification")
def verify(request: Request, form: SentForm) -> Response:
    """Reads every entry of every scope again; takes a while for large ledgers."""
    backend, principal = backend_of(request), signed_in(request)
    check_token(request, principal, form)
    require(request, principal, Action.VERIFY)
    return _page(request, principal, _verified(backend))


def _verified(backend: Backend) -> list[Verified]:
    found = []
    for registered in backend.campaigns.all():
        verification = registered.campaign.verify()
        found.append(
            Verified(
                registered.campaign_id,
                registered.name,
                registered.scope,
                verification.entries,
                verification.problem or "",
            )
        )
    return found


def _page(request: Request, principal: Principal, verified: list[Verified] | None) -> Response:
    backend = backend_of(request)
    arrivals = arrivals_of(backend.counts.by_hour(HOURS), now_us(backend.clock))
    standings = backend.scheduler.standings()
    return page(
        request,
        "operations.html",
        principal,
        hours=HOURS,
        arrivals=arrivals,
        standings=standings,
        behind=sum(each.due > each.released for each in standings),
        verified=verified,
        audit=backend.audit.newest(_AUDIT_LINES),
        settings=_flat(backend.settings.shown()),
    )


def _flat(settings: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Each section's keys as text."""
    return {
        section: {
            key: "not set" if value in (None, {}) else str(value) for key, value in keys.items()
        }
        for section, keys in settings.items()
    }
