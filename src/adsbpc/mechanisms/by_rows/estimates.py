"""Answers from noisy rows: what slots had, what was cut added back, and how far off that may be.
Post-processing of released figures alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby

import numpy as np

from adsbpc.mechanisms.by_rows.cut import spread_over
from adsbpc.mechanisms.by_rows.sizes import multipliers_of
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.mechanisms.interface import answers_with
from adsbpc.model.cut import GRADUAL, Added, Trust, added_back
from adsbpc.model.layout import Layout
from adsbpc.model.release import Answers
from adsbpc.model.running_noise import Cut, CutColumn, RunningNoise, Stretch
from adsbpc.workloads import Margins, SeparateSums, UnlikeSums, Workload
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class Estimates:
    """What the rows so far say of a layout, of which they have the cells that are `counted`.
    `inverse` is B^-1 for these rows in the metric, `scale` that of their noise; what was cut is
    counted so many `times`. `expected_cut` is what may have been cut of a slot, by column and at
    last by none, if that is known; of a few slots it may be as much as of `least_slots`. Nothing
    `adds` to them where nobody can have been cut; `trust` says how much of counts does."""

    layout: Layout
    counted: Layout
    margins: Margins | SeparateSums
    rows: Sequence[Row]
    inverse: Reals
    scale: float
    times_cut: int = 1
    expected_cut: tuple[float, ...] = ()
    least_slots: int = 1
    adds: bool = True
    trust: Trust = GRADUAL

    @cached_property
    def _multipliers(self) -> Reals:
        """By row and cell, or alike for all cells where views sum them."""
        weight = self.counted.views[0].weight if len(self.counted.views) == 1 else 1
        alike = [(row.multipliers[0], row.sizes) for row in self.rows]
        # Many rows have the same.
        of_cells = {
            (own, sizes): np.array(
                multipliers_of(own, sizes) or (own,) * len(self.counted), dtype=np.float64
            )
            for own, sizes in set(alike)
        }
        return weight * np.array([of_cells[each] for each in alike])

    @cached_property
    def _cut_multipliers(self) -> Reals:
        own = np.array([row.multipliers[1:] for row in self.rows], dtype=np.float64)
        return np.asarray(own * self.times_cut)

    @cached_property
    def _noisy(self) -> Reals:
        """By row and column, as if every multiplier were 1."""
        columns = self.counted.columns
        values = np.array([row.reals[:columns] for row in self.rows])
        if len(self.counted.views) == 1:
            return values / self._multipliers
        return values / self._multipliers[:, :1]

    @cached_property
    def _apart(self) -> tuple[Reals, tuple[Reals, ...]]:
        """Of sums that are cells of their own: by row what the finest cells are, and the variances
        of sums by the number of dimensions that are kept."""
        lengths = tuple(len(each.values) for each in self.layout.dimensions)
        sums = UnlikeSums(lengths, self.layout.weights)
        return sums.solve(self._noisy, 1 / self._multipliers**2)

    @cached_property
    def totals(self) -> Reals:
        """By slot and cell, without what was cut."""
        if self.counted.apart:
            return np.asarray(self.inverse @ self._apart[0])
        if len(self.counted.views) == 1:
            return np.asarray(self.inverse @ self._noisy)
        return np.asarray(self.inverse @ self.margins.estimates(self._noisy))

    @cached_property
    def cut(self) -> Reals:
        """By slot and column of what was cut."""
        count = self._cut_multipliers.shape[1]
        values = np.array([row.reals[-count:] for row in self.rows])
        return np.asarray(self.inverse @ (values / self._cut_multipliers))

    @cached_property
    def spread(self) -> Reals:
        """The part of what was cut that is of each cell."""
        return spread_over(self.totals.sum(axis=0))

    def _squares(self, weights: Reals) -> Reals:
        """What every row's noise adds to answers with these weights of slots, by query and row."""
        return np.asarray(((weights @ self.inverse) * self.scale) ** 2)

    def _row_variances(self, depth: int) -> Reals:
        """By row and sum of a view, for noise of variance 1 in every column."""
        if depth not in self._known_variances:
            self._known_variances[depth] = self._variances_of_rows(depth)
        return self._known_variances[depth]

    @cached_property
    def _known_variances(self) -> dict[int, Reals]:
        return {}

    def _variances_of_rows(self, depth: int) -> Reals:
        if self.counted.apart:
            return self._apart[1][depth]
        if len(self.counted.views) == 1:
            return self.margins.summed(1 / self._multipliers**2, depth)
        own, sums = 1 / self._multipliers[:, 0] ** 2, len(self.layout.names(depth))
        return np.outer(own, np.full(sums, self.margins.view_variance(depth)))

    def variances(self, weights: Reals, depth: int) -> Reals:
        """By query and sum of a view: noise alone."""
        return np.asarray(self._squares(weights) @ self._row_variances(depth))

    def cell_variances(self, weights: Reals) -> Reals:
        """By query and cell: noise alone."""
        if self.layout.once:
            return np.asarray(self._squares(weights) @ (1 / self._multipliers**2))
        return self.variances(weights, len(self.layout.dimensions))

    def so_far(self) -> tuple[Reals, Reals]:
        """Totals of all slots of the cells that are counted, and their standard errors."""
        everything, totals = np.ones((1, len(self.rows))), self.totals.sum(axis=0)
        if not self.counted.apart:
            return totals, np.sqrt(self.cell_variances(everything)[0])
        depths = [view.depth for view in self.counted.stood_for]
        return (
            np.concatenate([self.margins.summed(totals, depth) for depth in depths]),
            np.sqrt(np.concatenate([self.variances(everything, depth)[0] for depth in depths])),
        )

    @property
    def _harmed(self) -> int | None:
        """The view that noise of what was cut harms most, if there are several: the coarsest, of
        which one sum has most of it."""
        return None if len(self.layout.views) == 1 else self.layout.views[0].depth

    @property
    def _squared_parts(self) -> float:
        """Of the parts that its sums have in what was cut; of all cells where there is one view."""
        parts = self.spread
        if self._harmed is not None:
            parts = self.margins.summed(parts, self._harmed)
        return float((parts**2).sum())

    def added(self, weights: Reals) -> list[Added]:
        """What is added to sums over slots, by query."""
        if not self.adds:
            return [Added() for _ in weights]
        harmed = self._harmed
        of_sums = (
            self.cell_variances(weights) if harmed is None else self.variances(weights, harmed)
        )
        noise = of_sums.sum(axis=1)
        own = self._squares(weights) @ (1 / self._cut_multipliers**2)
        squared = self._squared_parts
        found = []
        for row, counts, variances, all_sums in zip(
            weights, weights @ self.cut, own, noise, strict=True
        ):
            slots = max(int(np.count_nonzero(row)), self.least_slots)
            expected = [slots * each for each in self.expected_cut]
            counted = zip(counts.tolist(), variances.tolist(), strict=True)
            found.append(added_back(counted, squared, float(all_sums), expected, self.trust))
        return found

    def answers(self, workload: Workload) -> tuple[Answers, ...]:
        """To every query of a workload that is due at the newest slot."""
        slots = len(self.rows)
        due = np.flatnonzero(workload.slots == slots)
        if not due.size:
            return ()
        weights = workload.answers(np.eye(slots))[due]
        found: list[Answers] = []
        for row, own, more in zip(map(int, due), weights, self.added(weights), strict=True):
            span = workload.span(row)
            # What was cut is missing from sums; other queries it may move either way.
            added = more if span is not None else Added()
            noise = partial(self._noise_of, own)
            cells, name = own @ self.totals, workload.names[row]
            found += answers_with(self.layout, name, span, cells, self.spread, added, noise)
        return tuple(found)

    def _noise_of(self, weights: Reals, depth: int) -> Reals:
        return np.asarray(self.variances(weights[None, :], depth)[0])

    def noise_variances(self, workload: Workload) -> list[float]:
        """Of answers that are due, in the mean over cells: noise alone, and what is added of counts
        as if that part of them were fixed, as the lab's figures have it since they began."""
        slots = len(self.rows)
        weights = workload.answers(np.eye(slots))[workload.slots == slots]
        of_cells, parts = self.cell_variances(weights), self.spread**2
        return [
            float((own + parts * more.fixed_variance).mean())
            for own, more in zip(of_cells, self.added(weights), strict=True)
        ]

    def running_noise(self, boundaries: Sequence[int]) -> RunningNoise:
        """How far totals after so many slots are off together."""
        so_far = np.vstack([0 * self.inverse[:1], self.inverse.cumsum(axis=0)])[list(boundaries)]
        return RunningNoise(
            tuple(boundaries),
            so_far.tolist(),
            (self.scale**2,) * len(self.rows),
            tuple(self._stretches()),
            self._running_cut(boundaries) if self.adds else None,
        )

    def _running_cut(self, boundaries: Sequence[int]) -> Cut:
        counts = np.vstack([0 * self.cut[:1], self.cut.cumsum(axis=0)])[list(boundaries)]
        depths = range(len(self.layout.dimensions) + 1)
        parts = tuple(tuple(map(float, self.margins.summed(self.spread, d))) for d in depths)
        columns = tuple(
            CutColumn(tuple(map(float, of_column)), tuple(map(float, (self.scale / own) ** 2)))
            for of_column, own in zip(counts.T, self._cut_multipliers.T, strict=True)
        )
        squared = self._squared_parts
        return Cut(columns, parts, squared, True, self.expected_cut, self.least_slots, self.trust)

    def _stretches(self) -> list[Stretch]:
        found, depths = [], range(len(self.layout.dimensions) + 1)
        alike = groupby(
            enumerate(self.rows), key=lambda each: (each[1].multipliers[0], each[1].sizes)
        )
        for _, rows in alike:
            first = next(rows)[0]
            times = [self._row_variances(depth)[first] for depth in depths]
            if self._harmed is None:
                together = float((1 / self._multipliers[first] ** 2).sum())
            else:
                together = float(times[self._harmed].sum())
            of_views = tuple(_told_once(tuple(map(float, each))) for each in times)
            found.append(Stretch(first, of_views, together))
        return found


def _told_once(times: tuple[float, ...]) -> tuple[float, ...]:
    """One number where all are alike."""
    return times[:1] if len(set(times)) == 1 else times
