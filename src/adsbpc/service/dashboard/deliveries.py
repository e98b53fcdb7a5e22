"""The page on which a sender sees what became of what it sent."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from adsbpc.service.auth.access import backend_of, require, signed_in
from adsbpc.service.auth.permissions import Action
from adsbpc.service.dashboard.pages import page
from adsbpc.service.ingest.api import own_deliveries

router = APIRouter()

HOURS = 48


@router.get("/deliveries")
def show(request: Request) -> Response:
    principal = signed_in(request)
    require(request, principal, Action.READ_DELIVERIES)
    return page(
        request,
        "deliveries.html",
        principal,
        hours=HOURS,
        found=own_deliveries(backend_of(request), principal, HOURS),
    )
