"""What AdsBPC adds to published sums because its bounds cut it, from the noisy histograms.

People in a bin above a slot's bound r are taken to have contributed the geometric mean v of the
bin's ends, where nobody is between whole numbers unless the metric is a value; v - r of each was
cut. Bins go together in octaves above the bound, by where they begin. The first octave is counted,
and others up to the last one whose count so far is above 2, 2.75, 3.5, ... standard deviations of
its noise, 5 at most. A count is trusted as by rows, but for the harm that it would do to the sum
of everything. A slot that released no histogram has the one before it, and as many times the
variance as slots share one. A cell's part is in proportion to what was released of it, where cells
below three standard errors are taken to be alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import floor, log2, sqrt

from adsbpc.audit.added_cut import trusted
from adsbpc.audit.claims import require
from adsbpc.audit.promised_plan import CONVERSION, HISTOGRAM, PICO, PromisedPlan
from adsbpc.audit.record import Slot

_ENDS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 1024, 2048)
_OCTAVES = 11
_HISTOGRAMS = 31
_LEAST = 0.001


@dataclass(frozen=True)
class CutByBounds:
    plan: PromisedPlan
    slots: Sequence[Slot]

    @property
    def _unit(self) -> float:
        """A grid unit in the metric."""
        return self.plan.worth / CONVERSION

    @cached_property
    def _running(self) -> tuple[list[list[float]], list[list[float]]]:
        """By octave, noisy running counts and their variances, from those of no slot on."""
        looked = [place for place, slot in enumerate(self.slots) if slot.release["histogram"]]
        require(looked[:1] == [0], "slot 1 has no histogram, from which what was cut is counted")
        share = -(-self.plan.slots // _HISTOGRAMS)
        counts: list[list[float]] = [[] for _ in range(_OCTAVES)]
        variances: list[list[float]] = [[] for _ in range(_OCTAVES)]
        for place, slot in enumerate(self.slots):
            by = self.slots[looked[bisect_right(looked, place) - 1]]
            people, bound = by.release["histogram"], slot.release["bound"]
            require(
                type(bound) is int and bound >= 1 and by.charged(HISTOGRAM) > 0,
                f"slot {place + 1} has a bound of {bound!r}, or a histogram that nobody paid for",
            )
            noise = share * self.plan.two * PICO / (2 * by.charged(HISTOGRAM))
            own, squares = [0.0] * _OCTAVES, [0.0] * _OCTAVES
            for begin, end, count in zip((0, *_ENDS), _ENDS, people, strict=False):
                if begin < bound:
                    continue
                usual = sqrt((begin + (not self.plan.is_value)) * end)
                octave, cut = floor(log2(begin / bound)), (usual - bound) * self.plan.worth
                own[octave] += count * cut
                squares[octave] += cut**2
            for octave in range(_OCTAVES):
                counts[octave].append(own[octave])
                variances[octave].append(noise * squares[octave])
        return (
            [[0.0, *accumulate(each)] for each in counts],
            [[0.0, *accumulate(each)] for each in variances],
        )

    @cached_property
    def _columns(self) -> list[float]:
        """The variance of a column's total after so many slots."""
        scales = (float(slot.release["scale"]) * self._unit for slot in self.slots)
        return [0.0, *accumulate(scale**2 for scale in scales)]

    @cached_property
    def _of_cell_and_sum(self) -> tuple[float, float]:
        """What of that the first cell has, and the sum of all cells."""
        columns, found = self.plan.columns, []
        for cells in (1, columns.cells):
            # H^T y is 1 in so many cells for this y, so that its solution has (H^T H)^-1 of them.
            own = [0.0] * columns.count
            for place in range(cells):
                own[place - columns.cells] = 1 / columns.views[-1][2]
            found.append(sum(columns.solve(own)[:cells]))
        return found[0], found[1]

    def parts(self, number: int, totals: Sequence[float]) -> list[float]:
        """The part of what was cut that is of each cell, after so many slots."""
        limit = 3 * sqrt(self._of_cell_and_sum[0] * self._columns[number])
        small = [total for total in totals if total < limit]
        alike = sum(small) / len(small) if small else 0.0
        sizes = [max(alike if total < limit else total, _LEAST) for total in totals]
        return [size / sum(sizes) for size in sizes]

    def octaves(self, number: int) -> int:
        """How many of them are counted after so many slots."""
        counts, variances = self._running
        seen = [
            octave
            for octave in range(1, _OCTAVES)
            if counts[octave][number]
            > min(2 + 0.75 * (octave - 1), 5) * sqrt(variances[octave][number])
        ]
        return 1 + max(seen, default=0)

    def total(self, number: int, first: int, last: int, _squared_parts: float) -> float:
        """Added, after so many slots, to the sum over some of them of all cells together."""
        counts, variances = self._running
        of_sum = self._of_cell_and_sum[1] * (self._columns[last] - self._columns[first - 1])
        return sum(
            trusted(
                counts[octave][last] - counts[octave][first - 1],
                variances[octave][last] - variances[octave][first - 1],
                1.0,
                of_sum,
            )
            for octave in range(self.octaves(number))
        )
