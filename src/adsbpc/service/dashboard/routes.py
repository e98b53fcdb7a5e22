"""All routes of the dashboard, and its static files."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.service.access import signed_in
from adsbpc.service.dashboard import (
    assets,
    campaigns,
    keys,
    new_campaign,
    operations,
    reference,
    sign_in,
)
from adsbpc.service.dashboard.rendering import home_of
from adsbpc.service.problems import Problem

router = APIRouter(include_in_schema=False)


@router.get("/")
def home(request: Request) -> Response:
    return RedirectResponse(home_of(signed_in(request)), 303)


@router.get("/static/{file}")
def static(request: Request, file: str) -> Response:
    found = assets.answer(request, file)
    if found is None:
        raise Problem(404, "Not found", f"There is no file {file[:100]!r}", "Reload the page")
    return found


# A new campaign before the page of one, whose path would take "new" for an id.
for _module in (sign_in, new_campaign, campaigns, keys, operations, reference):
    router.include_router(_module.router)
