"""What an operator watches: arrivals, quarantine, the scheduler. Rows are counted, never shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Security
from pydantic import BaseModel

from adsbpc.model.slots import to_moment
from adsbpc.service.access import backend_of, require
from adsbpc.service.api.documented import Caller, bearer, problems
from adsbpc.service.permissions import Action
from adsbpc.service.scheduler import Standing

router = APIRouter(prefix="/v1", tags=["operations"], dependencies=[Security(bearer)])


class Arrivals(BaseModel):
    """Rows of one hour, sender and verdict: accepted, duplicate, or why they were refused.
    An empty verdict counts batches."""

    hour: datetime
    source: str
    owner: str
    verdict: str
    number: int


class Operations(BaseModel):
    """Counts without noise: for the operator, never to be published."""

    arrivals: list[Arrivals]
    scheduler: list[Standing]
    settings: dict[str, Any]


@router.get("/operations", summary="Watch the server", responses=problems(422))
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
            Arrivals(
                hour=to_moment(each.hour_us),
                source=each.source,
                owner=each.owner,
                verdict=each.verdict,
                number=each.number,
            )
            for each in backend.counts.by_hour(hours)
        ],
        scheduler=backend.scheduler.standings(),
        settings=backend.settings.shown(),
    )
