"""Releases and reports: read, downloaded, listened to, and made by hand."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response, Security
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from adsbpc.errors import did_you_mean
from adsbpc.model import Release
from adsbpc.model.slots import to_moment
from adsbpc.report.formats import parquet_of
from adsbpc.service.auth.access import Caller, backend_of, bearer, campaign_for, principal_of
from adsbpc.service.auth.permissions import Action
from adsbpc.service.backend import Backend
from adsbpc.service.http.bodies import body_document, parsed_body
from adsbpc.service.http.problems import Problem, problems
from adsbpc.service.releases.campaign_api import CampaignId
from adsbpc.service.releases.campaigns import Registered

router = APIRouter(
    prefix="/v1/campaigns/{campaign}", tags=["releases"], dependencies=[Security(bearer)]
)

Slot = Annotated[int, Field(ge=1, le=8_784)]
ReportFormat = Literal["json", "csv", "parquet", "html", "mmm"]
_MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html",
    "mmm": "text/csv",
}
# A page brings its own policy, which lets only its own scripts run; this one adds no others.
PAGE_POLICY = "frame-ancestors 'none'"


class ReleaseList(BaseModel):
    """`releases` in the order of their slots."""

    releases: list[Release]


class ReleaseRequest(BaseModel):
    """Up to which slot; everything that is due if left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    through: Slot | None = None


class ReleasedSlot(BaseModel):
    """`replayed` if it was released before this request came to it. It is charged now, and visible
    at `visible_at`, whoever released it."""

    slot: int
    replayed: bool
    visible_at: datetime


class ReleaseResult(BaseModel):
    released: list[ReleasedSlot]


@router.get(
    "/releases",
    summary="Read releases",
    responses={200: {"model": ReleaseList}, **problems(404, 422)},
)
def list_releases(
    request: Request,
    caller: Caller,
    campaign: CampaignId,
    after: Annotated[int, Query(ge=0, le=8_784, description="Only slots after this one.")] = 0,
) -> Response:
    """Everything that is visible, as it was stored. A slot becomes visible a fixed time after its
    end, never when it happens to be released."""
    registered = campaign_for(request, caller, campaign, Action.READ_RELEASES)
    texts = _visible(request, registered)[after:]
    # As the ledger has them, byte for byte.
    return Response(f'{{"releases":[{",".join(texts)}]}}', media_type="application/json")


@router.get(
    "/releases/{slot}",
    summary="Read one release",
    responses={200: {"model": Release}, **problems(404, 422)},
)
def read_release(request: Request, caller: Caller, campaign: CampaignId, slot: Slot) -> Response:
    """What one slot gave out, as it was stored."""
    registered = campaign_for(request, caller, campaign, Action.READ_RELEASES)
    texts = _visible(request, registered)
    if slot > len(texts):
        raise Problem(
            404, "Not found", f"Slot {slot} is not visible; the newest one is {len(texts)}",
            "Ask again when it is, or listen to the stream of this campaign",
        )  # fmt: skip
    return Response(texts[slot - 1], media_type="application/json")


def _visible(request: Request, registered: Registered) -> list[str]:
    backend = backend_of(request)
    visible, ledger = backend.publication.visible(registered), backend.campaigns.ledger
    # Holds the campaign to its promise and its published files before anything is shown.
    registered.campaign.status(visible)
    texts = ledger.releases(registered.scope, registered.name) if ledger.exists() else []
    return texts[: visible[registered.name]]


@router.post(
    "/releases",
    summary="Release what is due",
    openapi_extra=body_document(ReleaseRequest, required=False),
    responses=problems(404, 409, 413, 415, 422),
)
async def release_slots(request: Request, caller: Caller, campaign: CampaignId) -> ReleaseResult:
    """By hand what the scheduler does by itself: slots that are over for long enough, in order.
    Safe to repeat: a slot is released once. When it becomes visible does not depend on when that
    is."""
    registered = await run_in_threadpool(campaign_for, request, caller, campaign, Action.RELEASE)
    wanted = await parsed_body(request, ReleaseRequest, required=False)
    return await run_in_threadpool(_released, backend_of(request), registered, wanted.through)


def _released(backend: Backend, registered: Registered, through: int | None) -> ReleaseResult:
    found = []
    for one in backend.scheduler.release(registered, through):
        slot = one.release.slot
        moment = to_moment(backend.publication.moment(registered, slot))
        found.append(ReleasedSlot(slot=slot, replayed=one.replayed, visible_at=moment))
    return ReleaseResult(released=found)


@router.get(
    "/report",
    summary="Download the report",
    responses={
        200: {
            "description": "Released values with intervals, in the format asked for.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/csv": {"schema": {"type": "string"}},
                "text/html": {"schema": {"type": "string"}},
                _MEDIA_TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        **problems(404, 422),
    },
)
def read_report(
    request: Request,
    caller: Caller,
    campaign: CampaignId,
    format: Annotated[ReportFormat, Query(description="Of the file.")] = "json",
    level: Annotated[float, Query(ge=0.5, le=0.9999, description="Of the intervals.")] = 0.95,
    adjusted: Annotated[bool, Query(description="Totals that never fall.")] = False,
    band: Annotated[bool, Query(description="What holds for all slots at once.")] = False,
    measure: Annotated[
        str | None, Query(max_length=200, description="Which one a page is about, of several.")
    ] = None,
) -> Response:
    """The same report as `adsbpc report` writes; `mmm` are weeks for marketing mix models."""
    registered = campaign_for(request, caller, campaign, Action.READ_RELEASES)
    visible = backend_of(request).publication.visible(registered)
    if visible.get(registered.name, 0) == 0:
        raise Problem(
            404, "Not found", "Nothing is visible yet",
            "Ask again after the first slot, or listen to the stream of this campaign",
        )  # fmt: skip
    names = [each.name for each in registered.spec.measures]
    if measure is not None and measure not in names:
        hint = did_you_mean(measure, names).lstrip() or f"Ask for one of {', '.join(names)}"
        raise Problem(404, "Not found", f"There is no measure {measure!r}", hint)
    report = registered.campaign.report(level, adjusted, visible, measure, band)
    content: str | bytes
    if format == "parquet":
        content = parquet_of(report.to_arrow())
    else:
        texts = {
            "csv": report.to_csv, "json": report.to_json, "html": report.to_html,
            "mmm": report.to_mmm,
        }  # fmt: skip
        content = texts[format]()
    name = file_name(registered, "weeks.csv" if format == "mmm" else format)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if format == "html":
        headers["Content-Security-Policy"] = PAGE_POLICY
    return Response(content, media_type=_MEDIA_TYPES[format], headers=headers)


def file_name(registered: Registered, ending: str) -> str:
    plain = re.sub("[^A-Za-z0-9_-]", "-", registered.name)
    return f"{plain[:80].strip('-') or 'campaign'}.{ending}"


@router.get(
    "/stream",
    summary="Listen to releases",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: `release`, with the slot as id and data.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **problems(404, 422),
    },
)
async def stream_releases(
    request: Request,
    caller: Caller,
    campaign: CampaignId,
    after: Annotated[
        int | None,
        Query(ge=0, le=8_784, description="Begin after this slot; with those to come if left out."),
    ] = None,
) -> StreamingResponse:
    """An event for each slot as it becomes visible. After a break, browsers go on where they were
    by Last-Event-ID. Ends after the last slot."""
    registered = await run_in_threadpool(
        campaign_for, request, caller, campaign, Action.READ_RELEASES
    )
    last = request.headers.get("last-event-id", "")
    if last.isascii() and last.isdecimal() and len(last) <= 4:
        after = int(last)
    if after is None:
        after = await run_in_threadpool(backend_of(request).publication.visible_slot, registered)
    return StreamingResponse(
        _events(request, registered, after),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _events(request: Request, registered: Registered, after: int) -> AsyncIterator[str]:
    async for slot in backend_of(request).watch.slots(registered, after):
        try:
            # A key that was revoked meanwhile hears no more.
            await run_in_threadpool(principal_of, request)
        except Problem:
            return
        if slot is None:
            yield ": listening\n\n"
            continue
        body: dict[str, Any] = {"campaign": registered.campaign_id, "slot": slot}
        yield f"event: release\nid: {slot}\ndata: {json.dumps(body)}\n\n"
