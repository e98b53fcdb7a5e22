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
class UnlikeSums:
    """The same where columns have variances of their own: by depth, from the cells up, each sum is
    the mean of its own column and of its parts, weighed by precision; on the way down, parts take
    up what their sum knows better, each by its part of the variance."""

    lengths: tuple[int, ...]
    weights: tuple[float, ...]

    def solve(self, columns: Reals, variances: Reals) -> tuple[Reals, tuple[Reals, ...]]:
        """Cells from columns, view after view along the last axis, and the variances of sums by the
        number of first dimensions that are kept. Only whether a weight is 0 matters: then a view
        has no columns."""
        values, spreads = self._up(columns, variances)
        for depth, count in enumerate(self.lengths):
            parts, own = (_in_sums(each[depth + 1], count) for each in (values, spreads))
            together = own.sum(axis=-1, keepdims=True)
            share = own / together
            missing = values[depth][..., None] - parts.sum(axis=-1, keepdims=True)
            values[depth + 1] = _flat(parts + share * missing)
            spreads[depth + 1] = _flat(own - share**2 * (together - spreads[depth][..., None]))
        return values[-1], tuple(spreads)

    def _up(self, columns: Reals, variances: Reals) -> tuple[list[Reals], list[Reals]]:
        """By depth, what sums' own columns and everything below them say, and how surely."""
        values, spreads, end = list[Reals](), list[Reals](), columns.shape[-1]
        for depth in range(len(self.lengths), -1, -1):
            size = prod(self.lengths[:depth])
            value = spread = None
            if values:
                count = self.lengths[depth]
                value, spread = (
                    _in_sums(each[0], count).sum(axis=-1) for each in (values, spreads)
                )
            if self.weights[depth]:
                own, noise = (each[..., end - size : end] for each in (columns, variances))
                end -= size
                if value is None or spread is None:
                    value, spread = own, noise
                else:
                    gain = spread / (spread + noise)
                    value, spread = value + gain * (own - value), spread * (1 - gain)
            assert value is not None
            assert spread is not None
            values.insert(0, value)
            spreads.insert(0, spread)
        return values, spreads


def _in_sums(parts: Reals, count: int) -> Reals:
    return parts.reshape(*parts.shape[:-1], parts.shape[-1] // count, count)


def _flat(parts: Reals) -> Reals:
    return np.asarray(parts.reshape(*parts.shape[:-2], parts.shape[-2] * parts.shape[-1]))


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
