"""Personal budgets by rows: every user has a budget, contributions are let in as far as it reaches,
and the noise of slots is correlated so that it cancels in sums. When released figures ask for other
allowances or other sizes of cells, the coming rows measure the past again.

The theorem and its proof are in docs/personal-budgets.md, the arithmetic in `privacy.filter`. Must
never: look at contributions other than through the filter and the noisy histograms, change the
strategy or a row that was released, or choose a multiplier from anything that was not released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import ClassVar, Literal

import numpy as np

from adsbpc.contributions.interface import RenewableAccounts
from adsbpc.mechanisms.by_rows.allowance import EDGES, Chooser, Look, Standing
from adsbpc.mechanisms.by_rows.cut import columns_for
from adsbpc.mechanisms.by_rows.estimates import Estimates
from adsbpc.mechanisms.by_rows.needs import Needs
from adsbpc.mechanisms.by_rows.sizes import (
    MOST_SIZED,
    ONE_SIZE,
    coarseness,
    multipliers_of,
    sizes_of,
)
from adsbpc.mechanisms.by_rows.state import Row, RowsState
from adsbpc.mechanisms.interface import (
    margins_of,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import Charge, Guarantee
from adsbpc.model.layout import Layout
from adsbpc.privacy import (
    LIMIT,
    Gram,
    Pace,
    Randomness,
    Renewal,
    Strategy,
    Terms,
    Tier,
    histogram_squared,
    noisy_histogram,
    noisy_row,
    row_scale,
)
from adsbpc.privacy.filter import LARGEST_MULTIPLIER
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads import Margins, SeparateSums, Workload
from adsbpc.workloads.queries import Reals

# A norm of one conversion, in the square root of costs.
ONE_CONVERSION = ONE * UNITS_PER_CONVERSION
# Sizes of cells are chosen at these slots.
_SIZE_SLOTS = (2, 4, 8)
# Allowances are changed, and the past is measured again, if they should be less or more by this.
_LESS, _MORE = 1.05, 1.10
# An earlier campaign's allowance stays in use unless looks ask for so many times more or less.
_FAR_MORE, _FAR_LESS = 2.0, 3.0


@dataclass(frozen=True)
class BudgetByRows:
    """A planned run. `slot_rho` is what each slot adds to what users may have spent; `looks` is the
    budget of each histogram of needs, by slot. Without a `chooser` the allowance is the public
    constant `allowance`; with one, `allowance` is where it starts, if it is known.

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
    name: ClassVar[Literal["personal-budget"]] = "personal-budget"
    adopts_from_rows: ClassVar[bool] = True

    @property
    def slots(self) -> int:
        return len(self.slot_rho)

    @cached_property
    def scale(self) -> float:
        """Of the noise of every row, the same for the whole campaign."""
        return row_scale(sum(self.slot_rho, Fraction(0)), self.guarantee.adjacency)

    # ---- multipliers and terms -----------------------------------------------------------------

    @cached_property
    def _shares(self) -> tuple[Fraction, ...]:
        """Parts of every budget: for cells, and for the columns that count what was cut."""
        cuts = [Fraction(str(column.share)) for column in columns_for(len(self.layout))]
        return 1 - sum(cuts, Fraction(0)), *cuts

    @cached_property
    def margins(self) -> Margins | SeparateSums:
        return margins_of(self.layout)

    @property
    def _one_conversion(self) -> float:
        """The norm of one conversion in all views."""
        return ONE_CONVERSION * sqrt(self.layout.unit)

    def multiplier_of(self, allowance: float) -> int:
        """The largest multiplier under which a norm of the allowance fits, if there is one."""
        fitting = int(sqrt(LIMIT * self._shares[0]) / (allowance * self._one_conversion))
        return min(max(1, fitting), LARGEST_MULTIPLIER)

    def allowance_of(self, multiplier: int) -> float:
        """The norm that fits under a whole multiplier: an allowance is always one of these."""
        return sqrt(LIMIT * self._shares[0]) / (multiplier * self._one_conversion)

    def _multipliers(self, allowance: float, standing: Standing) -> tuple[int, ...]:
        """Of cells alike, and of the columns of what was cut, which stand in no views."""
        found = [self.multiplier_of(allowance)]
        for share, column in zip(self._shares[1:], columns_for(len(self.layout)), strict=True):
            ratio = column.ratio * standing.mean_coarseness
            fitting = int(sqrt(LIMIT * share) / (allowance * ratio * ONE_CONVERSION))
            found.append(min(max(1, fitting), LARGEST_MULTIPLIER))
        return tuple(found)

    def terms(self, slot: int, multipliers: tuple[int, ...], sizes: tuple[int, ...]) -> Terms:
        """The filter's terms of a slot. Users are held to what the slots so far may spend, so that
        what was released up to a slot costs no more than what was charged for it."""
        spendable = LIMIT * sum(self.slot_rho[:slot], Fraction(0)) / sum(self.slot_rho, Fraction(0))
        kept, *cuts = (int(spendable * share) for share in self._shares)
        first, *rest = (
            Tier(multiplier, limit) for multiplier, limit in zip(multipliers[1:], cuts, strict=True)
        )
        # Needs have cells multiplied with their sizes.
        per_need = multipliers[0] / (ONE_SIZE if sizes else 1)
        return Terms(
            tuple(int(cost) for cost in self.strategy.gram[slot - 1, :slot]),
            multipliers[0],
            first.multiplier,
            kept,
            first.limit,
            rest[0] if rest else None,
            multipliers_of(multipliers[0], sizes),
            Pace(int(LIMIT * self._shares[0]) // 2, self._needs.of_pace(slot, per_need)),
        )

    @cached_property
    def _needs(self) -> Needs:
        return Needs(self.strategy)

    def _gram(self, first_row: int, last_row: int, slots: int) -> Gram:
        rows = self.strategy.matrix[first_row - 1 : last_row, :slots]
        return tuple(tuple(map(int, row)) for row in rows.T @ rows)

    # ---- running -------------------------------------------------------------------------------

    def release(
        self, state: RowsState, accounts: RenewableAccounts, randomness: Randomness
    ) -> RowsState:
        """Release the next slot: look, choose, renew, admit, add noise."""
        slot = state.next_slot
        standing, sizes = self._standing(state)
        self._open(state, accounts, sizes)
        histogram, charges = self._look(slot, accounts, randomness)
        allowance = self._choose(state, histogram, standing)
        last = state.rows[-1] if state.rows else None
        is_renewal = last is not None and (
            sizes != last.sizes
            or allowance < last.allowance / _LESS
            or allowance > last.allowance * _MORE
        )
        if last is not None and not is_renewal:
            multipliers = last.multipliers
        else:
            multipliers = self._multipliers(allowance, standing)
        kept = self._let_in(state, accounts, multipliers, sizes, is_renewal)
        sums = self._row(multipliers, sizes, kept)
        row = noisy_row(sums, self.scale, randomness)
        charges.append(Charge.for_cost("measurement", self.slot_rho[slot - 1]))
        new = Row(
            multipliers,
            sizes,
            is_renewal,
            self.allowance_of(multipliers[0]),
            tuple(row.values),
            tuple(histogram),
        )
        spent = state.spent + sum(charge.pico_rho for charge in charges)
        return RowsState(spent, (*state.rows, new), kept)

    def _open(self, state: RowsState, accounts: RenewableAccounts, sizes: tuple[int, ...]) -> None:
        slot = state.next_slot
        past = self._gram(1, self.slots, slot - 1) if sizes != state.sizes else None
        costs = tuple(int(cost) for cost in self.strategy.gram[slot - 1, :slot])
        accounts.open(costs, sizes, past)

    def _let_in(
        self,
        state: RowsState,
        accounts: RenewableAccounts,
        multipliers: tuple[int, ...],
        sizes: tuple[int, ...],
        is_renewal: bool,
    ) -> tuple[tuple[int, ...], ...]:
        """What is kept of all slots so far."""
        slot, past = state.next_slot, state.kept
        terms = self.terms(slot, multipliers, sizes)
        if is_renewal:
            renewal = Renewal(
                terms,
                self._gram(state.begun, slot - 1, slot - 1),
                self._gram(slot, self.slots, slot - 1),
            )
            past = tuple(tuple(totals) for totals in accounts.renew(renewal))
        return (*past, tuple(accounts.admit(terms)))

    def _look(
        self, slot: int, accounts: RenewableAccounts, randomness: Randomness
    ) -> tuple[list[int], list[Charge]]:
        if slot not in self.looks:
            return [], []
        costs = tuple(int(cost) for cost in self.strategy.gram[slot - 1, :slot])
        counts = accounts.needs(costs, self._edges, self._needs.of_looks(slot))
        noisy = noisy_histogram(counts, self.looks[slot], self.guarantee.adjacency, randomness)
        return [int(count) for count in noisy.values], [Charge.for_cost("histogram", noisy.cost)]

    @property
    def _is_sized(self) -> bool:
        """Whether cells may be told apart by size: not where views sum them, or all is known."""
        several = 1 < len(self.layout) <= MOST_SIZED
        return self.chooser is not None and several and len(self.layout.views) == 1

    @cached_property
    def _edges(self) -> tuple[int, ...]:
        """Squared norms at which histograms of needs change bins."""
        one = self._one_conversion * (ONE_SIZE if self._is_sized else 1)
        return tuple(int((edge * one) ** 2) for edge in EDGES)

    @property
    def _nothing(self) -> Standing:
        return Standing(np.zeros(len(self.layout)), np.ones(len(self.layout)))

    def _standing(self, state: RowsState) -> tuple[Standing, tuple[int, ...]]:
        """What was released so far, and the sizes of the next row."""
        slot, cells = state.next_slot, len(self.layout)
        alike = (ONE_SIZE,) * cells if self._is_sized else ()
        sizes = state.sizes if state.rows else alike
        if not state.rows:
            return self._nothing, sizes
        estimates = self.estimates(state.rows)
        totals = estimates.totals.sum(axis=0)
        if self._is_sized and slot in _SIZE_SLOTS:
            everything = np.ones((1, len(state.rows)))
            errors = np.sqrt(estimates.variances(everything, len(self.layout.dimensions))[0])
            sizes = sizes_of(totals, errors, sizes)
        in_conversions = totals / (self.unit_value * UNITS_PER_CONVERSION)
        return Standing(in_conversions, coarseness(sizes, cells)), sizes

    def _choose(self, state: RowsState, histogram: list[int], standing: Standing) -> float:
        """The allowance, from what was released and nothing else."""
        if self.chooser is None:
            assert self.allowance is not None
            return self.allowance
        if not histogram:
            return state.rows[-1].allowance
        slot = state.next_slot
        # Looks with other sizes of cells have counted people by something else.
        same = [
            Look(number, row.histogram, self._deviation(number))
            for number, row in enumerate(state.rows, start=1)
            if row.histogram and number >= self._sized_since(state, standing)
        ]
        newest = Look(slot, tuple(histogram), self._deviation(slot))
        chosen = self.chooser.choose([*same, newest], standing)
        if self.allowance is None:
            return chosen
        start = self.allowance / standing.mean_coarseness
        if chosen > _FAR_MORE * start:
            return chosen
        # An earlier campaign has seen its end, and knows better than the first days, and later than
        # forecasts that are not out of line.
        early = slot <= max(1, self.slots // 4)
        return start if early or chosen > start / _FAR_LESS else chosen

    def _sized_since(self, state: RowsState, standing: Standing) -> int:
        """The first slot of those whose looks had the sizes of the next one."""
        since = state.next_slot
        for number in range(len(state.rows), 0, -1):
            sizes = state.rows[number - 1].sizes
            if not np.array_equal(coarseness(sizes, len(self.layout)), standing.coarseness):
                break
            since = number
        return since

    def _deviation(self, slot: int) -> float:
        return sqrt(histogram_squared(self.guarantee.adjacency) / (2 * float(self.looks[slot])))

    def _row(
        self,
        multipliers: tuple[int, ...],
        sizes: tuple[int, ...],
        kept: tuple[tuple[int, ...], ...],
    ) -> list[int]:
        """sum_s B_ts m X_s, exactly, for every column and for what was cut."""
        entries = self.strategy.rows[len(kept) - 1]
        cells = len(self.layout)
        mixed = [
            sum(entry * total for entry, total in zip(entries, column, strict=True))
            for column in zip(*kept, strict=True)
        ]
        of_cells = multipliers_of(multipliers[0], sizes) or (multipliers[0],) * cells
        moved = [each * total for each, total in zip(of_cells, mixed, strict=False)]
        cut = [each * total for each, total in zip(multipliers[1:], mixed[cells:], strict=True)]
        return [*self.layout.in_columns(moved), *cut]

    def exact_row(self, state: RowsState) -> list[int]:
        """NOT PRIVATE, for experiments: the newest row without its noise."""
        row = state.rows[-1]
        return self._row(row.multipliers, row.sizes, state.kept)

    # ---- answers -------------------------------------------------------------------------------

    @cached_property
    def _inverse(self) -> Reals:
        return np.asarray(np.linalg.inv(self.strategy.matrix.astype(np.float64)))

    def estimates(self, rows: Sequence[Row]) -> Estimates:
        """What rows say that were released."""
        # Of a lower-triangular matrix, the inverse of a leading block is a block of the inverse.
        inverse = self._inverse[: len(rows), : len(rows)] * self.unit_value
        return Estimates(self.layout, self.margins, rows, inverse, self.scale)
