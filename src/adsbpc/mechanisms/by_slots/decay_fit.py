"""Strategies of long campaigns: the few decaying powers that answer a workload best.

Every column of B is b_0 = 1, b_j = sum over k of w_k lambda_k^(j - 1). As a power series that is
b(x) = 1 + sum of w_k x / (1 - lambda_k x), a quotient of two polynomials, and 1 / b(x) is one too:
entries of B, of its inverse and of running sums over it take a few operations a slot. Nothing here
decides about privacy; `privacy.decays` takes what is found, in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from adsbpc.privacy.decays import BITS, MOST_SUMS, ONE_LONG, DecayingStrategy
from adsbpc.workloads import MatrixQueries, Objective, RangeSums, WeightedSquaredError, Workload
from adsbpc.workloads.queries import Reals

# Powers in a strategy: with four, errors of a year of hours are within a quarter of a percent of
# those of the square root.
USUAL_SUMS = 4
# Shapes that a search begins with: f_0 = 1, f_j = f_(j - 1) (j - 1 + beta) / j.
_BETAS = (0.15, 0.3, 0.5)
_ENDS = ((0.4, 2.0), (2.0, 1.0))
_SLOWEST, _FASTEST = 1 - 2.0**-28, 2.0**-9
# Of a matrix of queries, more than so many are not weighed in a search; running totals are instead.
_MOST_WEIGHED = 64
# A search from every start, and further ones from where the best of them has ended.
_SEARCHES = ("BFGS", "Nelder-Mead", "BFGS")
_ROUNDS = 300


@dataclass(frozen=True)
class Decays:
    """Weights and rates, as numbers that are not whole yet."""

    weights: Reals
    rates: Reals

    def entries(self, slots: int) -> Reals:
        """b_0 .. b_(n - 1)."""
        powers = self.rates[:, None] ** np.arange(slots - 1)
        return np.concatenate([[1.0], self.weights @ powers])

    def inverse(self, slots: int) -> Reals:
        """Coefficients of 1 / b(x): the columns of B^-1."""
        from scipy.signal import lfilter

        below = np.poly1d([1.0])
        for rate in self.rates:
            below *= np.poly1d([-rate, 1.0])
        above = below
        for k, weight in enumerate(self.weights):
            others = np.poly1d([weight, 0.0])
            for rate in np.delete(self.rates, k):
                others *= np.poly1d([-rate, 1.0])
            above += others
        impulse = np.zeros(slots)
        impulse[0] = 1.0
        return np.asarray(lfilter(below.coeffs[::-1], above.coeffs[::-1], impulse))


def toeplitz_entries(slots: int, beta: float) -> Reals:
    steps = np.arange(1, slots)
    return np.concatenate([[1.0], np.cumprod((steps - 1 + beta) / steps)])


def range_variances(prefix: Reals, workload: RangeSums) -> Reals:
    """Of the sums from `first` to `last`, for noise of 1 in every row, where `prefix` has the
    coefficients of running totals over B^-1."""
    squares = np.concatenate([[0.0], np.cumsum(prefix**2)])
    before = workload.first - 1
    found = squares[workload.last] + squares[before]
    lags = np.where(before > 0, workload.last - before, 0)
    for lag in np.unique(lags[lags > 0]):
        both = np.concatenate([[0.0], np.cumsum(prefix[:-lag] * prefix[lag:])])
        here = lags == lag
        found[here] -= 2 * both[before[here]]
    return np.asarray(found)


def matrix_variances(inverse: Reals, matrix: Reals) -> Reals:
    """Of any queries, a row each, where `inverse` has the coefficients of B^-1."""
    size = 2 * matrix.shape[1]
    kernel = np.conj(np.fft.rfft(inverse, size))
    mixed = (np.fft.irfft(np.fft.rfft(row, size) * kernel, size) for row in matrix)
    return np.array([(row[: matrix.shape[1]] ** 2).sum() for row in mixed])


def variances(inverse: Reals, workload: Workload) -> Reals:
    """Of all queries of a workload, for noise of 1 in every row."""
    if isinstance(workload, RangeSums):
        return range_variances(np.cumsum(inverse), workload)
    assert isinstance(workload, MatrixQueries)
    return matrix_variances(inverse, workload.matrix)


def typical_cost(entries: Reals, met_again: float) -> float:
    """What people cost who come once, and of whom so many of their other conversions are spread
    over all slots and meet the same cell: the mean of G_tt, and of all of G."""
    slots = len(entries)
    own = float(entries**2 @ np.arange(slots, 0, -1)) / slots
    together = float((np.cumsum(entries) ** 2).sum()) / slots
    return own + met_again / slots * together


def largest_cost(entries: Reals) -> float:
    """What somebody costs who comes once, on the first slot."""
    return float((entries**2).sum())


def nearest(entries: Reals, sums: int, ends: tuple[float, float]) -> Decays:
    """Powers, evenly spread over how long they last, whose sum is near given entries. `ends` says
    how long the first and the last do, the one in slots and the other in campaigns."""
    from scipy.optimize import nnls

    slots = len(entries)
    lasts = np.geomspace(ends[0], max(ends[1] * slots, 4.0), sums)
    places = np.unique(np.geomspace(1, slots - 1, 200).astype(int))
    rates = np.clip(np.exp(-1 / lasts), _FASTEST, _SLOWEST)
    table = rates[None, :] ** (places[:, None] - 1)
    weights, _ = nnls(table / entries[places, None], np.ones(len(places)))
    return Decays(np.maximum(weights, 1e-6), rates)


def improved(
    start: Decays, slots: int, error: Callable[[Reals, Reals], float], methods: Sequence[str]
) -> Decays:
    """The decays from `start` on with the least error of (entries, inverse), as searches find it
    one after another."""
    from scipy.optimize import minimize

    count = len(start.rates)

    def decays_at(place: Reals) -> Decays:
        rates = 1 / (1 + np.exp(np.clip(-place[count:], -30, 30)))
        weights = np.exp(np.clip(place[:count], -30, 10))
        return Decays(weights, np.clip(rates, _FASTEST, _SLOWEST))

    def height(place: Reals) -> float:
        decays = decays_at(place)
        found = error(decays.entries(slots), decays.inverse(slots))
        return float(np.log(found)) if 0 < found < np.inf else 700.0

    place = np.concatenate([np.log(start.weights), np.log(start.rates / (1 - start.rates))])
    reached = height(place)
    for method in methods:
        with np.errstate(over="ignore", invalid="ignore"):
            found = minimize(height, place, method=method, options={"maxiter": _ROUNDS})
        if found.fun < reached:
            place, reached = found.x, found.fun
    return decays_at(place)


def best_decays(
    workload: Workload, objective: Objective, met_again: float, sums: int = USUAL_SUMS
) -> Decays:
    """Those with the least error at the same typical cost."""
    slots = workload.slot_count
    if isinstance(workload, MatrixQueries) and len(workload.names) > _MOST_WEIGHED:
        ends = np.arange(1, slots + 1)
        names = tuple(map(str, ends))
        workload, objective = (
            RangeSums(slots, names, np.ones_like(ends), ends), WeightedSquaredError(),
        )  # fmt: skip

    def error(entries: Reals, inverse: Reals) -> float:
        own = variances(inverse, workload)
        if isinstance(objective, WeightedSquaredError):
            found = float(objective.squared_weights(workload) @ own)
        else:
            found = float((own / objective.limits(workload)).max())
        return found * typical_cost(entries, met_again)

    return _best(slots, sums, _BETAS, error)


def _best(
    slots: int, sums: int, betas: tuple[float, ...], error: Callable[[Reals, Reals], float]
) -> Decays:
    """Found from several starts."""

    def height(decays: Decays) -> float:
        return error(decays.entries(slots), decays.inverse(slots))

    starts = [
        min((nearest(toeplitz_entries(slots, b), sums, ends) for b in betas), key=height)
        for ends in _ENDS
    ]
    found = min((improved(start, slots, error, _SEARCHES[:1]) for start in starts), key=height)
    return improved(found, slots, error, _SEARCHES[1:])


def near_toeplitz(slots: int, beta: float, sums: int = USUAL_SUMS) -> Decays:
    """Powers whose sums are near f_j, with the least largest error of running totals for what
    the first slot costs."""
    if beta == 0:
        return Decays(np.zeros(1), np.array([0.5]))
    if beta == 0.5:
        return _best(slots, sums, (beta,), largest_error)
    wished = toeplitz_entries(slots, beta)

    def distance(entries: Reals, _: Reals) -> float:
        return float((((entries - wished) ** 2)[1:] / wished[1:]).sum()) + 1e-12

    return _best(slots, sums, (beta,), distance)


def largest_error(entries: Reals, inverse: Reals) -> float:
    """The variance of the last running total, for what somebody costs on the first slot."""
    return largest_cost(entries) * float((np.cumsum(inverse) ** 2).sum())


def on_long_grid(decays: Decays, slots: int) -> DecayingStrategy:
    """The strategy of whole numbers, with a mean own cost of ONE_LONG^2."""
    entries = decays.entries(slots)
    first = max(1, round(ONE_LONG / sqrt(typical_cost(entries, 0.0))))
    return DecayingStrategy(
        slots,
        first,
        tuple(round(weight * first * 2**BITS) for weight in decays.weights),
        tuple(min(ceil(rate * 2**BITS), 2**BITS - 1) for rate in decays.rates),
    )


assert USUAL_SUMS <= MOST_SUMS
