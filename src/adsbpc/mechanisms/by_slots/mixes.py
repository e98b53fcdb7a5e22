"""What personal budgets by slots ask of a strategy B: rows, costs, and sums over its inverse.

Dense strategies are those of campaigns that version 0.1 began. Those of long campaigns have one
column, again and again: nothing here makes a matrix of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from adsbpc.mechanisms.by_slots import decay_fit
from adsbpc.privacy import Strategy
from adsbpc.privacy.decays import ONE_LONG, Crossing, DecayingStrategy
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads import MatrixQueries, Workload
from adsbpc.workloads.queries import Reals

# Of the queries of a long campaign, so many stand for all when an allowance is chosen.
_MOST_FORECAST = 120


class Mix(Protocol):
    """A strategy, with entries of `one` for 1."""

    one: int

    @property
    def parts(self) -> Any:
        """For JSON: what a fingerprint has of it."""

    def costs(self, slot: int) -> tuple[int, ...] | Crossing:
        """What the filter's terms of a slot have of it."""

    def row(self, slot: int) -> tuple[int, ...]:
        """B_t1 .. B_tt."""

    def solved(self, values: Reals) -> Reals:
        """B^-1 y for the first rows, a column of values each."""

    def mixed(self, weights: Reals) -> Reals:
        """w^T B^-1 for weights of the first slots: how much of each row's noise a sum has."""

    def variances(self, workload: Workload) -> Reals:
        """Of all queries, for noise of 1 in every row."""


@dataclass(frozen=True)
class DenseMix:
    strategy: Strategy
    one: int = ONE

    @property
    def parts(self) -> Any:
        return self.strategy.rows

    def costs(self, slot: int) -> tuple[int, ...]:
        return tuple(int(cost) for cost in self.strategy.gram[slot - 1, :slot])

    def row(self, slot: int) -> tuple[int, ...]:
        return self.strategy.rows[slot - 1]

    @cached_property
    def inverse(self) -> Reals:
        return np.tril(np.linalg.inv(self.strategy.matrix.astype(np.float64)))

    # Of a lower-triangular matrix, the inverse of a leading block is a block of the inverse.

    def solved(self, values: Reals) -> Reals:
        return np.asarray(self.inverse[: len(values), : len(values)] @ values)

    def mixed(self, weights: Reals) -> Reals:
        return np.asarray(weights @ self.inverse[: len(weights), : len(weights)])

    def variances(self, workload: Workload) -> Reals:
        return np.asarray((workload.answers(self.inverse) ** 2).sum(axis=1))


@dataclass(frozen=True)
class DecayingMix:
    strategy: DecayingStrategy
    one: int = ONE_LONG

    @property
    def parts(self) -> Any:
        own = self.strategy
        return {"first": own.first, "weights": own.weights, "rates": own.rates}

    def costs(self, slot: int) -> Crossing:
        return self.strategy.crossing(slot)

    def row(self, slot: int) -> tuple[int, ...]:
        return self.strategy.row(slot)

    @cached_property
    def entries(self) -> Reals:
        return np.array(self.strategy.entries, dtype=np.float64)

    @cached_property
    def inverse(self) -> Reals:
        """Coefficients of 1 / b(x), for the entries as they were rounded."""
        entries, found = self.entries, np.zeros(self.strategy.slots)
        found[0] = 1 / entries[0]
        for slot in range(1, len(found)):
            found[slot] = -(entries[1 : slot + 1] @ found[slot - 1 :: -1]) / entries[0]
        return found

    def solved(self, values: Reals) -> Reals:
        return _convolved(self.inverse[: len(values)], values)

    def mixed(self, weights: Reals) -> Reals:
        return _convolved(self.inverse[: len(weights)], weights[::-1, None])[::-1, 0]

    def variances(self, workload: Workload) -> Reals:
        return decay_fit.variances(self.inverse, workload)


def _convolved(kernel: Reals, columns: Reals) -> Reals:
    """The first entries of a convolution with each column."""
    size = 2 * len(kernel)
    product = np.fft.rfft(kernel, size)[:, None] * np.fft.rfft(columns, size, axis=0)
    return np.asarray(np.fft.irfft(product, size, axis=0)[: len(kernel)])


def query_row(workload: Workload, row: int, slots: int) -> Reals:
    """How a query weighs the first slots."""
    if isinstance(workload, MatrixQueries):
        return workload.matrix[row, :slots]
    found, span = np.zeros(slots), workload.span(row)
    assert span is not None
    found[span[0] - 1 : span[1]] = 1.0
    return found


class NoiseForecast(Protocol):
    """The weighted sum of variances of answers for one column, as allowances make it."""

    def parts(self, past: Sequence[float]) -> tuple[float, float, float]:
        """(f, m, r) such that it is f + 2 m a + r a^2, if all slots after the past ones have an
        allowance of a."""


@dataclass(frozen=True)
class DenseForecast:
    """From the matrix N with c^T N c = that sum under allowances c."""

    noise: Reals

    def parts(self, past: Sequence[float]) -> tuple[float, float, float]:
        done, t = np.array(past), len(past)
        return (
            float(done @ self.noise[:t, :t] @ done),
            float((done @ self.noise[:t, t:]).sum()),
            float(self.noise[t:, t:].sum()),
        )


@dataclass(frozen=True)
class LongForecast:
    """From some of the queries, in the order of their slots, which stand for all."""

    mix: DecayingMix
    workload: Workload
    weights: Reals
    noise_of_allowance: float

    def parts(self, past: Sequence[float]) -> tuple[float, float, float]:
        slots = self.mix.strategy.slots
        done, rest = np.zeros(slots), np.ones(slots)
        done[: len(past)], rest[: len(past)] = past, 0.0
        step = -(-len(self.weights) // _MOST_FORECAST)
        found = np.zeros(3)
        for first in range(0, len(self.weights), step):
            weight = float(self.weights[first : first + step].sum())
            row = min(first + step // 2, len(self.weights) - 1)
            asked = query_row(self.workload, row, slots)
            before, after = self.mix.mixed(done * asked), self.mix.mixed(rest * asked)
            found += weight * np.array([before @ before, before @ after, after @ after])
        fixed, mixed, later = (found * self.noise_of_allowance**2).tolist()
        return fixed, mixed, later
