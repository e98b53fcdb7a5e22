"""What released rows say of the coming ones: how much of a person is let in, how far it is in doubt
that people come as they did, and what may have been cut. Sees released figures alone, so that it
can be wrong, but not unsafe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2, sqrt

import numpy as np

from adsbpc.mechanisms.by_rows.allowance import EDGES, Chooser, Look, Past, Standing, in_bins
from adsbpc.mechanisms.by_rows.measurement import Measurement
from adsbpc.mechanisms.by_rows.sizes import coarseness
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.model.guarantee import Adjacency
from adsbpc.model.layout import Layout
from adsbpc.privacy import histogram_squared
from adsbpc.workloads.queries import Reals

# An earlier campaign's allowance stays in use unless looks ask for so many times more or less.
_FAR_MORE, _FAR_LESS = 2.0, 3.0
# Forecasts are in doubt in proportion to the slots on which people who were seen stay away. Fewer
# people than so many times what noise may hide tell nothing.
_IN_DOUBT, _MANY = 2.0, 5.0
# What rows have used up counts in full where people meet few cells again and again. Where there are
# many, the constants of the choice allow for it already: they were found without it.
_FEW_CELLS = 35
# Before this slot nothing tells whether people come again and again. Rows that measure too coarsely
# then are few and cost little; what rows with too small an allowance use up is gone for good. So
# the first allowances are larger where there are few cells, for which strategies take people to be
# loyal too, in steps of a 96th of an octave.
_TOLD_FROM, _ROOM, _STEPS = 4, 1.4, 96
_FEW_ENOUGH = 50
# More than anybody could count.
_UNKNOWN = 1e30


@dataclass(frozen=True)
class Outlook:
    """Of a planned run: `worth` is one conversion in the metric, the rest as the run has it."""

    layout: Layout
    measurement: Measurement
    adjacency: Adjacency
    looks: dict[int, Fraction]
    chooser: Chooser | None
    allowance: float | None
    worth: float
    names_looks: bool

    @property
    def _slots(self) -> int:
        return len(self.measurement.slot_rho)

    def doubt(self, rows: Sequence[Row], by_slot: Reals) -> float:
        """How far it is in doubt that people come as they did: who came on most slots so far will,
        on average over those who were seen. `by_slot` has all that was released."""
        looked = [slot for slot in self.looks if 1 < slot <= len(rows) and rows[slot - 1].histogram]
        if not looked or self.layout.once or by_slot[0] <= 0:
            return 1.0
        first, newest = (float(sum(rows[slot - 1].histogram)) for slot in (1, looked[-1]))
        error = 2 * self.deviation(1) * sqrt(len(EDGES) + 1)
        if first < _MANY * error:
            return 1.0
        # What somebody has on a slot is told by the first, on which nobody was seen twice.
        visits = by_slot[: looked[-1]].sum() / by_slot[0] * (first - error)
        return float(np.clip(_IN_DOUBT * (1 - visits / (looked[-1] * (newest + error))), 0, 1))

    def choose(
        self,
        rows: Sequence[Row],
        histogram: list[int],
        standing: Standing,
        sizes: tuple[int, ...],
    ) -> float:
        """The allowance, from what was released and nothing else."""
        if self.chooser is None:
            assert self.allowance is not None
            return self.allowance
        if not histogram:
            return rows[-1].allowance
        slot = len(rows) + 1
        newest = Look(slot, tuple(histogram), self.deviation(slot))
        looks = [*self._looked(rows, sizes), newest]
        chosen = self.chooser.choose(looks, standing, self._past(rows, standing))
        if self.allowance is None:
            return chosen * self._room(slot)
        start = self.allowance / standing.mean_coarseness
        if chosen > _FAR_MORE * start:
            return chosen
        # An earlier campaign has seen its end, and knows better than the first days, and later than
        # forecasts that are not out of line.
        early = slot <= max(1, self._slots // 4)
        return start if early or chosen > start / _FAR_LESS else chosen

    def _room(self, slot: int) -> float:
        if slot >= _TOLD_FROM or not self.names_looks:
            return 1.0
        octaves = log2(_ROOM) * self._few(_FEW_ENOUGH)
        return float(2.0 ** (round(_STEPS * octaves) / _STEPS))

    def _few(self, cells: int) -> float:
        """1 where there are so few cells, and less where there are more."""
        return min(1.0, (cells / len(self.layout)) ** 2)

    def _looked(self, rows: Sequence[Row], sizes: tuple[int, ...]) -> list[Look]:
        """The looks of rows so far; those with other sizes of cells have counted people by
        something else."""
        found: list[Look] = []
        for number in range(len(rows), 0, -1):
            row = rows[number - 1]
            if row.sizes != sizes:
                break
            if row.histogram and number in self.looks:
                found.insert(0, Look(number, in_bins(row.histogram), self.deviation(number)))
        return found

    def _past(self, rows: Sequence[Row], standing: Standing) -> Past:
        """What rows have used up of budgets, with norms as of these sizes of cells."""
        shares, spent = self.measurement.row_shares(standing.doubt), 0.0
        now, then = standing.mean_coarseness, self._mean_coarseness(rows, standing.totals)
        for share, row in zip(shares, rows, strict=False):
            allowance = row.allowance * then[row.sizes] / now
            spent += share / allowance**2
        most = float(self.measurement.used_at_ceiling(standing.doubt)[len(rows)])
        return Past(spent, most, float(shares[len(rows) :].sum()), self._few(_FEW_CELLS))

    def _mean_coarseness(self, rows: Sequence[Row], totals: Reals) -> dict[tuple[int, ...], float]:
        """By sizes, of which there are few in many rows."""
        every, cells = {row.sizes for row in rows}, self.measurement.layout
        return {each: Standing(totals, coarseness(each, cells)).mean_coarseness for each in every}

    def deviation(self, slot: int) -> float:
        return sqrt(histogram_squared(self.adjacency) / (2 * float(self.looks[slot])))

    def expected_cut(self, rows: Sequence[Row], totals: Reals) -> tuple[float, ...]:
        """What of a slot may have been cut, by column, in the metric, if looks are to be believed.
        Where there are none, the allowance is a public guess, beyond which nobody knows of much."""
        if self.chooser is None:
            return (_UNKNOWN, *(0.0 for _ in self.measurement.shares[1:]))
        last = rows[-1]
        standing = Standing(totals / self.worth, coarseness(last.sizes, self.measurement.layout))
        expected = self.chooser.expected_cut(
            self._looked(rows, last.sizes),
            standing,
            last.allowance,
            self._past(rows[:-1], standing),
        )
        return tuple(float(each * self.worth / self._slots) for each in expected)
