"""What the JSON of a report holds, as a model: its JSON Schema is made from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from adsbpc.report.calibration import Calibration
from adsbpc.report.lift import Lift
from adsbpc.report.model_comparison import Compared
from adsbpc.report.ratios import Ratio

Part = Annotated[float, Field(ge=0, le=1)]
Slot = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasureObject(_Part):
    """A question of the campaign, and the part of its budget that answers it."""

    name: str
    metric: str
    currency: Annotated[str | None, Field(description="Of value, where it is named.")]
    by: Annotated[list[str], Field(description="The dimensions whose product has the cells.")]
    share: Part


class AttributionObject(_Part):
    """What a fitted model came to."""

    model: Annotated[str | None, Field(description="That of the newest slot.")]
    by_slot: Annotated[list[str | None], Field(description="That of every released slot.")]
    fit_slot: Annotated[
        Slot | None, Field(description="Which released the fit: null before, or if made elsewhere.")
    ]
    relative_noise: Annotated[
        float | None,
        Field(description="How far noise of the fit moves what publishers get, as a part of it."),
    ]
    comparison: Annotated[
        list[Compared], Field(description="Shares under further models, from the fit's counts.")
    ]


class GuaranteeObject(_Part):
    """What is promised. `scope_rho` and `scope_epsilon` are the limit of the scope's campaigns
    together."""

    unit: Literal["user"]
    adjacency: Literal["add-remove", "substitute"]
    rho: float
    epsilon: Annotated[float, Field(description="Of the whole campaign, at delta.")]
    delta: float
    scope: str
    scope_rho: float
    scope_epsilon: float


class BudgetObject(_Part):
    """In rho of zCDP."""

    limit: float
    spent: float
    left: float


class BudgetsObject(_Part):
    campaign: BudgetObject
    scope: BudgetObject


@dataclass(frozen=True)
class LiftObject(Lift):
    """`told`: the band excludes that nothing was caused."""

    told: bool


class ArmObject(_Part):
    """What an arm of a trial has in the end."""

    measure: str
    metric: str
    arm: str
    value: float
    low: float
    high: float


class BalanceObject(_Part):
    """Whether arms have the people that their shares say."""

    people: dict[str, float]
    shares: dict[str, float]
    chance: Annotated[Part, Field(description="How often chance gives a balance as bad.")]
    counted: Annotated[bool, Field(description="By a measure of reach, with noise.")]
    is_bad: bool


class CellObject(BaseModel):
    """One answer. Beside these keys it has one for each dimension of any measure, with a value of
    its list, "other", or "(all)" where the view sums over it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, str]

    measure: str
    view: Annotated[str, Field(description="Which dimensions are told apart.")]
    slot: Annotated[Slot, Field(description="After which this was answered.")]
    first_slot: Slot
    last_slot: Slot
    starts_at: datetime
    ends_at: Annotated[datetime, Field(description="Not part of it.")]
    query: str
    value: float
    low: float
    high: float
    standard_error: Annotated[float, Field(ge=0, description="Of the noise.")]
    cut: Annotated[float, Field(description="What may be missing because it was cut.")]
    noisy: Annotated[bool, Field(description="The interval reaches zero.")]
    band_low: Annotated[
        float | None, Field(description="Holds for all slots at once; of running totals, if asked.")
    ] = None
    band_high: float | None = None


class ReportObject(_Part):
    """A report of adsbpc in JSON. Keys may be added within a format; what a key means stays."""

    format: Literal[2]
    campaign: str
    scope: str
    advertiser: str
    measures: list[MeasureObject]
    attribution_model: Annotated[str, Field(description="That of the campaign file.")]
    attribution: Annotated[
        AttributionObject | None, Field(description="Null unless the model is fitted.")
    ]
    level: Annotated[Part, Field(description="Of the intervals.")]
    adjusted: bool
    guarantee: GuaranteeObject
    budget: BudgetsObject
    ratios: list[Ratio]
    lift: Annotated[
        list[LiftObject] | None, Field(description="This and the next three: of trials only.")
    ] = None
    arms: list[ArmObject] | None = None
    balance: BalanceObject | None = None
    calibration: list[Calibration] | None = None
    cells: list[CellObject]


def schema() -> dict[str, Any]:
    """The JSON Schema of a report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ReportObject.model_json_schema(mode="validation"),
    }
