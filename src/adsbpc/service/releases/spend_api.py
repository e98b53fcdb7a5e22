"""Spend: pushed by who pays, for costs and returns in the report."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Request, Security
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from adsbpc.errors import SourceError
from adsbpc.service.auth.access import Caller, backend_of, bearer, campaign_for
from adsbpc.service.auth.permissions import Action
from adsbpc.service.http.bodies import body_document, parsed_body
from adsbpc.service.http.problems import Problem, phrase, problems
from adsbpc.service.releases.campaign_api import CampaignId
from adsbpc.service.releases.campaign_folder import keep_spend

router = APIRouter(
    prefix="/v1/campaigns/{campaign}", tags=["campaigns"], dependencies=[Security(bearer)]
)


class SpendRow(BaseModel):
    """A publisher of the campaign, or `other`, and what it was paid for a day of the campaign. Or
    for a value of each of some dimensions, by their names: the same ones in every row."""

    model_config = ConfigDict(extra="forbid")

    publisher_id: Annotated[str, Field(min_length=1, max_length=200)]
    day: date
    amount: Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
    dimensions: Annotated[dict[str, str], Field(max_length=4)] = {}


class SpendContent(BaseModel):
    """All of it: what was sent before is replaced. Rows of one publisher and day add up."""

    model_config = ConfigDict(extra="forbid")

    rows: list[SpendRow]


class SpendResult(BaseModel):
    rows: int
    total: float


@router.put(
    "/spend", summary="Push spend", openapi_extra=body_document(SpendContent),
    responses=problems(404, 413, 415, 422),
)  # fmt: skip
async def push_spend(request: Request, caller: Caller, campaign: CampaignId) -> SpendResult:
    """What publishers were paid. It is public and not noised: the report then has costs and
    returns. It may be sent again at any time, with more days or corrected."""
    registered = await run_in_threadpool(campaign_for, request, caller, campaign, Action.PUSH_SPEND)
    content = await parsed_body(request, SpendContent)
    folder = backend_of(request).campaigns.folder_of(registered.campaign_id)
    rows = [(row.publisher_id, row.day, row.amount, row.dimensions) for row in content.rows]
    try:
        total = await run_in_threadpool(keep_spend, registered.spec, folder, rows)
    except SourceError as error:
        # Of rows that were sent, so that it names no file.
        raise Problem(422, phrase(422), str(error), "Correct it and send all rows again") from None
    return SpendResult(rows=len(rows), total=total)
