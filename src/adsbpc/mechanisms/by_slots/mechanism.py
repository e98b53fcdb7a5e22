"""Personal budgets by slots: every user has a budget, contributions are admitted until it is spent,
and the noise of the slots is correlated so that it cancels in sums. What was admitted stays as it
is: nothing of the past is measured again.

The theorem and its proof are in docs/personal-budgets.md, the arithmetic in `privacy.filter`. Must
never: look at contributions other than through the filter and the noisy histograms, change the
strategy or an earlier multiplier, or choose a multiplier from anything that was not released.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import hypot, isqrt, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import Accounts
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.by_slots.allowance import EDGES, Forecast, Look
from adsbpc.mechanisms.by_slots.mixes import DecayingMix, DenseMix, query_row
from adsbpc.mechanisms.by_slots.state import SlotsState
from adsbpc.mechanisms.interface import (
    Limit,
    Rows,
    alike_in_views,
    answered,
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
from adsbpc.model.release import Answers, ChargeLine, Drawn, Measured
from adsbpc.model.running_noise import Cut, CutColumn, RunningNoise
from adsbpc.privacy import (
    LIMIT,
    PARTS,
    Randomness,
    Terms,
    histogram_squared,
    largest_cell,
    noisy_histogram,
    noisy_row,
    row_scale,
    source_of,
)
from adsbpc.privacy.filter import LARGEST_MULTIPLIER
from adsbpc.privacy.strategies import MOST_SLOTS
from adsbpc.workloads import Margins, SeparateSums, VarianceTargets, Workload, per_slot, prefix_sums
from adsbpc.workloads.queries import Reals

# This part of every budget is for what is kept, the rest for counting what was cut.
_KEPT_SHARE = Fraction(19, 20)
# What was cut is spread over cells by what was released of them; their people may differ by
# this much, as a standard deviation.
_UNEVEN = 0.25


@dataclass(frozen=True)
class BudgetBySlots:
    """A planned run. `slot_rho` is what each slot adds to what users may have spent; `looks` is
    the budget of each histogram of needs, by slot, and `major` says which of them have little
    noise. Without a `forecast` the allowance is the public constant `allowance`; with one,
    `allowance` is where it starts, if it is known.

    Formal guarantee: `guarantee.rho`-zCDP over all slots, for the guarantee's adjacency, given
    accounts that admit as `privacy.admit` does.
    """

    guarantee: Guarantee
    layout: Layout
    mix: DenseMix | DecayingMix
    slot_rho: tuple[Fraction, ...]
    looks: dict[int, Fraction]
    major: frozenset[int]
    forecast: Forecast | None
    allowance: float | None
    workloads: tuple[Workload, ...]
    unit_value: float
    name: ClassVar[Literal["personal-budget"]] = "personal-budget"
    adopts_from_rows: ClassVar[bool] = True

    @property
    def slots(self) -> int:
        return len(self.slot_rho)

    @cached_property
    def scale(self) -> float:
        """Of the noise of every row, the same for the whole campaign."""
        return row_scale(sum(self.slot_rho, Fraction(0)), self.guarantee.adjacency)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that the promise or the noise depends on."""
        cell = largest_cell(self.layout)
        parts = {
            "rho": str(self.guarantee.rho),
            "adjacency": self.guarantee.adjacency.value,
            "scope": self.guarantee.scope,
            **layout_parts(self.layout),
            "strategy": self.mix.parts,
            "slot_rho": [str(rho) for rho in self.slot_rho],
            "looks": {str(slot): str(rho) for slot, rho in self.looks.items()},
            "fixed_allowance": None if self.forecast else str(self.allowance),
            "integers": [LIMIT, PARTS, self.mix.one, cell, UNITS_PER_CONVERSION, str(_KEPT_SHARE)],
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def noise_of_allowance(self) -> float:
        """How a row's noise grows with the allowance, in a layout of cells alone: its standard
        deviation under one conversion, in entries of the strategy."""
        return self.scale * self.mix.one / sqrt(LIMIT * _KEPT_SHARE)

    @cached_property
    def margins(self) -> Margins | SeparateSums:
        return margins_of(self.layout)

    def _noise(self, depth: int) -> float:
        # Of an estimated sum, beside that of a column.
        return sqrt(self.margins.view_variance(depth))

    @property
    def _one_conversion(self) -> float:
        """The norm of one conversion in all views."""
        return self._one_alone * sqrt(self.layout.unit)

    @property
    def _one_alone(self) -> int:
        """The norm of one conversion in a column, in the square root of costs."""
        return self.mix.one * UNITS_PER_CONVERSION

    @property
    def need_edges(self) -> tuple[int, ...]:
        """Squared norms at which histograms of needs change bins."""
        return tuple(int((edge * self._one_alone) ** 2 * self.layout.unit) for edge in EDGES)

    @property
    def cut_ratio(self) -> int:
        """What was cut is counted this much more coarsely, so that much of it can be counted: of
        one user, with a twentieth of the budget, between two thirds of the allowance and three
        times as much. Its noise is this much larger too, and is shared among cells."""
        return min(16, 2 + isqrt(len(self.layout)))

    def multiplier_of(self, allowance: float) -> int:
        """The largest multiplier under which a norm of the allowance fits, if there is one."""
        fitting = int(sqrt(LIMIT * _KEPT_SHARE) / (allowance * self._one_conversion))
        return min(max(1, fitting), LARGEST_MULTIPLIER)

    def allowance_of(self, multiplier: int) -> float:
        """The norm that fits under a whole multiplier: an allowance is always one of these."""
        return sqrt(LIMIT * _KEPT_SHARE) / (multiplier * self._one_conversion)

    def terms(self, slot: int, multiplier: int) -> Terms:
        """The filter's terms of a slot. Users are held to what the slots so far may spend, so that
        what was released up to a slot costs no more than what was charged for it."""
        total = sum(self.slot_rho, Fraction(0))
        limit = int(LIMIT * sum(self.slot_rho[:slot], Fraction(0)) / total)
        return Terms(
            self.mix.costs(slot),
            multiplier,
            self.cut_multiplier_of(multiplier),
            int(limit * _KEPT_SHARE),
            limit - int(limit * _KEPT_SHARE),
        )

    def stored_plan(self) -> StoredPlan:
        start = self.allowance if self.forecast is not None else None
        slot_pico_rho = tuple(int(rho * PICO_RHO) for rho in self.slot_rho)
        if isinstance(self.mix, DenseMix):
            return StoredPlan(slot_pico_rho, self.mix.strategy.rows, start)
        own = self.mix.strategy
        return StoredPlan(slot_pico_rho, (), start, decays=((own.first,), own.weights, own.rates))

    @property
    def shape(self) -> str:
        if isinstance(self.mix, DenseMix):
            return f"a dense strategy for {self.slots:,} slots, as version 0.1 planned it"
        return (
            f"a strategy of {len(self.mix.strategy.rates)} decaying powers, because {self.slots:,} "
            f"slots are more than the {MOST_SLOTS:,} of a dense one: books have running sums, and "
            "the past is not measured again"
        )

    def limit(self) -> Limit:
        if self.forecast is None:
            return Limit("fixed", self.allowance, 1)
        return Limit("histogram", None, self.allowance or self.forecast.least)

    def condition(self, limit: float) -> str:
        cell = " and ".join(each.name for each in self.layout.dimensions)
        return (
            f"when one user's budget is as large as {limit:.3g} conversions with one {cell} on "
            "one slot"
        )

    def expected_errors(self, limit: float, depth: int) -> list[tuple[int, str, float]]:
        factor = self.noise_of_allowance * limit * self.unit_value * UNITS_PER_CONVERSION
        factor *= self._noise(depth) * sqrt(self.layout.unit)
        found: list[tuple[int, str, float]] = []
        for workload in self.workloads:
            errors = np.sqrt(self.mix.variances(workload)) * factor
            found += zip(map(int, workload.slots), workload.names, map(float, errors), strict=True)
        return found

    def running_noise(
        self, released: Sequence[Measured], boundaries: Sequence[int]
    ) -> RunningNoise:
        fine = np.array([self._published_multiplier(e.slot, e.allowance or 0.0) for e in released])
        coarse = np.array([self.cut_multiplier_of(int(each)) for each in fine])
        # Of slots in running totals, with what each is divided by.
        slots = np.arange(len(fine))
        so_far = np.array(
            [self.mix.mixed(np.where(slots < b, self.unit_value / fine, 0.0)) for b in boundaries]
        )
        of_cut = self.mix.solved(np.array([[float(each.values[-1])] for each in released]))[:, 0]
        running = np.concatenate([[0.0], np.cumsum(of_cut * self.unit_value / coarse)])
        counted = running[list(boundaries)]
        depths = range(len(self.layout.dimensions) + 1)
        of_rows = (self.scale * fine / coarse) ** 2
        cut = CutColumn(tuple(counted.tolist()), tuple(of_rows.tolist()))
        return RunningNoise(
            tuple(boundaries),
            so_far.tolist(),
            (self.scale**2,) * len(fine),
            (alike_in_views(self.margins, self.layout),),
            Cut((cut,), tuple(tuple(released[-1].shares(d)) for d in depths), 1.0, is_added=False),
        )

    def cut_multiplier_of(self, multiplier: int) -> int:
        """What was cut stands in one column, without a weight; cells stand in all views."""
        alone = min(isqrt(multiplier**2 * self.layout.unit), LARGEST_MULTIPLIER)
        return max(1, alone // self.cut_ratio)

    def rho_for(self, targets: VarianceTargets, limit: float) -> float:
        # Variances are in proportion to 1 / rho.
        limits = targets.limits(self.workloads[0])
        errors = self.expected_errors(limit, len(self.layout.dimensions))[: len(limits)]
        worst = max(error**2 / target for (_, _, error), target in zip(errors, limits, strict=True))
        return float(worst) * float(sum(self.slot_rho))

    def resume(self, steps: Sequence[Mapping[str, Any]]) -> SlotsState:
        return SlotsState.from_steps(steps)

    def open_rows(self, rows: Rows) -> AbstractContextManager[Accounts]:
        if isinstance(self.mix, DecayingMix):
            return rows.long_accounts(self.layout, self.mix.strategy)
        return rows.accounts(self.layout)

    def release(
        self, state: SlotsState, accounts: Accounts, randomness: Randomness
    ) -> tuple[Drawn, SlotsState]:
        """Release the next slot: look, choose, admit, add noise."""
        slot = state.next_slot
        check_next(self, slot, state.plan, accounts.layout)
        histogram, charges = self._look(slot, accounts, randomness)
        terms = self.terms(slot, self.multiplier_of(self._choose(slot, state, histogram)))
        kept = accounts.admit(terms)
        sums = self._row(
            slot,
            [*state.multipliers, terms.multiplier],
            [*state.cut_multipliers, terms.cut_multiplier],
            [*state.kept, kept],
        )
        row = noisy_row(sums, self.scale, randomness)
        charges.append(Charge.for_cost("measurement", self.slot_rho[slot - 1]))
        spent = spent_with(self, slot, state.spent, charges)
        state = self._after(state, spent, terms, list(row.values), histogram, kept)
        return self._released(state, charges, source_of(randomness)), state

    def adopt(self, state: SlotsState, rows: Rows, released: Measured) -> list[SlotsState]:
        """One state, which is true if the contributions are those of then: users are admitted again
        under the terms that were published."""
        slot = state.next_slot
        check_next(self, slot, state.plan, self.layout)
        check_released_by(self, released)
        assert released.allowance is not None
        terms = self.terms(slot, self._published_multiplier(slot, released.allowance))
        spent = spent_with(self, slot, state.spent, released.charges)
        values, histogram = list(released.values), list(released.histogram)
        with self.open_rows(rows) as accounts:
            check_next(self, slot, state.plan, accounts.layout)
            kept = accounts.admit(terms)
        return [self._after(state, spent, terms, values, histogram, kept)]

    def _published_multiplier(self, slot: int, allowance: float) -> int:
        """The one that has exactly this allowance."""
        near = self.multiplier_of(allowance)
        for multiplier in (near, near + 1, near - 1):
            if multiplier and self.allowance_of(multiplier) == allowance:
                return multiplier
        raise PrivacyError(
            f"slot {slot}: an allowance of {allowance!r} has no whole multiplier. Hand back the "
            "release as it was published"
        )

    def _after(
        self, state: SlotsState, spent: int, terms: Terms, values: list[int],
        histogram: list[int], kept: list[int],
    ) -> SlotsState:  # fmt: skip
        return SlotsState(
            self.fingerprint,
            spent,
            [*state.multipliers, terms.multiplier],
            [*state.cut_multipliers, terms.cut_multiplier],
            [*state.allowances, self.allowance_of(terms.multiplier)],
            [*state.values, values],
            [*state.histograms, histogram],
            [*state.kept, kept],
        )

    def _look(
        self, slot: int, accounts: Accounts, randomness: Randomness
    ) -> tuple[list[int], list[Charge]]:
        if slot not in self.looks:
            return [], []
        counts = accounts.needs(self.terms(slot, 1).costs, self.need_edges)
        noisy = noisy_histogram(counts, self.looks[slot], self.guarantee.adjacency, randomness)
        return [int(count) for count in noisy.values], [Charge.for_cost("histogram", noisy.cost)]

    def _choose(self, slot: int, state: SlotsState, histogram: list[int]) -> float:
        """The allowance, from what was released and nothing else."""
        if self.forecast is None:
            assert self.allowance is not None
            return self.allowance
        looks = [
            Look(number, tuple(counts), self._deviation(number), number in self.major)
            for number, counts in enumerate([*state.histograms, histogram], start=1)
            if counts
        ]
        chosen = self.forecast.choose(looks, state.allowances, self._conversions(state))
        if self.allowance is None or chosen > 2 * self.allowance:
            return chosen
        # An earlier campaign has seen its end, and knows better than the first days, and later than
        # forecasts that are not out of line.
        early = slot <= max(1, self.slots // 4)
        return self.allowance if early or chosen > self.allowance / 3 else chosen

    def _deviation(self, slot: int) -> float:
        return sqrt(histogram_squared(self.guarantee.adjacency) / (2 * float(self.looks[slot])))

    def _conversions(self, state: SlotsState) -> Reals:
        """What was released, a row a slot and a column a cell."""
        if not state.values:
            return np.zeros((0, len(self.layout)))
        return self._totals(state)[:, :-1] / (self.unit_value * UNITS_PER_CONVERSION)

    def _row(
        self,
        slot: int,
        multipliers: list[int],
        cut_multipliers: list[int],
        kept: list[list[int]],
    ) -> list[int]:
        """sum_s B_ts m_s X_s, exactly, for every column and for what was cut."""
        entries = self.mix.row(slot)

        def mixed(multipliers: list[int], column: list[int]) -> int:
            parts = zip(entries, multipliers, column, strict=True)
            return sum(entry * multiplier * total for entry, multiplier, total in parts)

        *cells, cut = zip(*kept, strict=True)
        summed = [mixed(multipliers, list(cell)) for cell in cells]
        return [*self.layout.in_columns(summed), mixed(cut_multipliers, list(cut))]

    # ---- post-processing -----------------------------------------------------------------------

    def _totals(self, state: SlotsState) -> Reals:
        """Estimated totals per slot (rows) and cell, what was cut last, in the metric."""
        values = np.array([[float(value) for value in row] for row in state.values])
        solved = self.mix.solved(values) * self.unit_value
        cells = self.margins.estimates(solved[:, :-1] / np.array(state.multipliers)[:, None])
        return np.column_stack([cells, solved[:, -1] / np.array(state.cut_multipliers)])

    def _errors(self, workload: Workload, multipliers: Sequence[int]) -> Reals:
        """Of the queries that are due at the last slot, by their place, in one column."""
        found, slots = np.zeros(len(workload.names)), len(multipliers)
        each = self.unit_value / np.array(multipliers)
        for row in np.flatnonzero(workload.slots == slots):
            mixed = self.mix.mixed(query_row(workload, int(row), slots) * each)
            found[row] = np.linalg.norm(mixed) * self.scale
        return found

    def _released(self, state: SlotsState, charges: list[Charge], source: str) -> Drawn:
        totals = self._totals(state)

        def due(workload: Workload) -> tuple[Answers, ...]:
            errors = self._errors(workload, state.multipliers)
            cut_errors = self._errors(workload, state.cut_multipliers)
            of_cut = workload.answers(totals[:, -1:])[:, 0]

            def cut(row: int) -> tuple[float, float]:
                # What was cut is missing from sums; other queries it may move either way.
                if workload.span(row) is None:
                    return 0.0, 0.0
                found = max(float(of_cut[row]), 0.0)
                return found, hypot(float(cut_errors[row]), _UNEVEN * found)

            return answered(
                self.layout,
                workload,
                totals[:, :-1],
                lambda depth: errors * self._noise(depth),
                cut,
            )

        return Drawn(
            slot=len(totals),
            mechanism=self.name,
            dimensions=self.layout.dimensions,
            weights=self.layout.weights,
            allowance=state.allowances[-1],
            histogram=tuple(state.histograms[-1]),
            values=tuple(state.values[-1]),
            scale=self.scale,
            randomness=source,
            charges=tuple(map(ChargeLine.of, charges)),
            answers=tuple(each for workload in self.workloads for each in due(workload)),
            slot_totals=due(per_slot(self.slots)),
            running_totals=due(prefix_sums(self.slots)),
        )
