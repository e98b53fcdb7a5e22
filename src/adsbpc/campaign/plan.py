"""What a campaign will promise and how accurate it will be, before any data is seen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from adsbpc.mechanisms import (
    expected_errors,
    plan_adsbpc,
    privacy_of,
    rho_for_targets,
    split_of,
)
from adsbpc.model import CampaignSpec, Guarantee
from adsbpc.privacy import epsilon_of


@dataclass(frozen=True)
class ExpectedError:
    """Standard error of a query's answer, for every publisher alike."""

    slot: int
    query: str
    standard_error: float


@dataclass(frozen=True)
class Plan:
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
