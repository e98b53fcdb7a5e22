"""Planned mechanisms and small contributions for tests."""

from __future__ import annotations

from typing import Any

from adsbpc.contributions import ArrayContributions
from adsbpc.mechanisms import AdsBPC, SlotRelease, State, plan_mechanism
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec
from adsbpc.privacy import Randomness, SeededRandomness

PUBLISHERS = ("A", "other")


def spec_of(slots: int, workload: dict[str, Any] | None = None, **privacy: Any) -> CampaignSpec:
    return CampaignSpec.model_validate(
        {
            "campaign": {
                "name": "test",
                "scope": "acme",
                "advertiser": "a",
                "start": "2026-03-01",
                "slots": slots,
                "publishers": ["A"],
            },
            "events": {"impressions": "i", "conversions": "c"},
            "privacy": {"rho": 1, **privacy},
            "workload": [workload or {}],
        }
    )


def planned(slots: int, workload: dict[str, Any] | None = None, **privacy: Any) -> AdsBPC:
    mechanism = plan_mechanism(spec_of(slots, workload, **privacy))
    assert isinstance(mechanism, AdsBPC)
    return mechanism


def bound_of(release: SlotRelease) -> int:
    assert release.bound is not None
    return release.bound


def conversions(rows: list[tuple[str, int, int]], slots: int) -> ArrayContributions:
    """One whole conversion a row: (user, slot, publisher index)."""
    return ArrayContributions(
        [user for user, _, _ in rows],
        [slot for _, slot, _ in rows],
        [publisher for _, _, publisher in rows],
        [UNITS_PER_CONVERSION] * len(rows),
        slots,
        PUBLISHERS,
    )


def run(
    mechanism: AdsBPC, contributions: ArrayContributions, randomness: Randomness | int
) -> tuple[list[SlotRelease], State]:
    source = SeededRandomness(randomness) if isinstance(randomness, int) else randomness
    state, releases = State(), []
    for _ in range(mechanism.slots):
        release, state = mechanism.release(state, contributions, source)
        releases.append(release)
    return releases, state
