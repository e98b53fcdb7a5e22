"""AdsBPC's answers: sums of slots with noise of their own, what bounds cut added back, and how far
off that may be. Post-processing of released figures alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt

import numpy as np

from adsbpc.contributions.interface import Integers
from adsbpc.mechanisms.bounds_cut import CountedCut
from adsbpc.mechanisms.interface import answers_with
from adsbpc.model.cut import Added, added_back
from adsbpc.model.layout import Layout
from adsbpc.model.release import Answers
from adsbpc.workloads import Margins, SeparateSums, Workload
from adsbpc.workloads.queries import Reals

# What was released of a cell counts as no less than this where what was cut is shared out.
_LEAST = 1e-3
# Up to so many standard errors a cell is small.
_SMALL = 3.0


@dataclass(frozen=True)
class BoundedAnswers:
    """From estimates by slot and cell, with the variances of slots' columns, and what was cut of
    slots, if that is counted: all in the metric."""

    layout: Layout
    margins: Margins | SeparateSums
    cells: Reals
    variances: Reals
    cut: CountedCut | None

    @cached_property
    def spread(self) -> Reals:
        """The part of what was cut that is of each cell: as what was released of them. Small ones
        have parts alike, or else their noise would be in them twice."""
        totals = self.cells.sum(axis=0)
        finest = self.margins.view_variance(len(self.layout.dimensions))
        small = totals < _SMALL * sqrt(float(self.variances.sum()) * finest)
        if small.any():
            totals[small] = totals[small].mean()
        totals = np.maximum(totals, _LEAST)
        return np.asarray(totals / totals.sum())

    def to(self, workload: Workload) -> tuple[Answers, ...]:
        """To every query of a workload that is due at the newest slot."""
        due = np.flatnonzero(workload.slots == len(self.cells))
        if not due.size:
            return ()
        cells, own = workload.answers(self.cells), self._over_slots(workload, self.variances)
        found: list[Answers] = []
        for row, added in zip(map(int, due), self._added(workload, due, own), strict=True):
            noise = partial(self._noise, float(own[row]))
            name, span = workload.names[row], workload.span(row)
            found += answers_with(self.layout, name, span, cells[row], self.spread, added, noise)
        return tuple(found)

    def _noise(self, of_columns: float, depth: int) -> Reals:
        sums = len(self.layout.names(depth))
        return np.full(sums, of_columns * self.margins.view_variance(depth))

    def _over_slots(self, workload: Workload, variances: Reals) -> Reals:
        to_come = np.zeros(workload.slot_count - len(variances))
        return workload.variances(np.concatenate([variances, to_come]))

    def _added(self, workload: Workload, due: Integers, own: Reals) -> list[Added]:
        """By query. What was cut is missing from sums; other queries it may move either way."""
        if self.cut is None:
            return [Added() for _ in due]
        counts = workload.answers(self.cut.counts)
        variances = [self._over_slots(workload, each) for each in self.cut.variances.T]
        # Noisy counts do most harm to the sum of everything, which has all of them.
        together = self.margins.view_variance(0)
        found = []
        for row in map(int, due):
            span = workload.span(row)
            if span is None:
                found.append(Added())
                continue
            counted = zip(counts[row].tolist(), (float(v[row]) for v in variances), strict=True)
            expected = [(span[1] - span[0] + 1) * each for each in self.cut.expected]
            found.append(added_back(counted, 1.0, float(own[row]) * together, expected))
        return found
