"""What rows measure under personal budgets: multipliers, the filter's terms, and exact sums.

Public but for the totals that a row is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import sqrt
from operator import mul

import numpy as np

from adsbpc.errors import PrivacyError
from adsbpc.mechanisms.by_rows.cut import Column, columns_for, times_counted
from adsbpc.mechanisms.by_rows.needs import Needs
from adsbpc.mechanisms.by_rows.sizes import ONE_SIZE, multipliers_of, unit_parts
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import Adjacency
from adsbpc.model.layout import Layout
from adsbpc.privacy import LIMIT, Gram, Pace, Renewal, Strategy, Terms, Tier, row_scale
from adsbpc.privacy.filter import LARGEST_MULTIPLIER
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads.queries import Reals

# A norm of one conversion, in the square root of costs.
ONE_CONVERSION = ONE * UNITS_PER_CONVERSION
# Whoever has cost more than this part of the budget is let in at a pace.
_FREE_OF_PACE = 2
# The part of what people cost within slots rather than across them, where nothing is known.
_SPREAD_OUT = 0.6


@dataclass(frozen=True)
class Measurement:
    """The strategy, and what every slot adds to what people may have spent. `has_fine_cut` says
    that what was cut is counted finely, for everything together."""

    layout: Layout
    """The cells that are measured."""
    adjacency: Adjacency
    strategy: Strategy
    slot_rho: tuple[Fraction, ...]
    has_fine_cut: bool

    @cached_property
    def scale(self) -> float:
        """Of the noise of every row, the same for the whole campaign."""
        return row_scale(sum(self.slot_rho, Fraction(0)), self.adjacency)

    @cached_property
    def spendable(self) -> tuple[Fraction, ...]:
        """The part of every budget that may have been spent after so many slots, from none on."""
        reached = list(accumulate(self.slot_rho, initial=Fraction(0)))
        return tuple(each / reached[-1] for each in reached)

    @cached_property
    def cuts(self) -> tuple[Column, ...]:
        """The columns that count what was cut."""
        return columns_for(self.layout, self.has_fine_cut)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        """Parts of every budget: for cells, and for the columns that count what was cut."""
        cuts = [Fraction(str(column.share)) for column in self.cuts]
        return 1 - sum(cuts, Fraction(0)), *cuts

    @property
    def one_conversion(self) -> float:
        """The norm of one conversion in all views."""
        if self.layout.apart:
            return ONE_CONVERSION * sqrt(sum(part**2 for part in unit_parts(self.layout)))
        return ONE_CONVERSION * sqrt(self.layout.unit)

    @property
    def times_cut(self) -> int:
        return times_counted(self.layout)

    def multiplier_of(self, allowance: float) -> int:
        """The largest multiplier under which a norm of the allowance fits, if there is one."""
        return _fitting(sqrt(LIMIT * self.shares[0]) / (allowance * self.one_conversion))

    def allowance_of(self, multiplier: int) -> float:
        """The norm that fits under a whole multiplier: an allowance is always one of these."""
        return sqrt(LIMIT * self.shares[0]) / (multiplier * self.one_conversion)

    def multipliers(self, allowance: float, mean_coarseness: float) -> tuple[int, ...]:
        """Of cells alike, and of the columns of what was cut, which stand in no views and follow
        how coarsely cells are measured."""
        found = [self.multiplier_of(allowance)]
        for share, column in zip(self.shares[1:], self.cuts, strict=True):
            norm = allowance * column.ratio * mean_coarseness * ONE_CONVERSION
            found.append(_fitting(sqrt(LIMIT * share) / norm))
        return tuple(found)

    def costs(self, slot: int) -> tuple[int, ...]:
        return tuple(int(cost) for cost in self.strategy.gram[slot - 1, :slot])

    def terms(self, slot: int, multipliers: tuple[int, ...], sizes: tuple[int, ...]) -> Terms:
        """The filter's terms of a slot. Users are held to what the slots so far may spend, so that
        what was released up to a slot costs no more than what was charged for it."""
        limit = LIMIT * self.spendable[slot]
        kept, *cuts = (int(limit * share) for share in self.shares)
        first, *rest = (
            Tier(multiplier, part) for multiplier, part in zip(multipliers[1:], cuts, strict=True)
        )
        # Needs have cells multiplied with their sizes.
        per_need = multipliers[0] / (ONE_SIZE if sizes else 1)
        return Terms(
            self.costs(slot),
            multipliers[0],
            first.multiplier,
            kept,
            first.limit,
            rest[0] if rest else None,
            multipliers_of(multipliers[0], sizes),
            Pace(int(LIMIT * self.shares[0]) // _FREE_OF_PACE, self.needs.of_pace(slot, per_need)),
        )

    def renewal(self, terms: Terms, begun: int) -> Renewal:
        """Everything before the slot of these terms, which rows from `begun` on have held."""
        before = terms.slot - 1
        return Renewal(
            terms,
            self.gram(begun, before, before),
            self.gram(terms.slot, self.strategy.slots, before),
        )

    def row_shares(self, doubt: float) -> Reals:
        """Each row's part of what somebody costs who comes evenly: with the same cell again and
        again, or as far as that is in doubt, as often with others."""
        own, across = self._row_costs
        spread_out = doubt * _SPREAD_OUT
        return np.asarray(spread_out * own / own.sum() + (1 - spread_out) * across / across.sum())

    def used_at_ceiling(self, doubt: float) -> Reals:
        """By row, from none on, the part of a budget that is used up of somebody who comes evenly,
        and has asked for all that slots so far may spend from the first of them on."""
        spread_out = doubt * _SPREAD_OUT
        own, across = self._used_at_ceiling
        return np.asarray(spread_out * own + (1 - spread_out) * across)

    @cached_property
    def _used_at_ceiling(self) -> tuple[Reals, Reals]:
        """Of somebody who meets other cells every time, and always the same."""
        entries = self.strategy.matrix.astype(np.float64)
        own, across = (entries**2).cumsum(axis=1), entries.cumsum(axis=1) ** 2
        return self._used(own), self._used(across)

    def _used(self, costs: Reals) -> Reals:
        """From what every row costs of somebody who came on the slots up to a column's."""
        used = [0.0]
        for slot, reached in enumerate(self.spendable[1:]):
            of_rows = costs[slot:, slot]
            part = float(of_rows[0] / of_rows.sum())
            used.append(used[-1] + part * max(float(reached) - used[-1], 0.0))
        return np.array(used)

    @cached_property
    def _row_costs(self) -> tuple[Reals, Reals]:
        """By row: of somebody who meets other cells every time, and always the same."""
        entries = self.strategy.matrix.astype(np.float64)
        return (entries**2).sum(axis=1), entries.sum(axis=1) ** 2

    @cached_property
    def needs(self) -> Needs:
        return Needs(self.strategy)

    def gram(self, first_row: int, last_row: int, slots: int) -> Gram:
        rows = self.strategy.matrix[first_row - 1 : last_row, :slots]
        return tuple(tuple(map(int, row)) for row in rows.T @ rows)

    def row(
        self, multipliers: tuple[int, ...], sizes: tuple[int, ...], kept: Sequence[Sequence[int]]
    ) -> list[int]:
        """sum_s B_ts m X_s, exactly, for every column and for what was cut."""
        entries, cells = self.strategy.rows[len(kept) - 1], len(self.layout)
        if len(entries) != len(kept):
            raise PrivacyError(f"row {len(kept)} of the strategy has {len(entries)} entries")
        mixed = [sum(map(mul, entries, column)) for column in zip(*kept, strict=True)]
        of_cells = multipliers_of(multipliers[0], sizes) or (multipliers[0],) * cells
        moved = [each * total for each, total in zip(of_cells, mixed, strict=False)]
        cut = [each * total for each, total in zip(multipliers[1:], mixed[cells:], strict=True)]
        return [*self.layout.in_columns(moved), *cut]


def _fitting(multiplier: float) -> int:
    return min(max(1, int(multiplier)), LARGEST_MULTIPLIER)
