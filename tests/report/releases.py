"""Made-up releases with seeded noise, for everything that reads a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adsbpc.model import (
    OTHER_PUBLISHER,
    PICO_RHO,
    Adjacency,
    Budget,
    CampaignSpec,
    Estimate,
    Guarantee,
    Promise,
    Release,
)
from adsbpc.report import Report

Reals = NDArray[np.float64]

PUBLISHERS = ("search", "social", "video", "newsletter", "partners")
_SURGING = "video"


@dataclass(frozen=True)
class MadeUp:
    """A campaign whose truth is known, and the noise that hides it."""

    publishers: tuple[str, ...] = PUBLISHERS
    slots: int = 31
    released: int = 31
    slot: str = "1d"
    timezone: str = "Europe/Berlin"
    start: date = date(2026, 3, 1)
    name: str = "spring-shoes"
    metric: str = "conversions"
    value_cap: float | None = None
    volume: float = 60.0
    scale: float = 6.0
    bounds: tuple[int, ...] = (2,)
    queries: tuple[str, ...] = ("prefix",)
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    epsilon: float = 5.3
    seed: int = 7
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> CampaignSpec:
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": self.name,
                    "scope": "acme",
                    "advertiser": "Ad-1",
                    "start": self.start,
                    "slots": self.slots,
                    "slot": self.slot,
                    "timezone": self.timezone,
                    "publishers": self.publishers,
                    "metric": self.metric,
                    "value_cap": self.value_cap,
                },
                "events": {"impressions": "impressions", "conversions": "conversions"},
            }
        )

    @property
    def truth(self) -> Reals:
        """A row a slot and a column a publisher: smaller down the list, with a weekly rhythm."""
        names = (*self.publishers, OTHER_PUBLISHER)
        sizes = self.volume * 0.62 ** np.arange(len(names))
        slots = np.arange(self.released)
        weekly = 1 + 0.25 * np.cos(2 * np.pi * slots / 7)
        truth: Reals = np.round(np.outer(weekly, sizes)).astype(np.float64)
        if _SURGING in names:
            truth[slots > self.slots // 2, names.index(_SURGING)] *= 2.5
        return truth

    def releases(self) -> tuple[Release, ...]:
        random = np.random.default_rng(self.seed)
        truth = self.truth
        noisy = truth + np.round(random.normal(0, self.scale, truth.shape))
        return tuple(self._release(slot, noisy) for slot in range(1, self.released + 1))

    def report(self, **changes: Any) -> Report:
        limit, spent = PICO_RHO, round(0.9 * PICO_RHO * self.released / self.slots)
        guarantee = Guarantee(Fraction(1), self.adjacency, "acme")
        promise = Promise(guarantee, self.epsilon, 1e-6, Fraction(3), 14.948)
        return Report(
            self.spec,
            self.releases(),
            promise,
            Budget(limit, spent),
            Budget(3 * limit, limit + spent),
            **{**self.options, **changes},
        )

    def _release(self, slot: int, noisy: Reals) -> Release:
        starts_at, ends_at = self.spec.grid.bounds_text(slot)
        running = self._answers(f"prefix 1..{slot}", (1, slot), noisy)
        alone = self._answers(f"slot {slot}", (slot, slot), noisy)
        first = max(slot - 6, 1)
        answers = {
            "prefix": running,
            "slot": alone,
            "sliding": self._answers(f"window {first}..{slot}", (first, slot), noisy),
            "matrix": self._change(slot, noisy),
        }
        return Release(
            scope="acme",
            campaign=self.name,
            slot=slot,
            starts_at=starts_at,
            ends_at=ends_at,
            metric="value" if self.metric == "value" else "conversions",
            bound=self.bounds[slot % len(self.bounds)],
            scale=self.scale,
            values=tuple(int(value) for value in noisy[slot - 1]),
            randomness="seeded",
            charges=(),
            estimates=tuple(answer for query in self.queries for answer in answers[query]),
            slot_totals=alone,
            running_totals=running,
        )

    def _answers(self, query: str, span: tuple[int, int], noisy: Reals) -> tuple[Estimate, ...]:
        first, last = span
        sums = noisy[first - 1 : last].sum(axis=0)
        spread = self.scale * (last - first + 1) ** 0.5
        return self._estimates(query, sums, spread, span)

    def _change(self, slot: int, noisy: Reals) -> tuple[Estimate, ...]:
        """From the slot before to this one: a query that is no sum over slots."""
        if slot == 1:
            return ()
        change = noisy[slot - 1] - noisy[slot - 2]
        return self._estimates(f"change row {slot}", change, self.scale * 2**0.5, None)

    def _estimates(
        self, query: str, sums: Sequence[float] | Reals, spread: float, span: Any
    ) -> tuple[Estimate, ...]:
        names = (*self.publishers, OTHER_PUBLISHER)
        return tuple(
            Estimate(name, query, float(value), spread, span)
            for name, value in zip(names, sums, strict=True)
        )
