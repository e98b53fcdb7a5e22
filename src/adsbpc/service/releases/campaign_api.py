"""Campaigns: planned, created, listed, read, verified."""

from __future__ import annotations

import tomllib
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Security
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool

from adsbpc.campaign.plan import plan
from adsbpc.campaign.power import power_of
from adsbpc.errors import SpecError
from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.durations import duration_text
from adsbpc.model.lift_spec import LiftSection
from adsbpc.model.measure_spec import Amount, DimensionSection, MeasureSection
from adsbpc.model.release_spec import PrivacySection, WorkloadSection
from adsbpc.model.section import Duration, Key, Section
from adsbpc.model.slots import to_moment
from adsbpc.model.spec import CampaignSection
from adsbpc.report.formats import promise_object
from adsbpc.service.auth.access import Caller, backend_of, bearer, campaign_for, require
from adsbpc.service.auth.permissions import Action, Principal, Role, allows
from adsbpc.service.http.bodies import JSON, LIMITS, media_type_of, read_body, schemas_of
from adsbpc.service.http.problems import Problem, phrase, problems
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.releases.course import State
from adsbpc.service.releases.publication import spending_of

router = APIRouter(prefix="/v1", tags=["campaigns"], dependencies=[Security(bearer)])

CampaignId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="The `id` of a campaign.", alias="campaign")
]
Targets = Annotated[
    tuple[Annotated[str, Field(max_length=500)], ...],
    Query(
        max_length=50,
        description="How close totals should be, such as `conversions/publisher=10%`: the answer "
        "then has the `proposal` that reaches it.",
    ),
]
Lift = Annotated[
    float | None,
    Query(gt=0, le=1_000, description="An effect, such as 0.1 for a tenth more than the control."),
]
Rate = Annotated[
    float | None,
    Query(gt=0, lt=1, description="The part of the control that converts, given with `lift`."),
]
TOML = "application/toml"
_LARGEST_TOML = 2**16
_MOST_DOTS = 500
# They name files, or belong to one.
_REFUSED_KEYS = {
    "FitSection": ("holdout", "previous", "parameters"),
    "WorkloadSection": ("matrix",),
    "LiftSection": ("key_file", "table", "arms", "user_column", "arm_column"),
}
_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class LateEvents(Section):
    """How long slots are held back for impressions that arrive late, and how long conversions
    without a touch wait for one. The server's settings say what holds if it is left out."""

    settle: Duration
    wait: Duration = 0


class CampaignContent(Section):
    """A campaign file without [engine] and [ledger], which are the server's, as most of [events]
    is, and without [spend], which comes by itself. The key of [lift] is the server's, too."""

    campaign: CampaignSection
    events: LateEvents | None = None
    attribution: AttributionSection = AttributionSection()
    privacy: PrivacySection
    workload: tuple[WorkloadSection, ...] = (WorkloadSection(),)
    measure: tuple[MeasureSection, ...] = ()
    dimensions: dict[Key, DimensionSection] = Field(default={})
    lift: LiftSection | None = None
    expected: dict[Key, Amount] = Field(default={})


def content_schemas() -> dict[str, dict[str, Any]]:
    """What the OpenAPI document says of a campaign: as it is sent, which is not as it is held."""
    found = schemas_of(CampaignContent)
    for name, keys in _REFUSED_KEYS.items():
        for key in keys:
            del found[name]["properties"][key]
    for section in (AttributionSection, LateEvents):
        for name, field in section.model_fields.items():
            if any(getattr(each, "func", None) is duration_text for each in field.metadata):
                told = {"type": "string", "pattern": "^[0-9]{1,6}[dhms]$"}
                if not field.is_required():
                    told["default"] = duration_text(field.default)
                found[section.__name__]["properties"][name] = told
    trial = found["LiftSection"]
    trial["description"] = (
        "Arms by a keyed hash of the user id, with `shares` of people; the server makes the key. "
        "`people` says how many there are in each arm, where that is known."
    )
    trial["required"] = ["shares"]
    campaign = found["CampaignSection"]
    campaign["description"] = "`end`, the last day, may stand in place of `slots`."
    campaign["properties"]["end"] = {"type": "string", "format": "date"}
    campaign["required"].remove("slots")
    return found


class CampaignSummary(BaseModel):
    """`released` is the newest slot that is visible; `due` the last that should be by now. Both
    change at declared moments only, a fixed time after the end of a slot."""

    id: str
    name: str
    scope: str
    advertiser: str
    start: str
    slot: str
    slots: int
    timezone: str
    publishers: list[str]
    metric: str
    created_at: datetime
    released: int
    due: int
    state: State


class ScopesSpending(BaseModel):
    """In rho, as far as it is visible, of all scopes of the campaigns in the list together: what is
    promised to somebody who is measured in all of them."""

    scopes: int
    limit: float
    spent: float
    left: float


class CampaignList(BaseModel):
    campaigns: list[CampaignSummary]
    spending: ScopesSpending


class CampaignDetail(CampaignSummary):
    """`status`, of what is visible, and `guarantee` as `adsbpc status --json` and `adsbpc plan
    --json` print them. `problem` is why the last release failed; operators see it, at once."""

    status: dict[str, Any]
    guarantee: dict[str, Any]
    content: dict[str, Any]
    problem: str = Field(default="")


class VerificationResult(BaseModel):
    verified: bool
    entries: int
    head: str
    problem: str | None


_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/CampaignContent"}},
            TOML: {"schema": {"type": "string"}},
        },
    }
}


async def content_of(request: Request) -> dict[str, Any]:
    """The body as a campaign's content; JSON or TOML."""
    body, kind = await read_body(request, LIMITS), media_type_of(request)
    if kind not in (JSON, TOML):
        raise Problem(
            415, phrase(415), f"The campaign comes as {kind[:80] or 'nothing'!r}",
            f"Send Content-Type: {JSON} or {TOML}",
        )  # fmt: skip
    return await run_in_threadpool(_parsed, body, kind)


def _parsed(body: bytes, kind: str) -> dict[str, Any]:
    try:
        return _OBJECT.validate_json(body) if kind == JSON else _toml(body)
    except ValidationError:
        told = "it is no JSON object"
    except ValueError as error:
        told = str(error)
    except RecursionError:
        told = "it is nested too deeply"
    raise Problem(400, phrase(400), f"The campaign cannot be read: {told}", "Correct it")


def _toml(body: bytes) -> dict[str, Any]:
    # What the parser keeps grows with the square of the parts of a dotted key.
    if len(body) > _LARGEST_TOML or max(map(_dots, body.split(b"\n"))) > _MOST_DOTS:
        raise Problem(
            413,
            phrase(413),
            f"TOML has at most {_LARGEST_TOML} bytes here, and {_MOST_DOTS} dots in a line",
            "Send the campaign as JSON",
        )
    return tomllib.loads(body.decode("utf-8"))


def _dots(line: bytes) -> int:
    return line.count(b".")


@router.post(
    "/plan", summary="Plan a campaign, before any data", openapi_extra=_BODY,
    responses=problems(409, 413, 415, 422),
)  # fmt: skip
async def plan_campaign(
    request: Request, caller: Caller, target: Targets = (), lift: Lift = None, rate: Rate = None
) -> dict[str, Any]:
    """The promise, how the budget is split and what errors to expect, beside the amounts under
    `expected`. Of a trial, with `lift` and `rate`, also its `power`. Nothing is spent."""
    await run_in_threadpool(require, request, caller, Action.PLAN)
    if (lift is None) != (rate is None):
        raise SpecError("lift and rate go together: how large an effect, and beside what")
    content = await content_of(request)

    def planned() -> dict[str, Any]:
        spec = backend_of(request).campaigns.spec(content)
        found = plan(spec, targets=target).to_object()
        if lift is not None and rate is not None:
            found["power"] = [each.to_object() for each in power_of(spec, lift, rate)]
        return found

    return await run_in_threadpool(planned)


@router.post(
    "/campaigns", status_code=201, summary="Create a campaign", openapi_extra=_BODY,
    responses=problems(409, 413, 415, 422),
)  # fmt: skip
async def create_campaign(request: Request, caller: Caller) -> CampaignDetail:
    """From the same keys as a campaign file. Budget is reserved when its first slot is released."""
    await run_in_threadpool(require, request, caller, Action.CREATE_CAMPAIGN)
    content = await content_of(request)

    def created() -> CampaignDetail:
        registered = backend_of(request).campaigns.create(content, caller)
        return _detail(request, registered, caller)

    return await run_in_threadpool(created)


@router.get("/campaigns", summary="List campaigns", responses=problems())
def list_campaigns(request: Request, caller: Caller) -> CampaignList:
    """Those that the key may read, the newest first."""
    require(request, caller, Action.LIST_CAMPAIGNS)
    backend, readable = backend_of(request), readable_campaigns(request, caller)
    spending = spending_of(backend.campaigns, backend.publication, readable)
    return CampaignList(
        campaigns=[CampaignSummary(**_summary(request, each)) for each in readable],
        spending=ScopesSpending(scopes=spending.scopes, **spending.budget.to_object()),
    )


def readable_campaigns(request: Request, caller: Principal) -> list[Registered]:
    found = backend_of(request).campaigns.all()
    return [each for each in found if allows(caller, Action.READ_CAMPAIGN, each.advertiser)]


@router.get("/campaigns/{campaign}", summary="Read a campaign", responses=problems(404, 422))
def read_campaign(request: Request, caller: Caller, campaign: CampaignId) -> CampaignDetail:
    """What it measures, what it promises and how far it is."""
    registered = campaign_for(request, caller, campaign, Action.READ_CAMPAIGN)
    return _detail(request, registered, caller)


@router.get(
    "/campaigns/{campaign}/verification", summary="Verify the ledger", responses=problems(404, 422)
)
def verify_campaign(request: Request, caller: Caller, campaign: CampaignId) -> VerificationResult:
    """Whether any entry of the scope's ledger, or any published file, was changed."""
    registered = campaign_for(request, caller, campaign, Action.VERIFY)
    found = registered.campaign.verify()
    return VerificationResult(
        verified=found.problem is None,
        entries=found.entries,
        head=found.head,
        problem=found.problem,
    )


def _summary(request: Request, registered: Registered) -> dict[str, Any]:
    backend = backend_of(request)
    course = backend.campaigns.course(registered)
    return {
        **registered.spec.campaign.model_dump(mode="json"),
        "id": registered.campaign_id,
        "created_at": to_moment(registered.created_us),
        "released": backend.publication.visible_slot(registered),
        "due": course.due(backend.publication.publish_after_us),
        "state": course.state,
    }


def _detail(request: Request, registered: Registered, caller: Principal) -> CampaignDetail:
    visible = backend_of(request).publication.visible(registered)
    return CampaignDetail(
        **_summary(request, registered),
        status=registered.campaign.status(visible).to_object(),
        guarantee=promise_object(registered.campaign.promise),
        content=registered.content,
        problem=registered.problem if caller.role is Role.OPERATOR else "",
    )
