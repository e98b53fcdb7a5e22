"""For what watches the server: is it up, can it work, figures that follow from no user; and for the
operator arrivals, quarantine and the scheduler. Rows are counted, never shown."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, Security
from pydantic import BaseModel

from adsbpc.errors import AdsbpcError
from adsbpc.model.slots import to_moment
from adsbpc.service.auth.access import Caller, backend_of, bearer, require
from adsbpc.service.auth.permissions import Action
from adsbpc.service.data_folder import Disk
from adsbpc.service.http.problems import Problem, problems
from adsbpc.service.ingest.deliveries import last_seen
from adsbpc.service.releases.scheduler import Standing

router = APIRouter()


class Health(BaseModel):
    status: str


# Monitors that ask for no body ask by HEAD; the document has each once.
@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", tags=["health"], summary="Is the process up")
async def healthz() -> Health:
    return Health(status="up")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", tags=["health"], summary="Can it work", responses={503: problems(503)[503]})
def readyz(request: Request) -> Health:
    """Whether both databases answer, there is room on the disks, and what stores and releases is at
    work."""
    backend = backend_of(request)
    if backend.watch.stopping:
        raise _unready("The server is stopping", "Ask another one")
    if not (backend.scheduler.is_alive() and backend.intake.is_alive()):
        raise _unready("A part of the server has ended", "Start it again. Its log says why")
    if backend.has_full_disk():
        raise _unready(
            "The disk is full: there is less room than [service] least_free_bytes",
            "Free some space: what cannot be stored is refused until then",
        )
    try:
        backend.keys.has_operator()
        backend.campaigns.ledger.exists()
    except AdsbpcError as error:
        raise _unready("A database does not answer", "Look into the server's log") from error
    return Health(status="ready")


def _unready(detail: str, to_do: str) -> Problem:
    return Problem(503, "Service unavailable", detail, to_do)


@router.head("/metrics", include_in_schema=False)
@router.get(
    "/metrics",
    tags=["health"],
    summary="Figures for Prometheus",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def metrics(request: Request) -> Response:
    """None of them follows from users; those of slots change at declared moments only."""
    backend = backend_of(request)
    return Response(
        backend.metrics.text(backend.publication.totals()),
        media_type="text/plain; version=0.0.4; charset=utf-8",
    )


class Arrivals(BaseModel):
    """Rows of one hour, sender and verdict: accepted, duplicate, or why they were refused.
    An empty verdict counts batches; "after release" and "after count" accepted rows that came
    late."""

    hour: datetime
    source: str
    owner: str
    verdict: str
    number: int


class Operations(BaseModel):
    """Counts without noise: for the operator, never to be published."""

    arrivals: list[Arrivals]
    last_seen: dict[str, datetime]
    disks: list[Disk]
    scheduler: list[Standing]
    settings: dict[str, Any]


@router.get(
    "/v1/operations",
    tags=["operations"],
    summary="Watch the server",
    responses=problems(422),
    dependencies=[Security(bearer)],
)
def read_operations(
    request: Request,
    caller: Caller,
    hours: Annotated[int, Query(ge=1, le=744, description="How far back.")] = 24,
) -> Operations:
    """Arrivals by hour, how far campaigns are, and the settings without secrets."""
    require(request, caller, Action.OPERATE)
    backend = backend_of(request)
    return Operations(
        arrivals=[
            Arrivals(hour=to_moment(each.hour_us), **asdict(each))
            for each in backend.counts.by_hour(hours)
        ],
        last_seen=last_seen(backend.store),
        disks=backend.disks(),
        scheduler=backend.scheduler.standings(),
        settings=backend.settings.without_secrets(),
    )
