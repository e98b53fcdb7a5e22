"""Planned mechanisms and small contributions for tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from adsbpc.contributions import Accounts, ArrayContributions, Contributions
from adsbpc.mechanisms import AdsBPC, BoundedState, plan_measures
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Drawn, Layout
from adsbpc.privacy import Randomness, SeededRandomness
from adsbpc.privacy.decays import DecayingStrategy

LAYOUT = Layout.of_publishers(("A", "other"))


def spec_of(
    slots: int,
    workload: dict[str, Any] | None = None,
    publishers: Sequence[str] = ("A",),
    **privacy: Any,
) -> CampaignSpec:
    return CampaignSpec.model_validate(
        {
            "campaign": {
                "name": "test",
                "scope": "acme",
                "advertiser": "a",
                "start": "2026-03-01",
                "slots": slots,
                "publishers": list(publishers),
            },
            "events": {"impressions": "i", "conversions": "c"},
            "privacy": {"rho": 1, "mechanism": "adsbpc", **privacy},
            "workload": [workload or {}],
        }
    )


def planned(slots: int, workload: dict[str, Any] | None = None, **privacy: Any) -> AdsBPC:
    mechanism = plan_measures(spec_of(slots, workload, **privacy)).runs[0][1]
    assert isinstance(mechanism, AdsBPC)
    return mechanism


class Given:
    """The rows of a slot, where a test has them in its hands."""

    def __init__(
        self, accounts: Accounts | None = None, contributions: Contributions | None = None
    ) -> None:
        self._accounts, self._contributions = accounts, contributions

    def contributions(self) -> AbstractContextManager[Contributions]:
        assert self._contributions is not None
        return nullcontext(self._contributions)

    def accounts(self, layout: Layout) -> AbstractContextManager[Accounts]:
        assert self._accounts is not None
        return nullcontext(self._accounts)

    def long_accounts(
        self, layout: Layout, strategy: DecayingStrategy
    ) -> AbstractContextManager[Accounts]:
        return self.accounts(layout)


def bound_of(release: Drawn) -> int:
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
        LAYOUT,
    )


def run(
    mechanism: AdsBPC, contributions: ArrayContributions, randomness: Randomness | int
) -> tuple[list[Drawn], BoundedState]:
    source = SeededRandomness(randomness) if isinstance(randomness, int) else randomness
    state, releases = BoundedState(), []
    for _ in range(mechanism.slots):
        release, state = mechanism.release(state, contributions, source)
        releases.append(release)
    return releases, state
