"""Who is in which arm of a trial: the key and the function, for servers that show its ads.

Must never: answer anybody but the operator and the campaign's own advertiser.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, Security
from pydantic import BaseModel, Field

from adsbpc.events.arms import assignment_javascript, assignment_sql
from adsbpc.service.auth.access import Caller, bearer, campaign_for
from adsbpc.service.auth.permissions import Action
from adsbpc.service.http.problems import Problem, problems
from adsbpc.service.releases.campaign_api import CampaignId
from adsbpc.service.releases.campaign_folder import arms_of
from adsbpc.service.releases.release_api import file_name

router = APIRouter(
    prefix="/v1/campaigns/{campaign}", tags=["campaigns"], dependencies=[Security(bearer)]
)

AssignmentFormat = Literal["json", "javascript", "duckdb", "spark"]


class Assignment(BaseModel):
    """`limits` are the arms in order, each with the first place that is not its own. The place of a
    person is the first 13 hexadecimal digits of SHA-256 of `key:user_id`, in UTF-8."""

    key: str = Field(description="A secret: whoever has it knows everybody's arm.")
    limits: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    control: str = Field(description="The arm that sees no ads.")
    withholds: dict[str, list[str]] = Field(
        description="By arm that sees all publishers but some: those that it does not see."
    )


@router.get(
    "/assignment",
    summary="Read who is in which arm",
    responses={
        200: {
            "description": "The key and the ranges of arms, or a function of user id and key.",
            "model": Assignment,
            "content": {
                "text/javascript": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
            },
        },
        **problems(404, 422),
    },
)
def read_assignment(
    request: Request,
    caller: Caller,
    campaign: CampaignId,
    format: Annotated[
        AssignmentFormat,
        Query(
            description="`json` has the key. A JavaScript module, and SQL expressions for DuckDB "
            "and Spark, take it as a parameter, and do not hold it."
        ),
    ] = "json",
) -> Response:
    """What a server needs that shows ads to the treated and none to the control: the same arms as
    the campaign counts, for as long as it runs."""
    registered = campaign_for(request, caller, campaign, Action.ASSIGN_ARMS)
    if registered.spec.lift is None:
        raise Problem(
            404, "Not found", "The campaign is no trial: it has no arms",
            "Create one with [lift] to measure what ads cause",
        )  # fmt: skip
    arms = arms_of(registered.spec)
    if format == "json":
        lift = registered.spec.lift
        found = Assignment(
            key=arms.key,
            limits=[list(each) for each in arms.limits],
            control=lift.control,
            withholds={arm: list(publishers) for arm, publishers in lift.withholds.items()},
        )
        text, kind, ending = found.model_dump_json(), "application/json", "json"
    elif format == "javascript":
        text, kind, ending = assignment_javascript(arms.limits), "text/javascript", "js"
    else:
        text, kind, ending = assignment_sql(arms.limits, format), "text/plain", f"{format}.sql"
    # A browser is to keep it, not to show it to whoever stands behind.
    name = file_name(registered, f"arms.{ending}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)
