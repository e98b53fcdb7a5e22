"""A slot's release as it is stored, published and read again: nothing in it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from adsbpc.model.fit import Fit
from adsbpc.model.formats import format_of
from adsbpc.model.guarantee import Charge
from adsbpc.model.release_spec import MechanismName

RELEASE_FORMAT: Final = 2


@dataclass(frozen=True)
class Estimate:
    """A query's noisy answer for one cell, in the campaign's metric. Stored releases name the cell
    by its dimension: `publisher`.

    `span` is (first, last) where the query is the sum over those slots. `cut` is an estimate of
    what bounds or budgets kept out of the value, and `cut_error` the standard error of that; both
    are 0 where nothing was released about it.
    """

    cell: Annotated[str, Field(alias="publisher")]
    query: str
    value: float
    standard_error: float
    span: tuple[int, int] | None = None
    cut: float = 0.0
    cut_error: float = 0.0


@dataclass(frozen=True)
class ChargeLine:
    """What one part of a release was charged; `pico_rho` is exact, `rho` is for people."""

    part: str
    rho: float
    pico_rho: int

    @classmethod
    def of(cls, charge: Charge) -> ChargeLine:
        return cls(charge.part, float(charge.rho), charge.pico_rho)


class Provenance(BaseModel):
    """What a release says of the ledger that paid for it: `position` and `hash` of the newest entry
    before the release's own. `commitment` is to the secret state that the slot left, and `seal` to
    the text of the release; nobody but this ledger can make or check the two."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    position: int
    hash: str
    commitment: str | None = None
    seal: str | None = None


class Drawn(BaseModel):
    """What a mechanism gives out of a slot.

    `values` are whole numbers with noise of `scale`: totals in grid units under AdsBPC, rows of the
    strategy under personal budgets, the last of which counts what was cut. `bound` is AdsBPC's, in
    conversions per user and slot; `allowance` that of personal budgets, in conversions of a user
    over the campaign; `histogram` counts users, if the slot looked. `estimates` answer the
    campaign's workload; `slot_totals` and `running_totals` are there whatever the workload, one
    for each cell: this slot alone, and everything from the first slot to this one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    slot: int
    mechanism: MechanismName = "adsbpc"
    bound: int | None = None
    allowance: float | None = None
    histogram: tuple[int, ...] = ()
    scale: float
    values: tuple[int, ...]
    randomness: str
    charges: tuple[ChargeLine, ...]
    estimates: tuple[Estimate, ...]
    slot_totals: tuple[Estimate, ...]
    running_totals: tuple[Estimate, ...]

    @model_validator(mode="after")
    def _has_what_its_mechanism_has(self) -> Self:
        if (self.bound is None) != (self.allowance is not None) or (
            (self.allowance is None) != (self.mechanism == "adsbpc")
        ):
            raise ValueError("a release has a bound under adsbpc, and an allowance otherwise")
        return self


class Release(Drawn):
    """Everything that a slot gives out. `to_text` is what the ledger stores and files hold.

    `attribution` is the model that this slot's conversions were attributed with, where a campaign
    has a fitted one; `fit` is there in the release of the slot that made it. `ledger` is filled in
    when the release is committed, and missing from those of an earlier version, as `format` is.
    Format 2 says of a fit how noisy it is.
    """

    format: int = RELEASE_FORMAT
    scope: str
    campaign: str
    starts_at: str
    ends_at: str
    metric: Literal["conversions", "value"]
    attribution: str | None = None
    fit: Fit | None = None
    ledger: Provenance | None = None

    @field_validator("format")
    @classmethod
    def _is_known(cls, found: int) -> int:
        return format_of({"format": found}, RELEASE_FORMAT)

    def to_text(self) -> str:
        return self.model_dump_json(by_alias=True)

    @classmethod
    def from_text(cls, text: str) -> Release:
        return cls.model_validate_json(text)
