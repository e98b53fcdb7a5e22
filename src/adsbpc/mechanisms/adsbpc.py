"""AdsBPC: independent noise per slot, scaled to a bound on each user's contribution in the slot.

Xiao et al., "AdsBPC", IEEE S&P 2025, Algorithm 1, with the corrections that privacy/README.md
lists. Must never: look at contributions of a slot other than through `privacy`, or use a bound
other than the one that scales the noise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import Contributions
from adsbpc.mechanisms.bounds import Past, Tracker, units
from adsbpc.mechanisms.interface import (
    Limit,
    Rows,
    check_next,
    check_released_by,
    own_charges,
    spent_with,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Charge, Guarantee
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import ChargeLine, Drawn, Estimate, Release
from adsbpc.privacy import Randomness, noisy_totals, source_of, totals_squared
from adsbpc.workloads import VarianceTargets, Workload, per_slot, prefix_sums
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class BoundedState:
    """What one slot leaves to the next, in lists with an entry per slot. `secret` must stay
    secret; the rest may be published.

    `plan` is the fingerprint of the plan that it belongs to, `spent` the pico-rho charged so far.
    """

    plan: str = ""
    spent: int = 0
    bounds: list[int] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    histograms: list[list[int]] = field(default_factory=list)
    secret: dict[str, list[int]] = field(default_factory=dict)

    @property
    def next_slot(self) -> int:
        return len(self.values) + 1

    def last_step(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "spent": self.spent,
            "bound": self.bounds[-1],
            "values": self.values[-1],
            "scale": self.scales[-1].hex(),
            "histogram": self.histograms[-1],
            "secret": self.secret,
        }

    @property
    def last_secret(self) -> list[Any]:
        return [self.plan, self.secret]

    @classmethod
    def from_steps(cls, steps: Sequence[Mapping[str, Any]]) -> BoundedState:
        if not steps:
            return cls()
        return cls(
            steps[-1]["plan"],
            steps[-1]["spent"],
            [step["bound"] for step in steps],
            [step["values"] for step in steps],
            [float.fromhex(step["scale"]) for step in steps],
            [step["histogram"] for step in steps],
            steps[-1]["secret"],
        )


@dataclass(frozen=True)
class AdsBPC:
    """A planned run: what each slot may spend, how bounds are found, which questions are answered.

    Formal guarantee: `guarantee.rho`-zCDP over all slots, for the guarantee's adjacency, given
    contributions whose capped totals move by one user as `privacy.totals_squared` says.
    """

    guarantee: Guarantee
    layout: Layout
    slot_rho: tuple[Fraction, ...]
    tracker: Tracker
    workloads: tuple[Workload, ...]
    unit_value: float
    name: ClassVar[Literal["adsbpc"]] = "adsbpc"
    adopts_from_rows: ClassVar[bool] = False

    @property
    def slots(self) -> int:
        return len(self.slot_rho)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that the promise or the noise depends on. Spelled out, so that a
        later version finds the same for the same plan."""
        tracker = self.tracker
        parts = {
            "rho": str(self.guarantee.rho),
            "adjacency": self.guarantee.adjacency.value,
            "scope": self.guarantee.scope,
            "publishers": self.layout.cells,
            "slot_rho": [str(rho) for rho in self.slot_rho],
            "bounds": [tracker.name, *map(str, tracker.budgets)] if tracker.budgets else None,
            "fixed_bound": tracker.fixed,
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def stored_plan(self) -> StoredPlan:
        return StoredPlan(tuple(int(rho * PICO_RHO) for rho in self.slot_rho))

    def limit(self) -> Limit:
        return Limit(self.tracker.name, self.tracker.fixed, 1)

    def condition(self, limit: float) -> str:
        return f"when one user counts for at most {limit:g} conversions a slot"

    def _sensitivity(self, bound: float) -> float:
        """Of a slot's totals, squared, in the metric."""
        factor = totals_squared(self.guarantee.adjacency, len(self.layout), int(bound))
        return factor * (self.unit_value * UNITS_PER_CONVERSION) ** 2

    def expected_errors(self, limit: float) -> list[tuple[int, str, float]]:
        variances = self._sensitivity(limit) / (2 * np.array([float(rho) for rho in self.slot_rho]))
        return [
            (int(slot), name, float(error))
            for workload in self.workloads
            for slot, name, error in zip(
                workload.slots, workload.names, np.sqrt(workload.variances(variances)), strict=True
            )
        ]

    def rho_for(self, targets: VarianceTargets, limit: float) -> float:
        return targets.budget_for(self.workloads[0], 1.0).rho * self._sensitivity(limit)

    def resume(self, steps: Sequence[Mapping[str, Any]]) -> BoundedState:
        return BoundedState.from_steps(steps)

    def open_rows(self, rows: Rows) -> AbstractContextManager[Contributions]:
        return rows.contributions()

    def release(
        self, state: BoundedState, contributions: Contributions, randomness: Randomness
    ) -> tuple[Drawn, BoundedState]:
        """Release the next slot: bound, cap, noise, answers."""
        slot = state.next_slot
        check_next(self, slot, state.plan, contributions.layout)
        past = Past(state.bounds, state.histograms, _concentration(state), state.secret)
        bound, histogram, secret, charges = self.tracker.next_bound(
            slot, past, contributions, randomness
        )
        totals = contributions.totals(slot, units(bound))
        noisy = noisy_totals(
            totals, units(bound), self.slot_rho[slot - 1], self.guarantee.adjacency, randomness
        )
        charges.append(Charge.for_cost("measurement", noisy.cost))
        spent = spent_with(self, slot, state.spent, charges)
        noised = [int(value) for value in noisy.values]
        state = self._after(state, spent, bound, noised, noisy.scale, histogram, secret)
        values = np.array(state.values, dtype=np.float64) * self.unit_value
        variances = np.zeros(self.slots)
        variances[:slot] = (np.array(state.scales) * self.unit_value) ** 2
        drawn = Drawn(
            slot=slot,
            mechanism=self.name,
            bound=bound,
            histogram=tuple(histogram),
            values=tuple(state.values[-1]),
            scale=noisy.scale,
            randomness=source_of(randomness),
            charges=tuple(map(ChargeLine.of, charges)),
            estimates=tuple(
                each for work in self.workloads for each in self._due(work, values, variances)
            ),
            slot_totals=self._due(per_slot(self.slots), values, variances),
            running_totals=self._due(prefix_sums(self.slots), values, variances),
        )
        return drawn, state

    def adopt(self, state: BoundedState, _rows: Rows, release: Release) -> list[BoundedState]:
        """Looks at nobody. The states differ in what is secret only."""
        slot = state.next_slot
        check_next(self, slot, state.plan, self.layout)
        check_released_by(self, release)
        assert release.bound is not None
        spent = spent_with(self, slot, state.spent, own_charges(release))
        values, histogram = list(release.values), list(release.histogram)
        return [
            self._after(state, spent, release.bound, values, release.scale, histogram, secret)
            for secret in self.tracker.secrets_after(
                slot, state.bounds, state.secret, release.bound
            )
        ]

    def _after(
        self,
        state: BoundedState,
        spent: int,
        bound: int,
        values: list[int],
        scale: float,
        histogram: list[int],
        secret: dict[str, list[int]],
    ) -> BoundedState:
        return BoundedState(
            self.fingerprint,
            spent,
            [*state.bounds, bound],
            [*state.values, values],
            [*state.scales, scale],
            [*state.histograms, histogram],
            secret,
        )

    def _due(self, workload: Workload, values: Reals, variances: Reals) -> tuple[Estimate, ...]:
        """Answers to every query that is due at the last slot of `values`, with exact variances."""
        due = np.flatnonzero(workload.slots == len(values))
        if not due.size:
            return ()
        answered, spread = workload.answers(values), np.sqrt(workload.variances(variances))
        return tuple(
            Estimate(
                cell,
                workload.names[row],
                float(answered[row, column]),
                float(spread[row]),
                workload.span(row),
            )
            for row in map(int, due)
            for column, cell in enumerate(self.layout.cells)
        )


def _concentration(state: BoundedState) -> float:
    """Sum of squared shares of cells in what was released so far; 1 before anything was."""
    if not state.values:
        return 1.0
    totals = np.maximum(np.array(state.values, dtype=np.float64).sum(axis=0), 0)
    total = float(totals.sum())
    return 1.0 if total == 0 else float(((totals / total) ** 2).sum())
