"""AdsBPC: independent noise per slot, scaled to a bound on each user's contribution in the slot.

Xiao et al., "AdsBPC", IEEE S&P 2025, Algorithm 1, with the corrections that privacy/README.md
lists. Must never: look at contributions of a slot other than through `privacy`, or use a bound
other than the one that scales the noise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import Contributions
from adsbpc.mechanisms.bounded_answers import BoundedAnswers
from adsbpc.mechanisms.bounds import Past, Tracker, units
from adsbpc.mechanisms.bounds_cut import CountedCut, CutCounter
from adsbpc.mechanisms.interface import (
    Limit,
    Rows,
    alike_in_views,
    check_next,
    check_released_by,
    layout_parts,
    margins_of,
    spent_with,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Charge, Guarantee
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import ChargeLine, Drawn, Measured
from adsbpc.model.running_noise import Cut, CutColumn, RunningNoise
from adsbpc.privacy import Randomness, noisy_totals, source_of, totals_squared
from adsbpc.workloads import (
    Margins,
    SeparateSums,
    VarianceTargets,
    Workload,
    per_slot,
    prefix_sums,
)


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
    """A planned run: what each slot may spend, how bounds are found, which questions are answered,
    and how what bounds cut is counted, if it is.

    Formal guarantee: `guarantee.rho`-zCDP over all slots, for the guarantee's adjacency, given
    contributions whose capped totals move by one user as `privacy.totals_squared` says.
    """

    guarantee: Guarantee
    layout: Layout
    slot_rho: tuple[Fraction, ...]
    tracker: Tracker
    workloads: tuple[Workload, ...]
    unit_value: float
    cut: CutCounter | None = None
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
            **layout_parts(self.layout),
            "slot_rho": [str(rho) for rho in self.slot_rho],
            "bounds": [tracker.name, *map(str, tracker.budgets)] if tracker.budgets else None,
            "fixed_bound": tracker.fixed,
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def stored_plan(self) -> StoredPlan:
        slot_pico_rho = tuple(int(rho * PICO_RHO) for rho in self.slot_rho)
        return StoredPlan(slot_pico_rho, adds_cut=self.cut is not None)

    @property
    def shape(self) -> str:
        return f"independent noise in each of {self.slots:,} slots"

    def limit(self) -> Limit:
        return Limit(self.tracker.name, self.tracker.fixed, 1)

    @cached_property
    def margins(self) -> Margins | SeparateSums:
        return margins_of(self.layout)

    def condition(self, limit: float) -> str:
        return f"when one user counts for at most {limit:g} conversions a slot"

    def _sensitivity(self, bound: float) -> float:
        """Of a slot's totals, squared, in the metric."""
        factor = totals_squared(self.guarantee.adjacency, self.layout, int(bound))
        return factor * (self.unit_value * UNITS_PER_CONVERSION) ** 2

    def expected_errors(self, limit: float, depth: int) -> list[tuple[int, str, float]]:
        variances = self._sensitivity(limit) / (2 * np.array([float(rho) for rho in self.slot_rho]))
        variances *= self.margins.view_variance(depth)
        return [
            (int(slot), name, float(error))
            for workload in self.workloads
            for slot, name, error in zip(
                workload.slots, workload.names, np.sqrt(workload.variances(variances)), strict=True
            )
        ]

    def running_noise(
        self, released: Sequence[Measured], boundaries: Sequence[int]
    ) -> RunningNoise:
        # Slots have noise of their own: those between two boundaries go together.
        places = list(boundaries)
        so_far = np.cumsum([0.0, *((each.scale * self.unit_value) ** 2 for each in released)])
        rows = np.diff(so_far[places], prepend=0.0)
        weights = np.tril(np.ones((len(rows), len(rows)))).tolist()
        stretch = alike_in_views(self.margins, self.layout)
        stretch = replace(stretch, together=self.margins.view_variance(0))
        cut = self._running_cut(released, places) if released else None
        return RunningNoise(tuple(places), weights, tuple(map(float, rows)), (stretch,), cut)

    def _running_cut(self, released: Sequence[Measured], places: list[int]) -> Cut | None:
        if self.cut is None:
            return None
        bounds = [each.bound or 1 for each in released]
        found = self._in_the_metric(bounds, [each.histogram for each in released])
        none = np.zeros((1, found.counts.shape[1]))
        counts, variances = (
            np.vstack([none, each.cumsum(axis=0)])[places]
            for each in (found.counts, found.variances)
        )
        of_rows = np.diff(variances, axis=0, prepend=0.0)
        depths, spread = range(len(self.layout.dimensions) + 1), np.array(released[-1].spread)
        return Cut(
            tuple(
                CutColumn(tuple(map(float, own)), tuple(map(float, noise)))
                for own, noise in zip(counts.T, of_rows.T, strict=True)
            ),
            tuple(tuple(map(float, self.margins.summed(spread, depth))) for depth in depths),
            1.0,
            is_added=True,
            expected=found.expected,
        )

    def _in_the_metric(
        self, bounds: Sequence[int], histograms: Sequence[Sequence[int]]
    ) -> CountedCut:
        assert self.cut is not None
        worth, found = self.unit_value * UNITS_PER_CONVERSION, self.cut.counted(bounds, histograms)
        expected = tuple(worth * each for each in found.expected)
        return CountedCut(worth * found.counts, worth**2 * found.variances, expected)

    def rho_for(self, targets: VarianceTargets, limit: float) -> float:
        finest = self.margins.view_variance(len(self.layout.dimensions))
        return targets.budget_for(self.workloads[0], 1.0).rho * self._sensitivity(limit) * finest

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
        past = Past(state.bounds, state.histograms, self._concentration(state), state.secret)
        bound, histogram, secret, charges = self.tracker.next_bound(
            slot, past, contributions, randomness
        )
        totals = contributions.totals(slot, units(bound))
        noisy = noisy_totals(
            totals,
            self.layout,
            units(bound),
            self.slot_rho[slot - 1],
            self.guarantee.adjacency,
            randomness,
        )
        charges.append(Charge.for_cost("measurement", noisy.cost))
        spent = spent_with(self, slot, state.spent, charges)
        noised = [int(value) for value in noisy.values]
        state = self._after(state, spent, bound, noised, noisy.scale, histogram, secret)
        answers = self._answers(state)
        drawn = Drawn(
            slot=slot,
            mechanism=self.name,
            dimensions=self.layout.dimensions,
            weights=self.layout.weights,
            bound=bound,
            histogram=tuple(histogram),
            values=tuple(state.values[-1]),
            scale=noisy.scale,
            randomness=source_of(randomness),
            charges=tuple(map(ChargeLine.of, charges)),
            spread=() if self.cut is None else tuple(map(float, answers.spread)),
            answers=tuple(each for workload in self.workloads for each in answers.to(workload)),
            slot_totals=answers.to(per_slot(self.slots)),
            running_totals=answers.to(prefix_sums(self.slots)),
        )
        return drawn, state

    def _answers(self, state: BoundedState) -> BoundedAnswers:
        values = np.array(state.values, dtype=np.float64) * self.unit_value
        variances = (np.array(state.scales) * self.unit_value) ** 2
        cut = None
        if self.cut is not None:
            cut = self._in_the_metric(state.bounds, state.histograms)
        return BoundedAnswers(
            self.layout, self.margins, self.margins.estimates(values), variances, cut
        )

    def adopt(self, state: BoundedState, _rows: Rows, released: Measured) -> list[BoundedState]:
        """Looks at nobody. The states differ in what is secret only."""
        slot = state.next_slot
        check_next(self, slot, state.plan, self.layout)
        check_released_by(self, released)
        assert released.bound is not None
        spent = spent_with(self, slot, state.spent, released.charges)
        values, histogram = list(released.values), list(released.histogram)
        return [
            self._after(state, spent, released.bound, values, released.scale, histogram, secret)
            for secret in self.tracker.secrets_after(
                slot, state.bounds, state.secret, released.bound
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

    def _concentration(self, state: BoundedState) -> float:
        """Sum of squared shares of cells in what was released so far; 1 before anything was."""
        if not state.values:
            return 1.0
        columns = np.array(state.values, dtype=np.float64).sum(axis=0)
        totals = np.maximum(self.margins.estimates(columns), 0)
        total = float(totals.sum())
        return 1.0 if total == 0 else float(((totals / total) ** 2).sum())
