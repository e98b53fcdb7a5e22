"""What a campaign will promise and how accurate it will be, before any data is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, get_args

from adsbpc.attribution import COMPARED, set_name
from adsbpc.campaign.accuracy import (
    Accuracy,
    Frontier,
    Proposal,
    Target,
    accuracy_of,
    expected_of,
    frontier_of,
    limit_of,
    proposal_for,
)
from adsbpc.campaign.declared_fits import declared_fit
from adsbpc.campaign.fits import check_fit, counts_of
from adsbpc.campaign.planning import plan_anew
from adsbpc.mechanisms import (
    fit_rho,
    guarantee_of,
    privacy_of,
    promise_with,
    rho_for_targets,
    scope_limit_of,
    split_of,
)
from adsbpc.model import CampaignSpec, Promise
from adsbpc.model.attribution_spec import FittedModelName, PlainModelName
from adsbpc.model.release_spec import MechanismName
from adsbpc.privacy import (
    COUNT_UNITS,
    full_weight,
    gaussian_scale,
    weighed_squared,
)
from adsbpc.report.formats import promise_object
from adsbpc.report.tabular import Tabular
from adsbpc.report.wording import promise_in_words

# What a fit usually costs, of the budget to measure with.
_USUAL_FIT = Fraction(1, 20)


@dataclass(frozen=True)
class ExpectedError:
    """Standard error of a query's answer, for every sum of a measure's view alike."""

    measure: str
    view: str
    slot: int
    query: str
    standard_error: float


@dataclass(frozen=True)
class PlannedFit:
    """A fit that the campaign will make: from which counts, how many, with how much noise on each,
    in users; `slot` is the one that releases it, and `fallback` attributes up to it."""

    model: str
    counts: str
    cells: int
    noise: float
    rho: Fraction
    slot: int
    fallback: str


@dataclass(frozen=True)
class FurtherModel:
    """What it costs to compare with another model. `rho` is for figures of every slot, as accurate
    as those planned: a release of their own. `shares` says whether the counts of the campaign's fit
    show its shares over the fit's slots, which costs nothing."""

    model: str
    rho: Fraction
    shares: bool


@dataclass(frozen=True)
class Plan(Tabular):
    """`queries` hold for the `bound` given, and grow in proportion to it: the conversions that one
    user may have on a slot under AdsBPC; under personal budgets the allowance, as many conversions
    with one publisher on one slot as a budget is large. `bounds` says how it is found, `condition`
    in words when errors are those, and `shape` how noise is shaped over the slots.

    `rho_for_targets` is what measurement of the first measure needs to meet variance targets, where
    there are any.
    `fit` is there if the campaign fits its attribution model; `further_models` are all others.

    `accuracy` says how far sums are off beside what is `expected` of them, for measures of which
    something is; `frontier` what other weights of the total would mean. `proposal` is a budget that
    reaches the targets, or without targets shares under which measures are off least.
    """

    promise: Promise
    mechanism: MechanismName
    split: dict[str, Fraction]
    bounds: str
    bound: float
    condition: str
    shape: str
    publishers: tuple[str, ...]
    queries: tuple[ExpectedError, ...]
    rho_for_targets: float | None
    fit: PlannedFit | None
    further_models: tuple[FurtherModel, ...]
    expected: dict[str, float]
    accuracy: tuple[Accuracy, ...]
    frontier: tuple[Frontier, ...]
    proposal: Proposal | None

    def columns(self) -> dict[str, list[Any]]:
        """The expected errors."""
        names = ("measure", "view", "slot", "query", "standard_error")
        return {name: [getattr(query, name) for query in self.queries] for name in names}

    def to_object(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "guarantee": promise_object(self.promise),
            "mechanism": self.mechanism,
            "shape": self.shape,
            "split": {part: float(rho) for part, rho in self.split.items()},
            "rho_for_targets": self.rho_for_targets,
            "bounds": self.bounds,
            "bound": self.bound,
            "publishers": list(self.publishers),
            "queries": [asdict(row) for row in self.queries],
            "fit": None if self.fit is None else {**asdict(self.fit), "rho": float(self.fit.rho)},
            "further_models": [
                {**asdict(each), "rho": float(each.rho)} for each in self.further_models
            ],
            "expected": self.expected,
            "accuracy": [asdict(row) for row in self.accuracy],
            "frontier": [asdict(row) for row in self.frontier],
            "proposal": None if self.proposal is None else self.proposal.to_object(),
        }

    def caption(self) -> str:
        return f"{promise_in_words(self.promise)} Errors {self.condition}."

    def _repr_html_(self) -> str:
        from adsbpc.campaign.plan_fragment import fragment_of

        return fragment_of(self)


def plan(
    spec: CampaignSpec,
    bound: float | None = None,
    expected: Mapping[str, float] | None = None,
    targets: Sequence[str] = (),
) -> Plan:
    """Plan a campaign; a bound or allowance that the campaign file fixes goes before the one asked
    for, and what is `expected` here before what the file expects."""
    check_fit(spec)
    declared_fit(spec)
    measures = plan_anew(spec)
    fit = _planned_fit(spec)
    _, mechanism = measures.runs[0]
    limit, shown = mechanism.limit(), limit_of(mechanism, bound)
    volume = expected_of(spec, expected)
    return Plan(
        promise_with(spec, scope_limit_of(spec) or guarantee_of(spec).rho),
        mechanism.name,
        split_of(spec),
        limit.found,
        shown,
        mechanism.condition(shown),
        mechanism.shape,
        spec.reported_publishers,
        tuple(
            ExpectedError(measure.name, measure.layout.view_name(depth), *row)
            for measure, each in measures.runs
            for depth in range(len(measure.layout.dimensions) + 1)
            for row in each.expected_errors(limit_of(each, bound), depth)
        ),
        rho_for_targets(mechanism, spec, shown),
        fit,
        _further_models(spec, fit),
        volume,
        tuple(accuracy_of(measures, volume, bound)),
        tuple(frontier_of(measures, bound)),
        proposal_for(spec, measures, volume, [Target.from_text(each) for each in targets], bound),
    )


def _planned_fit(spec: CampaignSpec) -> PlannedFit | None:
    section = spec.attribution
    if section.fit is None or section.fit.slots is None:
        return None
    counts, rho = counts_of(spec), fit_rho(spec)
    squared = weighed_squared(privacy_of(spec).adjacency, COUNT_UNITS)
    noise = gaussian_scale(squared, rho) / full_weight(counts.full_squared)
    return PlannedFit(
        section.model,
        counts.name,
        len(counts.cells),
        noise,
        rho,
        section.fit.slots,
        section.fit.fallback,
    )


def _further_models(spec: CampaignSpec, fit: PlannedFit | None) -> tuple[FurtherModel, ...]:
    """A model of the same counts needs no fit of its own."""
    own = spec.attribution
    measured = guarantee_of(spec).rho - fit_rho(spec)
    found = []
    for model in get_args(PlainModelName) + get_args(FittedModelName):
        if model == own.model:
            continue
        rho, shares = measured, fit is not None and model in COMPARED[fit.counts]
        if model in get_args(FittedModelName) and (fit is None or fit.counts != set_name(model)):
            rho += fit_rho(spec) or _USUAL_FIT * measured
        found.append(FurtherModel(model, rho, shares))
    return tuple(found)
