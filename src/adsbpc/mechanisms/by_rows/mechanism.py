"""Personal budgets by rows: every user has a budget, contributions are let in as far as it reaches,
and the noise of slots is correlated so that it cancels in sums. When released figures ask for other
allowances or other sizes of cells, the coming rows measure the past again.

The theorem and its proof are in docs/personal-budgets.md, the arithmetic in `privacy.filter`. Must
never: look at contributions other than through the filter and the noisy histograms, change the
strategy or a row that was released, or choose a multiplier from anything that was not released.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import Accounts
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.by_rows.allowance import EDGES, Chooser, Standing
from adsbpc.mechanisms.by_rows.cut import least_slots
from adsbpc.mechanisms.by_rows.estimates import Estimates
from adsbpc.mechanisms.by_rows.measurement import Measurement
from adsbpc.mechanisms.by_rows.outlook import Outlook
from adsbpc.mechanisms.by_rows.sizes import (
    MOST_SIZED,
    ONE_SIZE,
    coarseness,
    counted_layout,
    first_sizes,
    sizes_of,
)
from adsbpc.mechanisms.by_rows.state import Row, RowsState
from adsbpc.mechanisms.interface import (
    Limit,
    Rows,
    check_next,
    check_released_by,
    layout_parts,
    margins_of,
    spent_with,
)
from adsbpc.model.cut import DECIDED, GRADUAL
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Charge, Guarantee
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import ChargeLine, Drawn, Measured
from adsbpc.model.running_noise import RunningNoise
from adsbpc.privacy import (
    LIMIT,
    PARTS,
    Randomness,
    Strategy,
    largest_cell,
    noisy_histogram,
    noisy_row,
    source_of,
)
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads import Margins, SeparateSums, VarianceTargets, Workload, per_slot, prefix_sums
from adsbpc.workloads.queries import Reals

# Sizes of cells are chosen at these slots.
_SIZE_SLOTS = (2, 4, 8)
# Allowances are changed, and the past is measured again, if they should be less or more by this; in
# campaigns whose plans name no looks, which are those of early versions and of fixed allowances,
# less by the last of these.
_LESS, _MORE, _LESS_UNNAMED = 1.01, 1.10, 1.025


@dataclass(frozen=True)
class BudgetByRows:
    """A planned run. `slot_rho` is what each slot adds to what users may have spent; `looks` is the
    budget of each histogram of needs, by slot. Without a `chooser` the allowance is the public
    constant `allowance`; with one, `allowance` is where it starts, if it is known. `cuts_nobody`
    says that the allowance is known to hold whatever anybody can do, `has_fine_cut` that what was
    cut is counted finely, for everything together, `names_looks` that the plan which is stored has
    the looks, `decides_cut` that counts of what was cut are added nearly whole or not at all.

    Formal guarantee: `guarantee.rho`-zCDP over all slots, for the guarantee's adjacency, given
    accounts that admit and renew as `privacy.filter` does.
    """

    guarantee: Guarantee
    layout: Layout
    strategy: Strategy
    slot_rho: tuple[Fraction, ...]
    looks: dict[int, Fraction]
    chooser: Chooser | None
    allowance: float | None
    workloads: tuple[Workload, ...]
    unit_value: float
    cuts_nobody: bool = False
    has_fine_cut: bool = False
    names_looks: bool = False
    decides_cut: bool = False
    name: ClassVar[Literal["personal-budget"]] = "personal-budget"
    adopts_from_rows: ClassVar[bool] = True

    @property
    def slots(self) -> int:
        return len(self.slot_rho)

    @cached_property
    def measurement(self) -> Measurement:
        return Measurement(
            self.counted,
            self.guarantee.adjacency,
            self.strategy,
            self.slot_rho,
            self.has_fine_cut,
        )

    @cached_property
    def counted(self) -> Layout:
        """What accounts are of."""
        return counted_layout(self.layout)

    @cached_property
    def outlook(self) -> Outlook:
        return Outlook(
            self.layout,
            self.measurement,
            self.guarantee.adjacency,
            self.looks,
            self.chooser,
            self.allowance,
            self.unit_value * UNITS_PER_CONVERSION,
            self.names_looks,
        )

    @cached_property
    def margins(self) -> Margins | SeparateSums:
        return margins_of(self.layout)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with everything that the promise or the noise depends on."""
        cell = largest_cell(self.layout)
        parts = {
            "rho": str(self.guarantee.rho),
            "adjacency": self.guarantee.adjacency.value,
            "scope": self.guarantee.scope,
            **layout_parts(self.counted),
            "strategy": self.strategy.rows,
            "slot_rho": [str(rho) for rho in self.slot_rho],
            "looks": {str(slot): str(rho) for slot, rho in self.looks.items()},
            "fixed_allowance": None if self.chooser else str(self.allowance),
            "integers": [LIMIT, PARTS, ONE, cell, UNITS_PER_CONVERSION],
            "shares": [str(share) for share in self.measurement.shares],
        }
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    # ---- plan ----------------------------------------------------------------------------------

    def stored_plan(self) -> StoredPlan:
        start = self.allowance if self.chooser is not None else None
        slot_pico_rho = tuple(int(rho * PICO_RHO) for rho in self.slot_rho)
        named = self.looks if self.names_looks else {}
        return StoredPlan(
            slot_pico_rho,
            self.strategy.rows,
            start,
            by_rows=True,
            has_fine_cut=self.has_fine_cut,
            looks=tuple((slot, int(rho * PICO_RHO)) for slot, rho in named.items()),
            decides_cut=self.decides_cut,
        )

    @property
    def shape(self) -> str:
        return f"a dense strategy for {self.slots:,} slots"

    def limit(self) -> Limit:
        if self.chooser is None:
            return Limit("fixed", self.allowance, 1)
        return Limit("histogram", None, self.allowance or self.chooser.least(self._nothing))

    def condition(self, limit: float) -> str:
        cell = " and ".join(each.name for each in self.layout.dimensions)
        return (
            f"when one user's budget is as large as {limit:.3g} conversions with one {cell} on "
            "one slot"
        )

    def expected_errors(self, limit: float, depth: int) -> list[tuple[int, str, float]]:
        own = self.measurement
        # Under a multiplier that is no whole number: errors grow in proportion to the limit.
        factor = own.scale * self.unit_value * limit / own.allowance_of(1)
        factor *= sqrt(self.margins.view_variance(depth))
        if self.counted.apart:
            # Multipliers are those of the view with the largest weight.
            factor *= max(self.layout.weights)
        found: list[tuple[int, str, float]] = []
        for workload in self.workloads:
            errors = np.linalg.norm(workload.answers(self._inverse), axis=1) * factor
            found += zip(map(int, workload.slots), workload.names, map(float, errors), strict=True)
        return found

    def rho_for(self, targets: VarianceTargets, limit: float) -> float:
        # Variances are in proportion to 1 / rho.
        limits = targets.limits(self.workloads[0])
        errors = self.expected_errors(limit, len(self.layout.dimensions))[: len(limits)]
        worst = max(error**2 / target for (_, _, error), target in zip(errors, limits, strict=True))
        return float(worst) * float(sum(self.slot_rho))

    # ---- running -------------------------------------------------------------------------------

    def resume(self, steps: Sequence[Mapping[str, Any]]) -> RowsState:
        return RowsState.from_steps(steps)

    def open_rows(self, rows: Rows) -> AbstractContextManager[Accounts]:
        return rows.accounts(self.counted)

    def release(
        self, state: RowsState, accounts: Accounts, randomness: Randomness
    ) -> tuple[Drawn, RowsState]:
        """Release the next slot: look, choose, renew, admit, add noise."""
        slot = state.next_slot
        self._check_next(state, accounts)
        standing, sizes = self._standing(state)
        self._open(state, accounts, sizes)
        histogram, charges = self._look(slot, accounts, standing.doubt, randomness)
        allowance = self.outlook.choose(state.rows, histogram, standing, sizes)
        last = state.rows[-1] if state.rows else None
        is_renewal = last is not None and self._is_renewal(last, allowance, sizes)
        if last is not None and not is_renewal:
            multipliers = last.multipliers
        else:
            multipliers = self.measurement.multipliers(allowance, standing.mean_coarseness)
        kept = self._let_in(state, accounts, multipliers, sizes, is_renewal)
        sums = self.measurement.row(multipliers, sizes, kept)
        values = noisy_row(sums, self.measurement.scale, randomness).values
        charges.append(Charge.for_cost("measurement", self.slot_rho[slot - 1]))
        spent = spent_with(self, slot, state.spent, charges)
        new = Row(
            multipliers,
            sizes,
            is_renewal,
            self.measurement.allowance_of(multipliers[0]),
            tuple(values),
            tuple(histogram),
        )
        state = RowsState(self.fingerprint, spent, (*state.rows, new), kept)
        return self._released(state, charges, source_of(randomness)), state

    def _is_renewal(self, last: Row, allowance: float, sizes: tuple[int, ...]) -> bool:
        if self.chooser is None:
            # The public allowance, which whole multipliers may have rounded up by more than that.
            return False
        less = _LESS if self.names_looks else _LESS_UNNAMED
        changed = allowance < last.allowance / less or allowance > last.allowance * _MORE
        return changed or sizes != last.sizes

    def adopt(self, state: RowsState, rows: Rows, released: Measured) -> list[RowsState]:
        """One state, which is true if the contributions are those of then: users are admitted again
        under the terms that were published."""
        slot = state.next_slot
        check_next(self, slot, state.plan, self.layout)
        check_released_by(self, released)
        if len(released.multipliers) != len(self.measurement.shares):
            raise PrivacyError(
                f"slot {slot}: its release has no multipliers of personal budgets by rows. Hand "
                "back the release as it was published"
            )
        spent, new = spent_with(self, slot, state.spent, released.charges), Row.of(released)
        with rows.accounts(self.counted) as accounts:
            self._check_next(state, accounts)
            self._open(state, accounts, new.sizes)
            kept = self._let_in(state, accounts, new.multipliers, new.sizes, new.is_renewal)
        return [RowsState(self.fingerprint, spent, (*state.rows, new), kept)]

    def _check_next(self, state: RowsState, accounts: Accounts) -> None:
        # Accounts may be of the same cells as the layout, or have more of them.
        planned = self.layout if accounts.layout == self.counted else None
        check_next(self, state.next_slot, state.plan, planned)

    def _open(self, state: RowsState, accounts: Accounts, sizes: tuple[int, ...]) -> None:
        slot, own = state.next_slot, self.measurement
        past = own.gram(1, self.slots, slot - 1) if sizes != state.sizes else None
        accounts.open(own.costs(slot), sizes, past)

    def _let_in(
        self,
        state: RowsState,
        accounts: Accounts,
        multipliers: tuple[int, ...],
        sizes: tuple[int, ...],
        is_renewal: bool,
    ) -> tuple[tuple[int, ...], ...]:
        """What is kept of all slots so far."""
        past = state.kept
        terms = self.measurement.terms(state.next_slot, multipliers, sizes)
        if is_renewal:
            renewal = self.measurement.renewal(terms, state.begun)
            past = tuple(tuple(totals) for totals in accounts.renew(renewal))
        return (*past, tuple(accounts.admit(terms)))

    def _look(
        self, slot: int, accounts: Accounts, doubt: float, randomness: Randomness
    ) -> tuple[list[int], list[Charge]]:
        if slot not in self.looks:
            return [], []
        own = self.measurement
        counts = accounts.needs(own.costs(slot), self._edges, own.needs.of_looks(slot, doubt))
        noisy = noisy_histogram(counts, self.looks[slot], self.guarantee.adjacency, randomness)
        return [int(count) for count in noisy.values], [Charge.for_cost("histogram", noisy.cost)]

    @property
    def _is_sized(self) -> bool:
        """Whether cells may be told apart by size: not where views sum them, or all is known."""
        several = 1 < len(self.counted) <= MOST_SIZED
        return self.chooser is not None and several and len(self.counted.views) == 1

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        """Squared norms at which histograms of needs change bins."""
        has_sizes = self._is_sized or self.counted.apart
        one = self.measurement.one_conversion * (ONE_SIZE if has_sizes else 1)
        return tuple(int((edge * one) ** 2) for edge in EDGES)

    @property
    def _nothing(self) -> Standing:
        return Standing(np.zeros(len(self.layout)), np.ones(len(self.layout)))

    def _standing(self, state: RowsState) -> tuple[Standing, tuple[int, ...]]:
        """What was released so far, and the sizes of the next row."""
        slot, counted = state.next_slot, self.counted
        first = first_sizes(counted) if self._is_sized or counted.apart else ()
        sizes = state.sizes if state.rows else first
        if not state.rows:
            return self._nothing, sizes
        estimates = self._without_cut(state.rows)
        totals = estimates.totals.sum(axis=0)
        # Only with a look: allowances are chosen for sizes.
        if self._is_sized and slot in _SIZE_SLOTS and slot in self.looks:
            sizes = sizes_of(*estimates.so_far(), sizes, counted)
        in_conversions = totals / (self.unit_value * UNITS_PER_CONVERSION)
        doubt = self.outlook.doubt(state.rows, estimates.totals.sum(axis=1))
        return Standing(in_conversions, coarseness(sizes, counted), doubt), sizes

    # ---- answers -------------------------------------------------------------------------------

    @cached_property
    def _inverse(self) -> Reals:
        return np.tril(np.linalg.inv(self.strategy.matrix.astype(np.float64)))

    def estimates(self, rows: Sequence[Row]) -> Estimates:
        """What rows say that were released."""
        plain = self._without_cut(rows)
        if self.cuts_nobody:
            return replace(plain, adds=False)
        expected = self.outlook.expected_cut(rows, plain.totals.sum(axis=0))
        least, trust = least_slots(self.slots), DECIDED if self.decides_cut else GRADUAL
        return replace(plain, expected_cut=expected, least_slots=least, trust=trust)

    def _without_cut(self, rows: Sequence[Row]) -> Estimates:
        """The same, and nothing of what may have been cut."""
        # Of a lower-triangular matrix, the inverse of a leading block is a block of the inverse.
        inverse = self._inverse[: len(rows), : len(rows)] * self.unit_value
        own = self.measurement
        return Estimates(
            self.layout, self.counted, self.margins, rows, inverse, own.scale, own.times_cut
        )

    def running_noise(
        self, released: Sequence[Measured], boundaries: Sequence[int]
    ) -> RunningNoise:
        return self.estimates([Row.of(each) for each in released]).running_noise(boundaries)

    def _released(self, state: RowsState, charges: list[Charge], source: str) -> Drawn:
        estimates, row = self.estimates(state.rows), state.rows[-1]
        return Drawn(
            slot=len(state.rows),
            mechanism=self.name,
            dimensions=self.layout.dimensions,
            weights=self.layout.weights,
            allowance=row.allowance,
            multipliers=row.multipliers,
            sizes=row.sizes,
            is_renewal=row.is_renewal,
            histogram=row.histogram,
            values=row.values,
            scale=self.measurement.scale,
            randomness=source,
            charges=tuple(map(ChargeLine.of, charges)),
            spread=() if self.cuts_nobody else tuple(map(float, estimates.spread)),
            answers=tuple(
                each for workload in self.workloads for each in estimates.answers(workload)
            ),
            slot_totals=estimates.answers(per_slot(self.slots)),
            running_totals=estimates.answers(prefix_sums(self.slots)),
        )
