"""A slot's release as it is stored, published and read again: nothing in it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from adsbpc.model.cut import sure_part
from adsbpc.model.fit import Fit
from adsbpc.model.formats import format_of
from adsbpc.model.guarantee import Charge
from adsbpc.model.layout import Dimension, Layout
from adsbpc.model.measure_spec import COUNTED_ONCE, MetricName
from adsbpc.model.release_formats import with_measures
from adsbpc.model.release_spec import MechanismName

RELEASE_FORMAT: Final = 4


@dataclass(frozen=True)
class Estimate:
    """A query's noisy answer for one sum, in the metric; `keys` are the values that the sum keeps
    of the view's dimensions, none of them for the sum of everything.

    `span` is (first, last) where the query is the sum over those slots. `cut` is an estimate of
    what bounds or budgets kept out of the value, and `cut_error` the standard error of that; both
    are 0 where nothing was released about it. `room` is the part of `cut` that is there although
    sums differ in what is cut of them.
    """

    keys: tuple[str, ...]
    query: str
    value: float
    standard_error: float
    span: tuple[int, int] | None = None
    cut: float = 0.0
    cut_error: float = 0.0
    room: float = 0.0


@dataclass(frozen=True)
class Answers:
    """A query's noisy answers for all sums of a view, which keeps these dimensions. Every sum has
    the same standard error, or `standard_errors` has one for each and `standard_error` is their
    root mean square. What was cut is known of everything together: `added` is in the values, and
    `cut` may be missing from them."""

    view: tuple[str, ...]
    query: str
    values: tuple[float, ...]
    standard_error: float
    span: tuple[int, int] | None = None
    cut: float = 0.0
    cut_error: float = 0.0
    standard_errors: tuple[float, ...] = ()
    added: float = 0.0

    @property
    def errors(self) -> tuple[float, ...]:
        """Standard errors of all sums."""
        return self.standard_errors or (self.standard_error,) * len(self.values)


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

    `values` are whole numbers with noise of `scale`, in the columns of the layout: totals in grid
    units under AdsBPC, rows of the strategy under personal budgets, the last of which count what
    was cut. `bound` is AdsBPC's, in conversions per user and slot; `allowance` that of personal
    budgets, in conversions of a user over the campaign. Of their row, `multipliers` are those of
    cells and of what was cut, `sizes` how finely each cell is measured, and `is_renewal` says that
    rows from here on hold the past as it was let in again; `spread` is the part of what was cut
    that is of each cell. Version 0.1 had none of these four. `histogram` counts users, if the slot
    looked. `answers` are those to the campaign's workload; `slot_totals` and `running_totals` are
    there whatever the workload: this slot alone, and everything from the first slot to this one.
    Each has one entry for every view and query.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    slot: int
    mechanism: MechanismName = "adsbpc"
    dimensions: tuple[Dimension, ...]
    weights: tuple[int, ...]
    bound: int | None = None
    allowance: float | None = None
    multipliers: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    is_renewal: bool = False
    spread: tuple[float, ...] = ()
    histogram: tuple[int, ...] = ()
    scale: float
    values: tuple[int, ...]
    randomness: str
    charges: tuple[ChargeLine, ...]
    answers: tuple[Answers, ...]
    slot_totals: tuple[Answers, ...]
    running_totals: tuple[Answers, ...]

    @model_validator(mode="after")
    def _has_what_its_mechanism_has(self) -> Self:
        if (self.bound is None) != (self.allowance is not None) or (
            (self.allowance is None) != (self.mechanism == "adsbpc")
        ):
            raise ValueError("a release has a bound under adsbpc, and an allowance otherwise")
        return self

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.dimensions, self.weights)

    def estimates(self, answers: Answers) -> tuple[Estimate, ...]:
        """Answers one by one, with their part of what was cut."""
        return tuple(
            Estimate(
                keys, answers.query, value, error, answers.span,
                answers.cut * share, answers.cut_error * share,
                answers.cut * share * sure_part(share),
            )
            for keys, value, error, share in zip(
                self.layout.names(len(answers.view)), answers.values, answers.errors,
                self.shares(len(answers.view)), strict=True,
            )
        )  # fmt: skip

    def shares(self, depth: int) -> list[float]:
        """The part of what was cut that is of each sum: in version 0.1 as what was released of them
        so far."""
        if self.spread:
            return self.layout.summed(self.spread, depth)
        so_far = [max(value, 0.0) for value in self.running_totals[depth].values]
        total = sum(so_far)
        return [value / total if total else 1 / len(so_far) for value in so_far]


class Measured(Drawn):
    """What a slot gives out of one measure."""

    measure: str
    metric: MetricName

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.dimensions, self.weights, self.metric in COUNTED_ONCE)


class Release(BaseModel):
    """Everything that a slot gives out. `to_text` is what the ledger stores and files hold.

    `attribution` is the model that this slot's conversions were attributed with, where a campaign
    has a fitted one; `fit` is there in the release of the slot that made it. `ledger` is filled in
    when the release is committed, and missing from those of an earlier version, as `format` is.
    Format 2 says of a fit how noisy it is. Format 3 has measures and views; before it, a release
    had one measure, by publisher. Format 4 has personal budgets by rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    format: int = RELEASE_FORMAT
    scope: str
    campaign: str
    slot: int
    starts_at: str
    ends_at: str
    measures: Annotated[tuple[Measured, ...], Field(min_length=1)]
    attribution: str | None = None
    fit: Fit | None = None
    fit_charge: ChargeLine | None = None
    ledger: Provenance | None = None

    @model_validator(mode="before")
    @classmethod
    def _in_the_words_of_today(cls, content: Any) -> Any:
        if isinstance(content, dict) and "measures" not in content:
            return with_measures(content)
        return content

    @field_validator("format")
    @classmethod
    def _is_known(cls, found: int) -> int:
        return format_of({"format": found}, RELEASE_FORMAT)

    @property
    def charges(self) -> tuple[ChargeLine, ...]:
        """Of all measures and the fit; where there are several measures, parts say of which."""
        several = len(self.measures) > 1
        of_measures = tuple(
            ChargeLine(f"{each.measure}: {line.part}", line.rho, line.pico_rho) if several else line
            for each in self.measures
            for line in each.charges
        )
        return of_measures if self.fit_charge is None else (*of_measures, self.fit_charge)

    def of(self, measure: str) -> Measured:
        return next(each for each in self.measures if each.measure == measure)

    def to_text(self) -> str:
        return self.model_dump_json()

    @classmethod
    def from_text(cls, text: str) -> Release:
        return cls.model_validate_json(text)
