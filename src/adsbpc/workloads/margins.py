"""Sums over dimensions, from noisy columns of several views: the least-squares solution.

Cells x, and a column for each sum T_k x that keeps the first k dimensions, times its weight w_k,
with noise of the same variance. The normal matrix is sum_k w_k^2 T_k^T T_k. With A_m the mean over
all dimensions after the first m, and Q_m = A_m - A_(m-1), it is sum_m lambda_m Q_m, where
lambda_m = sum over k >= m of w_k^2 (cells in a column of view k), and so its inverse is
sum_m Q_m / lambda_m. There is one estimate of the cells, and every margin is a sum of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import prod

import numpy as np

from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class Margins:
    """Dimensions of these lengths; `weights` has one entry for each number of first dimensions that
    a view keeps, from none to all."""

    lengths: tuple[int, ...]
    weights: tuple[float, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Sums by the number of dimensions that are kept."""
        return tuple(prod(self.lengths[:depth]) for depth in range(len(self.lengths) + 1))

    @property
    def cells(self) -> int:
        return self.sizes[-1]

    @cached_property
    def _lambdas(self) -> tuple[float, ...]:
        parts = [
            weight**2 * self.cells / size
            for size, weight in zip(self.sizes, self.weights, strict=True)
        ]
        return tuple(sum(parts[depth:]) for depth in range(len(parts)))

    def estimates(self, columns: Reals) -> Reals:
        """Cells from columns, view after view along the last axis; no weight means no columns."""
        if not any(self.weights[:-1]):
            return np.asarray(columns / self.weights[-1])
        spread, first = np.zeros((*columns.shape[:-1], self.cells)), 0
        for size, weight in zip(self.sizes, self.weights, strict=True):
            if weight:
                own = columns[..., first : first + size]
                spread += weight * np.repeat(own, self.cells // size, axis=-1)
                first += size
        found, coarser = np.zeros_like(spread), np.zeros_like(spread)
        for depth, factor in enumerate(self._lambdas):
            mean = np.repeat(self.summed(spread, depth), self.cells // self.sizes[depth], axis=-1)
            mean *= self.sizes[depth] / self.cells
            found += (mean - coarser) / factor
            coarser = mean
        return found

    def summed(self, cells: Reals, depth: int) -> Reals:
        """Cells along the last axis, summed over all dimensions but the first ones."""
        size = self.sizes[depth]
        return np.asarray(cells.reshape(*cells.shape[:-1], size, self.cells // size).sum(axis=-1))

    def variance(self, kept: Iterable[int]) -> float:
        """Of an estimated sum that keeps these dimensions, for columns with noise of variance 1."""
        kept = sorted(set(kept))
        summed = prod(n for place, n in enumerate(self.lengths) if place not in kept)
        return summed * sum(
            prod((n - 1) / n if place in among else 1 / n for place, n in self._of(kept))
            / self._lambdas[max(among, default=-1) + 1]
            for among in _subsets(kept)
        )

    def _of(self, places: Sequence[int]) -> list[tuple[int, int]]:
        return [(place, self.lengths[place]) for place in places]

    def view_variance(self, depth: int) -> float:
        """The same for the first dimensions."""
        return self.variance(range(depth))


@dataclass(frozen=True)
class SeparateSums:
    """Where people are counted once, no sum follows from others: each has a column, and noise, of
    its own. `sizes` are those of the views, which stand side by side."""

    sizes: tuple[int, ...]

    def estimates(self, columns: Reals) -> Reals:
        return columns

    def summed(self, cells: Reals, depth: int) -> Reals:
        """Of the cells along the last axis, the sums that keep the first dimensions."""
        first = sum(self.sizes[:depth])
        return np.asarray(cells[..., first : first + self.sizes[depth]])

    def view_variance(self, depth: int) -> float:
        return 1.0


def _subsets(places: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return chain.from_iterable(combinations(places, count) for count in range(len(places) + 1))
