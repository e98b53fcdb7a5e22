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
from adsbpc.model import CampaignSpec, Guarantee
from adsbpc.privacy import epsilon_of
from adsbpc.report.numbers import rounded_up
from adsbpc.report.tabular import Tabular


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

    guarantee: Guarantee
    epsilon: float
    delta: float
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
            f"rho = {float(self.guarantee.rho):g} for one {self.guarantee.unit} "
            f"({self.guarantee.adjacency}): (epsilon = {rounded_up(self.epsilon)}, "
            f"delta = {self.delta:g}). Errors when one user counts for at most {self.bound} a slot."
        )


def plan(spec: CampaignSpec, bound: int = 1) -> Plan:
    """Plan a campaign; a fixed bound of the campaign file goes before the one asked for."""
    privacy = privacy_of(spec)
    mechanism = plan_adsbpc(spec)
    bound = mechanism.fixed_bound or bound
    return Plan(
        mechanism.guarantee,
        epsilon_of(mechanism.guarantee.rho, privacy.delta),
        privacy.delta,
        split_of(spec),
        privacy.adsbpc.bounds,
        bound,
        mechanism.publishers,
        tuple(ExpectedError(*row) for row in expected_errors(mechanism, bound)),
        rho_for_targets(spec, bound),
    )
