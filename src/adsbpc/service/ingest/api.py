"""Events: pushed in batches, answered when they are stored for good."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Security
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model
from starlette.concurrency import run_in_threadpool

from adsbpc import telemetry
from adsbpc.events.schema import IMPRESSION_KINDS, LARGEST_VALUE, LONGEST_TEXT, FieldKind
from adsbpc.service.auth.access import Caller, backend_of, bearer, principal_of, require
from adsbpc.service.auth.permissions import Action, Principal, Role
from adsbpc.service.backend import Backend
from adsbpc.service.clock import now_us
from adsbpc.service.http.bodies import JSON, Received, receive_body, unpacked
from adsbpc.service.http.problems import problems
from adsbpc.service.ingest.bodies import NDJSON, PARQUET, check_body
from adsbpc.service.ingest.deliveries import Deliveries, deliveries_of
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
    with telemetry.span("adsbpc.push", source=source):
        answer = await _stored(request, sender, batch_key, source)
        telemetry.count("adsbpc.pushes", 1, source=source)
        return answer


async def _stored(request: Request, sender: Principal, batch_key: str, source: Source) -> Answer:
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


class DeliveredBatch(BaseModel):
    source: str
    arrived_at: datetime
    batch_key: str
    rows: int
    accepted: int
    duplicates: int
    quarantined: int
    after_release: int
    after_count: int


class UnknownAdvertiser(BaseModel):
    """An advertiser of rows in the newest batches that no campaign has which counts the publisher
    by name."""

    advertiser: str
    rows: int
    hint: str


class OwnDeliveries(BaseModel):
    """Of the key's own role and subject. `rows` counts by verdict those of the hours that were
    asked for, `reasons` those in quarantine; `batches` are the newest that are remembered."""

    last_seen: datetime | None
    last_event: datetime | None
    rows: dict[str, int]
    reasons: dict[str, int]
    batches: list[DeliveredBatch]
    unknown_advertisers: list[UnknownAdvertiser]


@router.get("/deliveries", summary="Read own deliveries", responses=problems(422))
def read_deliveries(
    request: Request,
    caller: Caller,
    hours: Annotated[int, Query(ge=1, le=744, description="How far back rows are counted.")] = 48,
) -> OwnDeliveries:
    """What the sender has sent, and what became of it: nobody else's rows have a part in it."""
    require(request, caller, Action.READ_DELIVERIES)
    found = own_deliveries(backend_of(request), caller, hours)
    return OwnDeliveries(
        last_seen=found.last_seen,
        last_event=found.last_event,
        rows=found.rows,
        reasons=found.reasons,
        batches=[
            DeliveredBatch(
                source=each.source,
                arrived_at=each.arrived_at,
                **each.answer.model_dump(include=_OF_A_BATCH),
            )
            for each in found.newest
        ],
        unknown_advertisers=[UnknownAdvertiser(**asdict(each)) for each in found.unknown],
    )


_OF_A_BATCH = set(DeliveredBatch.model_fields) - {"source", "arrived_at"}


def own_deliveries(backend: Backend, sender: Principal, hours: int) -> Deliveries:
    known = None
    if sender.role is Role.PUBLISHER:
        # Who lists this publisher has said so in public; of others nothing is told.
        known = {
            each.advertiser
            for each in backend.campaigns.all()
            if sender.subject in each.spec.campaign.publishers
        }
    return deliveries_of(backend.store, backend.counts, sender.owner, hours, known)
