"""AdsBPC: independent noise per slot, scaled to a bound on each user's contribution in the slot.

Xiao et al., "AdsBPC", IEEE S&P 2025, Algorithm 1, with the corrections that privacy/README.md
lists. Must never: look at contributions of a slot other than through `privacy`, or use a bound
other than the one that scales the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from adsbpc.contributions.interface import Contributions
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.bounds import HistogramTracker, QuantileAndSparseVector, units
from adsbpc.mechanisms.interface import Answer, SlotRelease
from adsbpc.model.guarantee import Charge, Guarantee
from adsbpc.privacy import Randomness, composed, noisy_totals
from adsbpc.workloads import Workload


@dataclass(frozen=True)
class State:
    """What one slot leaves to the next. `secret` must stay secret; the rest may be published.

    `plan` is the fingerprint of the plan that it belongs to, `spent` what was charged so far.
    """

    plan: str = ""
    spent: Fraction = Fraction(0)
    bounds: list[int] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    histograms: list[list[int]] = field(default_factory=list)
    secret: dict[str, list[int]] = field(default_factory=dict)

    @property
    def next_slot(self) -> int:
        return len(self.values) + 1

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "spent": str(self.spent),
            "bounds": self.bounds,
            "values": self.values,
            "scales": [scale.hex() for scale in self.scales],
            "histograms": self.histograms,
            "secret": self.secret,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> State:
        scales = [float.fromhex(scale) for scale in saved["scales"]]
        return cls(**{**saved, "spent": Fraction(saved["spent"]), "scales": scales})


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

    @property
    def slots(self) -> int:
        return len(self.slot_rho)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that the promise or the noise depends on."""
        parts = (self.guarantee, self.publishers, self.slot_rho, self.tracker, self.fixed_bound)
        return sha256(repr(parts).encode()).hexdigest()

    def release(
        self, state: State, contributions: Contributions, randomness: Randomness
    ) -> tuple[SlotRelease, State]:
        """Release the next slot: bound, cap, noise, answers. The old state is left as it is."""
        slot = state.next_slot
        if slot > self.slots:
            raise PrivacyError(f"all {self.slots} slots are released: there is no slot {slot}")
        if contributions.publishers != self.publishers:
            raise PrivacyError("contributions are not of the planned list of publishers")
        if state.plan not in ("", self.fingerprint):
            raise PrivacyError(
                f"the saved state belongs to another plan than this one (slot {slot}): go on with "
                "the plan that it was made with"
            )
        bound, state, charges = self._bound(slot, state, contributions, randomness)
        totals = contributions.totals(slot, units(bound))
        noisy = noisy_totals(
            totals, units(bound), self.slot_rho[slot - 1], self.guarantee.adjacency, randomness
        )
        charges.append(Charge("measurement", noisy.cost))
        requested = composed([charge.rho for charge in charges])
        if state.spent + requested > self.guarantee.rho:
            raise PrivacyError(
                f"slot {slot} would spend {float(requested):.6g}, but only "
                f"{float(self.guarantee.rho - state.spent):.6g} of rho = "
                f"{float(self.guarantee.rho):g} is left"
            )
        state = replace(
            state,
            plan=self.fingerprint,
            spent=state.spent + requested,
            bounds=[*state.bounds, bound],
            values=[*state.values, [int(value) for value in noisy.values]],
            scales=[*state.scales, noisy.scale],
        )
        released = SlotRelease(
            slot,
            bound,
            tuple(state.values[-1]),
            noisy.scale,
            randomness.source,
            tuple(charges),
            self.answers(state),
        )
        return released, state

    def _bound(
        self, slot: int, state: State, contributions: Contributions, randomness: Randomness
    ) -> tuple[int, State, list[Charge]]:
        tracker = self.tracker
        if isinstance(tracker, QuantileAndSparseVector):
            bound, secret, charges = tracker.next_bound(
                slot, state.bounds, state.secret, contributions, randomness
            )
            return bound, replace(state, secret=secret), charges
        if isinstance(tracker, HistogramTracker):
            charges = []
            if tracker.is_checkpoint(slot):
                histogram, charge = tracker.look(slot, contributions, randomness)
                state = replace(state, histograms=[*state.histograms, histogram])
                charges.append(charge)
            return tracker.choose(state.histograms, _concentration(state)), state, charges
        assert self.fixed_bound is not None
        return self.fixed_bound, state, []

    def answers(self, state: State) -> tuple[Answer, ...]:
        """Answers to every query that is due at the last released slot, with exact variances."""
        slot = state.next_slot - 1
        values = np.array(state.values, dtype=np.float64) * self.unit_value
        variances = np.zeros(self.slots)
        variances[:slot] = (np.array(state.scales) * self.unit_value) ** 2
        found = []
        for workload in self.workloads:
            due = np.flatnonzero(workload.slots == slot)
            answered, spread = workload.answers(values), np.sqrt(workload.variances(variances))
            for row in due:
                for column, publisher in enumerate(self.publishers):
                    found.append(
                        Answer(
                            workload.names[row],
                            publisher,
                            float(answered[row, column]),
                            float(spread[row]),
                        )
                    )
        return tuple(found)


def _concentration(state: State) -> float:
    """Sum of squared shares of publishers in what was released so far; 1 before anything was."""
    if not state.values:
        return 1.0
    totals = np.maximum(np.array(state.values, dtype=np.float64).sum(axis=0), 0)
    total = float(totals.sum())
    return 1.0 if total == 0 else float(((totals / total) ** 2).sum())
