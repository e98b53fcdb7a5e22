"""Events: pushed in batches, answered when they are stored for good."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Security
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model
from starlette.concurrency import run_in_threadpool

from adsbpc.events.schema import IMPRESSION_KINDS, LARGEST_VALUE, LONGEST_TEXT, FieldKind
from adsbpc.service.auth.access import backend_of, bearer, principal_of, require
from adsbpc.service.auth.permissions import Action, Principal
from adsbpc.service.clock import now_us
from adsbpc.service.http.bodies import JSON, Received, receive_body, unpacked
from adsbpc.service.http.problems import problems
from adsbpc.service.ingest.bodies import NDJSON, PARQUET, check_body
from adsbpc.service.ingest.intake import Answer, Batch
from adsbpc.service.ingest.rows import ARRIVED_AT, FIELDS, OWNED, Source

router = APIRouter(prefix="/v1", tags=["events"], dependencies=[Security(bearer)])

_DOCUMENTED: dict[FieldKind, Any] = {
    FieldKind.MOMENT: AwareDatetime,
    FieldKind.AMOUNT: Annotated[float, Field(ge=0, le=LARGEST_VALUE)],
}
_TEXT = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
_IMPRESSION_KIND = Annotated[str, Field(pattern=f"^({'|'.join(IMPRESSION_KINDS)})$")]


def _row(name: str, source: Source) -> type[BaseModel]:
    owned, _ = OWNED[source]
    fields: dict[str, Any] = {}
    for each in FIELDS[source]:
        kind = _DOCUMENTED.get(each.kind, _TEXT)
        if (source, each.name) == ("impressions", "kind"):
            kind = _IMPRESSION_KIND
        if each.name != ARRIVED_AT:
            is_needed = each.required and each.name != owned
            fields[each.name] = (kind, ...) if is_needed else (kind | None, None)
    said = f"`{owned}` may be left out: it is the key's own. `timestamp` has a zone."
    return create_model(name, __config__=ConfigDict(extra="forbid"), __doc__=said, **fields)


ROWS = (_row("ImpressionRow", "impressions"), _row("ConversionRow", "conversions"))

BatchKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$",
        description="A name for the batch. Sent again with the same one, it counts once.",
    ),
]  # fmt: skip


_ACTIONS: dict[str, Action] = {
    "/v1/impressions": Action.PUSH_IMPRESSIONS,
    "/v1/conversions": Action.PUSH_CONVERSIONS,
}


def _sender(request: Request) -> Principal:
    """Who sends, and may: known before anything of the body is read."""
    sender = principal_of(request)
    require(request, sender, _ACTIONS[request.scope["route"].path])
    return sender


Sender = Annotated[Principal, Depends(_sender)]


def _described(row: type[BaseModel]) -> dict[str, Any]:
    """What the OpenAPI document says of a push, besides its summary."""
    schema = {"$ref": f"#/components/schemas/{row.__name__}"}
    content = {
        JSON: {"schema": {"type": "array", "items": schema}},
        NDJSON: {"schema": {"type": "string", "description": "One object a line."}},
        PARQUET: {"schema": {"type": "string", "format": "binary"}},
    }
    return {
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
        "responses": problems(409, 413, 415, 422),
    }


@router.post("/impressions", summary="Push impressions", **_described(ROWS[0]))
async def push_impressions(request: Request, sender: Sender, batch: BatchKey) -> Answer:
    """A publisher's own. The answer comes when the rows are on the disk, and lists those that were
    not accepted. `Content-Encoding: gzip` is welcome."""
    return await _push(request, sender, batch, "impressions")


@router.post("/conversions", summary="Push conversions", **_described(ROWS[1]))
async def push_conversions(request: Request, sender: Sender, batch: BatchKey) -> Answer:
    """An advertiser's own. They belong to the slot in which they arrive here."""
    return await _push(request, sender, batch, "conversions")


async def _push(request: Request, sender: Principal, batch_key: str, source: Source) -> Answer:
    backend = backend_of(request)
    limits = backend.settings.ingest
    media_type = request.headers.get("content-type", "")

    def checked(received: Received) -> Batch:
        body = unpacked(received, limits)
        moment = now_us(backend.clock)
        rows = check_body(body, media_type, source, sender.subject, moment, limits)
        return Batch(sender.owner, source, batch_key, sha256(body).hexdigest(), rows)

    backend.intake.check_room(sender.owner)
    with backend.body_room.taken_by(sender.owner) as take:
        received = await receive_body(request, limits, take)
        with backend.intake.entered(sender.owner):
            # Few at once, because a body may unpack to much more than it is.
            async with backend.intake.checking:
                batch = await run_in_threadpool(checked, received)
            return await backend.intake.add(batch)
