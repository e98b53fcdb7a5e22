"""What a campaign will promise and how accurate it will be, before any data is seen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adsbpc.campaign.planning import plan_anew
from adsbpc.mechanisms import (
    AdsBPC,
    Mechanism,
    expected_errors,
    guarantee_of,
    privacy_of,
    rho_for_targets,
    split_of,
)
from adsbpc.model import CampaignSpec, Promise
from adsbpc.privacy import epsilon_of, exact_rho
from adsbpc.report.tabular import Tabular
from adsbpc.report.wording import promise_in_words


@dataclass(frozen=True)
class ExpectedError:
    """Standard error of a query's answer, for every publisher alike."""

    slot: int
    query: str
    standard_error: float


@dataclass(frozen=True)
class Plan(Tabular):
    """`queries` hold for the `bound` given, and grow in proportion to it: the conversions that one
    user may have on a slot under AdsBPC, and over the whole campaign, as a norm, under personal
    budgets. `bounds` says how it is found.

    `rho_for_targets` is what measurement needs to meet variance targets, where there are any.
    """

    promise: Promise
    mechanism: str
    split: dict[str, Fraction]
    bounds: str
    bound: float
    publishers: tuple[str, ...]
    queries: tuple[ExpectedError, ...]
    rho_for_targets: float | None

    def columns(self) -> dict[str, list[Any]]:
        """The expected errors."""
        names = ("slot", "query", "standard_error")
        return {name: [getattr(query, name) for query in self.queries] for name in names}

    def caption(self) -> str:
        return f"{promise_in_words(self.promise)} Errors {self.condition}."

    @property
    def condition(self) -> str:
        """When the errors are as they are said to be."""
        if self.mechanism == "adsbpc":
            return f"when one user counts for at most {self.bound:g} conversions a slot"
        return (
            f"when one user's budget is as large as {self.bound:.3g} conversions with one "
            "publisher on one slot"
        )


def plan(spec: CampaignSpec, bound: float | None = None) -> Plan:
    """Plan a campaign; a bound or allowance that the campaign file fixes goes before the one asked
    for."""
    privacy = privacy_of(spec)
    mechanism = plan_anew(spec)
    bounds, fixed, usual = _bound_of(mechanism, spec)
    bound = fixed or bound or usual
    guarantee = guarantee_of(spec)
    scope_rho = guarantee.rho
    if privacy.scope_rho is not None:
        scope_rho = exact_rho(privacy.scope_rho)
    return Plan(
        Promise(
            guarantee,
            epsilon_of(guarantee.rho, privacy.delta),
            privacy.delta,
            scope_rho,
            epsilon_of(scope_rho, privacy.delta),
        ),
        mechanism.name,
        split_of(spec),
        bounds,
        bound,
        mechanism.publishers,
        tuple(ExpectedError(*row) for row in expected_errors(mechanism, bound)),
        rho_for_targets(mechanism, spec, bound),
    )


def _bound_of(mechanism: Mechanism, spec: CampaignSpec) -> tuple[str, float | None, float]:
    """How the bound or allowance is found, what it is if it is fixed, and what to expect."""
    if isinstance(mechanism, AdsBPC):
        return privacy_of(spec).adsbpc.bounds, mechanism.fixed_bound, 1
    if mechanism.forecast is None:
        return "fixed", mechanism.allowance, 1
    return "histogram", None, mechanism.allowance or mechanism.forecast.least
