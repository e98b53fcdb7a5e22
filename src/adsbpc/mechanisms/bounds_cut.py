"""What bounds cut, counted from the noisy histograms that they were chosen by: post-processing of
released figures, which costs nothing.

Whoever is in a bin above a slot's bound r is taken to contribute what is usual there, v, so that
v - r was cut. One person's worth of noise in a bin far out weighs as much as hundreds of people
near the bound. So what was cut is counted in columns, one for each octave above the bound, and only
as far out as people are seen at all; of those beyond it is told what may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adsbpc.mechanisms.bounds import ABOVE_LAST, HISTOGRAM_EDGES
from adsbpc.model.cut import CAUTION, HIDING
from adsbpc.workloads.queries import Reals

# Beyond the first octave, one is counted if it is seen from so many standard deviations on: more
# for those farther out, where a false count would cost most.
_SEEN_FIRST, _SEEN_STEP, _SEEN_MOST = 2.0, 0.75, 5.0
# One that is seen from so many fewer on is not counted, but may be there.
_SUSPECTED = 1.5
# An octave has this part of what was cut in the one before it, unless counts show more.
_FALLING = 0.15
# More than anybody could count.
_UNKNOWN = 1e30


@dataclass(frozen=True)
class CountedCut:
    """Noisy counts of what was cut by slot and column, their variances, and what may be expected of
    a slot, by column and at last in none of them: in conversions."""

    counts: Reals
    variances: Reals
    expected: tuple[float, ...]


@dataclass(frozen=True)
class CutCounter:
    """`deviation` is that of a bin's noise. A histogram stands for `slots_each` slots. Where
    contributions `are_whole`, nobody is between whole numbers."""

    deviation: float
    slots_each: int
    are_whole: bool

    @cached_property
    def _usual(self) -> Reals:
        """What people in a bin contribute: the geometric mean of its ends, because there are fewer
        of those who do more."""
        first = np.array([0, *HISTOGRAM_EDGES], dtype=np.float64) + self.are_whole
        return np.sqrt(first * np.array([*HISTOGRAM_EDGES, ABOVE_LAST], dtype=np.float64))

    def counted(self, bounds: Sequence[int], histograms: Sequence[Sequence[int]]) -> CountedCut:
        """From what was released so far. A slot that did not look has the histogram before it."""
        looked = [place for place, counts in enumerate(histograms) if counts]
        newest = np.searchsorted(looked, np.arange(len(bounds)), side="right") - 1
        people = np.array([histograms[place] for place in looked], dtype=np.float64)[newest]
        limits = np.array(bounds, dtype=np.float64)[:, None]
        above = np.maximum(self._usual - limits, 0.0)
        begins = np.array([0, *HISTOGRAM_EDGES], dtype=np.float64)
        octaves = np.floor(np.log2(np.maximum(begins / limits, 0.5)))
        columns = range(int(octaves.max()) + 1)
        inside = [np.where(octaves == octave, above, 0.0) for octave in columns]
        counts = np.column_stack([(people * each).sum(axis=1) for each in inside])
        squares = np.column_stack([(each**2).sum(axis=1) for each in inside])
        # Slots that share a histogram share its noise.
        variances = self.deviation**2 * self.slots_each * squares
        return _as_far_as_seen(counts, variances)


def _as_far_as_seen(counts: Reals, variances: Reals) -> CountedCut:
    slots, octaves = counts.shape
    sums, errors = counts.sum(axis=0), np.sqrt(variances.sum(axis=0))
    levels = np.minimum(_SEEN_FIRST + _SEEN_STEP * np.arange(-1, octaves - 1), _SEEN_MOST)
    levels[0] = -np.inf
    kept = int(np.flatnonzero(sums > levels * errors)[-1]) + 1
    # Noise may hide this much, which in turn may hide so much beyond.
    hidden = np.maximum(sums, 0.0) + errors
    expected = [_UNKNOWN, *(_FALLING * hidden[: kept - 1])]
    beyond = _FALLING * hidden[kept - 1]
    if kept < octaves:
        beyond = min(beyond, hidden[kept] / CAUTION)
    suspected = int(np.flatnonzero(sums > (levels - _SUSPECTED) * errors)[-1]) + 1
    if suspected > kept:
        there = np.maximum(sums + HIDING * errors, 0.0)[kept:suspected].sum()
        beyond = max(beyond, float(there) / CAUTION)
    return CountedCut(
        counts[:, :kept], variances[:, :kept], tuple(float(e / slots) for e in (*expected, beyond))
    )
