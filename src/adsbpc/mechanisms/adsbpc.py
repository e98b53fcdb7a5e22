"""AdsBPC: independent noise per slot, scaled to a bound on each user's contribution in the slot.

Xiao et al., "AdsBPC", IEEE S&P 2025, Algorithm 1, with the corrections that privacy/README.md
lists. Must never: look at contributions of a slot other than through `privacy`, or use a bound
other than the one that scales the noise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import Contributions
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.bounds import HistogramTracker, QuantileAndSparseVector, units
from adsbpc.mechanisms.interface import SlotRelease, check_next, own_charges, spent_with
from adsbpc.model.guarantee import Charge, Guarantee
from adsbpc.model.release import Estimate, Release
from adsbpc.privacy import Randomness, noisy_totals, source_of
from adsbpc.workloads import Workload, per_slot, prefix_sums
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class State:
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
        """What the last slot added, for JSON. A year of hours is kept as its steps, not as a
        year of whole states."""
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
        """SECRET, for JSON: what releases do not tell of the state, and the plan that it is of."""
        return [self.plan, self.secret]

    @classmethod
    def from_steps(cls, steps: Sequence[dict[str, Any]]) -> State:
        """The state after all of these slots, in order."""
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
    publishers: tuple[str, ...]
    slot_rho: tuple[Fraction, ...]
    tracker: QuantileAndSparseVector | HistogramTracker | None
    fixed_bound: int | None
    workloads: tuple[Workload, ...]
    unit_value: float
    name: ClassVar[Literal["adsbpc"]] = "adsbpc"
    state_type: ClassVar[type[State]] = State

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
            "publishers": self.publishers,
            "slot_rho": [str(rho) for rho in self.slot_rho],
            "bounds": None if tracker is None else [tracker.name, *map(str, tracker.budgets)],
            "fixed_bound": self.fixed_bound,
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def release(
        self, state: State, contributions: Contributions, randomness: Randomness
    ) -> tuple[SlotRelease, State]:
        """Release the next slot: bound, cap, noise, answers. The old state is left as it is."""
        slot = state.next_slot
        check_next(self, slot, state.plan, contributions.publishers)
        bound, histogram, secret, charges = self._bound(slot, state, contributions, randomness)
        totals = contributions.totals(slot, units(bound))
        noisy = noisy_totals(
            totals, units(bound), self.slot_rho[slot - 1], self.guarantee.adjacency, randomness
        )
        charges.append(Charge.for_cost("measurement", noisy.cost))
        spent = spent_with(self, slot, state.spent, charges)
        drawn = [int(value) for value in noisy.values]
        state = self._after(state, spent, bound, drawn, noisy.scale, histogram, secret)
        values = np.array(state.values, dtype=np.float64) * self.unit_value
        variances = np.zeros(self.slots)
        variances[:slot] = (np.array(state.scales) * self.unit_value) ** 2
        released = SlotRelease(
            slot,
            bound,
            None,
            tuple(histogram),
            tuple(state.values[-1]),
            noisy.scale,
            source_of(randomness),
            tuple(charges),
            tuple(each for work in self.workloads for each in self._due(work, values, variances)),
            self._due(per_slot(self.slots), values, variances),
            self._due(prefix_sums(self.slots), values, variances),
        )
        return released, state

    def adopt(self, state: State, release: Release) -> list[State]:
        """The states that a released slot may have left, of which one is true: it draws nothing,
        and looks at nobody. They differ in what is secret only."""
        slot = state.next_slot
        check_next(self, slot, state.plan, self.publishers)
        bound = release.bound
        if release.mechanism != self.name or bound is None:
            raise PrivacyError(f"slot {slot}: was released by {release.mechanism}, not {self.name}")
        spent = spent_with(self, slot, state.spent, own_charges(release))
        secrets = [state.secret]
        if isinstance(self.tracker, QuantileAndSparseVector):
            secrets = self.tracker.secrets_after(slot, state.bounds, state.secret, bound)
        values, histogram = list(release.values), list(release.histogram)
        return [
            self._after(state, spent, bound, values, release.scale, histogram, secret)
            for secret in secrets
        ]

    def _after(
        self,
        state: State,
        spent: int,
        bound: int,
        values: list[int],
        scale: float,
        histogram: list[int],
        secret: dict[str, list[int]],
    ) -> State:
        return State(
            self.fingerprint,
            spent,
            [*state.bounds, bound],
            [*state.values, values],
            [*state.scales, scale],
            [*state.histograms, histogram],
            secret,
        )

    def _bound(
        self, slot: int, state: State, contributions: Contributions, randomness: Randomness
    ) -> tuple[int, list[int], dict[str, list[int]], list[Charge]]:
        """The bound, the histogram it was read from if there is a new one, the secret state
        afterwards, and what was charged."""
        tracker = self.tracker
        if isinstance(tracker, QuantileAndSparseVector):
            bound, secret, charges = tracker.next_bound(
                slot, state.bounds, state.secret, contributions, randomness
            )
            return bound, [], secret, charges
        if isinstance(tracker, HistogramTracker):
            histogram: list[int] = []
            charges = []
            if tracker.is_checkpoint(slot):
                histogram, charge = tracker.look(slot, contributions, randomness)
                charges.append(charge)
            seen = [counts for counts in (*state.histograms, histogram) if counts]
            return tracker.choose(seen, _concentration(state)), histogram, {}, charges
        assert self.fixed_bound is not None
        return self.fixed_bound, [], {}, []

    def _due(self, workload: Workload, values: Reals, variances: Reals) -> tuple[Estimate, ...]:
        """Answers to every query that is due at the last slot of `values`, with exact variances."""
        due = np.flatnonzero(workload.slots == len(values))
        if not due.size:
            return ()
        answered, spread = workload.answers(values), np.sqrt(workload.variances(variances))
        return tuple(
            Estimate(
                publisher,
                workload.names[row],
                float(answered[row, column]),
                float(spread[row]),
                workload.span(row),
            )
            for row in map(int, due)
            for column, publisher in enumerate(self.publishers)
        )


def _concentration(state: State) -> float:
    """Sum of squared shares of publishers in what was released so far; 1 before anything was."""
    if not state.values:
        return 1.0
    totals = np.maximum(np.array(state.values, dtype=np.float64).sum(axis=0), 0)
    total = float(totals.sum())
    return 1.0 if total == 0 else float(((totals / total) ** 2).sum())
