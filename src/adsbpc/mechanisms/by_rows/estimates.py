"""Answers from noisy rows: what slots had, what was cut added back, and how far off that may be.
Post-processing of released figures alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adsbpc.mechanisms.by_rows.cut import UNEVEN, Added, added_back, spread_over
from adsbpc.mechanisms.by_rows.sizes import multipliers_of
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.model.layout import Layout
from adsbpc.workloads import Margins, SeparateSums, Workload
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class Answered:
    """A query's answers by how many dimensions are told apart: values with what was cut added,
    standard errors, and how much more may be missing."""

    values: list[Reals]
    errors: list[Reals]
    missing: list[Reals]


@dataclass(frozen=True)
class Estimates:
    """What the rows so far say. `inverse` is B^-1 for these rows in the metric, `scale` that of
    their noise."""

    layout: Layout
    margins: Margins | SeparateSums
    rows: Sequence[Row]
    inverse: Reals
    scale: float

    @cached_property
    def _multipliers(self) -> Reals:
        """By row and cell, or alike for all cells where views sum them."""
        weight = self.layout.views[0].weight if len(self.layout.views) == 1 else 1
        return weight * np.array(
            [
                multipliers_of(row.multipliers[0], row.sizes)
                or (row.multipliers[0],) * len(self.layout)
                for row in self.rows
            ],
            dtype=np.float64,
        )

    @cached_property
    def _cut_multipliers(self) -> Reals:
        return np.array([row.multipliers[1:] for row in self.rows], dtype=np.float64)

    @cached_property
    def totals(self) -> Reals:
        """By slot and cell, without what was cut."""
        columns = len(self.layout.in_columns([0] * len(self.layout)))
        values = np.array([[float(v) for v in row.values[:columns]] for row in self.rows])
        if len(self.layout.views) == 1:
            return self.inverse @ (values / self._multipliers)
        return self.inverse @ self.margins.estimates(values / self._multipliers[:, :1])

    @cached_property
    def cut(self) -> Reals:
        """By slot and column of what was cut."""
        count = self._cut_multipliers.shape[1]
        values = np.array([[float(v) for v in row.values[-count:]] for row in self.rows])
        return np.asarray(self.inverse @ (values / self._cut_multipliers))

    @cached_property
    def spread(self) -> Reals:
        return spread_over(self.totals.sum(axis=0))

    def variances(self, weights: Reals, depth: int) -> Reals:
        """Of answers with these weights of slots (queries by slots), by query and sum of a view."""
        squares = ((weights @ self.inverse) * self.scale) ** 2
        if len(self.layout.views) > 1:
            of_rows = squares @ (1 / self._multipliers[:, 0] ** 2)
            sums = len(self.layout.names(depth))
            return np.asarray(np.outer(of_rows, np.full(sums, self.margins.view_variance(depth))))
        of_cells = squares @ (1 / self._multipliers**2)
        return np.array([self.margins.summed(each, depth) for each in of_cells])

    def cut_variances(self, weights: Reals) -> Reals:
        squares = ((weights @ self.inverse) * self.scale) ** 2
        return np.asarray(squares @ (1 / self._cut_multipliers**2))

    def added(self, weights: Reals) -> list[Added]:
        """What is added to sums over slots, by query."""
        cells = len(self.layout.dimensions)
        noise = self.variances(weights, cells).sum(axis=1)
        return [
            added_back(counted, variances, self.spread, float(own))
            for counted, variances, own in zip(
                weights @ self.cut, self.cut_variances(weights), noise, strict=True
            )
        ]

    def answers(self, workload: Workload) -> list[Answered]:
        """To every query of a workload that is due at the newest slot."""
        slots = len(self.rows)
        due = np.flatnonzero(workload.slots == slots)
        if not due.size:
            return []
        weights = workload.answers(np.eye(slots))[due]
        found = []
        for row, own, more in zip(due, weights, self.added(weights), strict=True):
            # What was cut is missing from sums; other queries it may move either way.
            added = more if workload.span(int(row)) is not None else Added(0.0, 0.0, 0.0)
            cells = own @ self.totals + added.total * self.spread
            of_views = range(len(self.layout.dimensions) + 1)
            found.append(
                Answered(
                    [self.margins.summed(cells, depth) for depth in of_views],
                    [
                        self.errors(self.variances(own[None, :], depth)[0], added, depth)
                        for depth in of_views
                    ],
                    [added.missing * self.margins.summed(self.spread, depth) for depth in of_views],
                )
            )
        return found

    def noise_variances(self, workload: Workload) -> list[float]:
        """Of answers that are due, in the mean over cells: noise alone."""
        slots, depth = len(self.rows), len(self.layout.dimensions)
        weights = workload.answers(np.eye(slots))[workload.slots == slots]
        of_cells, parts = self.variances(weights, depth), self.spread**2
        return [
            float((own + parts * more.variance).mean())
            for own, more in zip(of_cells, self.added(weights), strict=True)
        ]

    def errors(self, variances: Reals, more: Added, depth: int) -> Reals:
        """Standard errors of a view's sums, with what was added to them: its noise, and that the
        cut of a sum is not quite its part of the whole."""
        parts = self.margins.summed(self.spread, depth)
        apart = parts * (1 - parts) * more.total
        return np.sqrt(
            variances + parts**2 * more.variance + (UNEVEN * apart) ** 2 + np.maximum(apart, 0)
        )
