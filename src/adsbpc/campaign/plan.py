"""What a campaign will promise and how accurate it will be, before any data is seen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adsbpc.mechanisms import (
    expected_errors,
    plan_adsbpc,
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
    """`queries` hold for the bound given; errors grow in proportion to the bound.

    `rho_for_targets` is what measurement needs to meet variance targets, where there are any.
    """

    promise: Promise
    split: dict[str, Fraction]
    bounds: str
    bound: int
    publishers: tuple[str, ...]
    queries: tuple[ExpectedError, ...]
    rho_for_targets: float | None

    def columns(self) -> dict[str, list[Any]]:
        """The expected errors."""
        names = ("slot", "query", "standard_error")
        return {name: [getattr(query, name) for query in self.queries] for name in names}

    def caption(self) -> str:
        return (
            f"{promise_in_words(self.promise)} Errors when one user counts for at most "
            f"{self.bound} conversions a slot."
        )


def plan(spec: CampaignSpec, bound: int = 1) -> Plan:
    """Plan a campaign; a fixed bound of the campaign file goes before the one asked for."""
    privacy = privacy_of(spec)
    mechanism = plan_adsbpc(spec)
    bound = mechanism.fixed_bound or bound
    scope_rho = mechanism.guarantee.rho
    if privacy.scope_rho is not None:
        scope_rho = exact_rho(privacy.scope_rho)
    return Plan(
        Promise(
            mechanism.guarantee,
            epsilon_of(mechanism.guarantee.rho, privacy.delta),
            privacy.delta,
            scope_rho,
            epsilon_of(scope_rho, privacy.delta),
        ),
        split_of(spec),
        privacy.adsbpc.bounds,
        bound,
        mechanism.publishers,
        tuple(ExpectedError(*row) for row in expected_errors(mechanism, bound)),
        rho_for_targets(spec, bound),
    )
