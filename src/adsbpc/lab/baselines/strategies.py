"""Strategy matrices: which noisy sums a mechanism publishes, and how answers are put together; and
the mechanisms that assume a public bound GS on all conversions of one user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import toeplitz

from adsbpc.errors import WorkloadError
from adsbpc.lab.evaluation import NOISE_STREAM, Outcome, Prepared, Reals, Setting
from adsbpc.model import UNITS_PER_CONVERSION, Adjacency
from adsbpc.workloads import RangeSums

# The fixed point stops when the objective is this close to its lower bound.
_GAP = 1e-9
_ROUNDS = 20_000


@dataclass(frozen=True)
class BaselineStrategy:
    """B X + noise is published, and `answers` @ that answers the workload: answers @ B = Q."""

    matrix: Reals
    answers: Reals


def query_matrix(workload: RangeSums) -> Reals:
    slots = np.arange(1, workload.slot_count + 1)
    inside = (slots >= workload.first[:, None]) & (slots <= workload.last[:, None])
    return inside.astype(np.float64)


def identity(workload: RangeSums) -> BaselineStrategy:
    return BaselineStrategy(np.eye(workload.slot_count), query_matrix(workload))


def binary_tree(workload: RangeSums) -> BaselineStrategy:
    """Sums over dyadic ranges that lie within the slots; a range is put together from the fewest
    (Chan, Shi and Song 2011; Dwork et al. 2010)."""
    nodes = dyadic_ranges(workload.slot_count)
    places = {ends: place for place, ends in enumerate(nodes)}
    slots = np.arange(1, workload.slot_count + 1)
    ends = np.array(nodes)
    matrix = ((slots >= ends[:, :1]) & (slots <= ends[:, 1:])).astype(np.float64)
    answers = np.zeros((len(workload.names), len(nodes)))
    for row, (first, last) in enumerate(zip(workload.first, workload.last, strict=True)):
        for piece in dyadic_pieces(int(first), int(last)):
            answers[row, places[piece]] = 1.0
    return BaselineStrategy(matrix, answers)


def dyadic_ranges(slots: int) -> list[tuple[int, int]]:
    """All complete dyadic ranges: k 2^j + 1 .. (k + 1) 2^j.

    >>> dyadic_ranges(3)
    [(1, 1), (2, 2), (3, 3), (1, 2)]
    """
    found, length = [], 1
    while length <= slots:
        found += [(k + 1, k + length) for k in range(0, slots - length + 1, length)]
        length *= 2
    return found


def dyadic_pieces(first: int, last: int) -> list[tuple[int, int]]:
    """The fewest dyadic ranges that make up first..last.

    >>> dyadic_pieces(1, 7)
    [(1, 4), (5, 6), (7, 7)]
    """
    pieces = []
    while first <= last:
        length = 1
        while (first - 1) % (2 * length) == 0 and first + 2 * length - 1 <= last:
            length *= 2
        pieces.append((first, first + length - 1))
        first += length
    return pieces


def square_root(workload: RangeSums) -> BaselineStrategy:
    """The square root of the prefix sums (Henzinger, Upadhyay and Upadhyay 2022)."""
    first_column = np.ones(workload.slot_count)
    for k in range(1, workload.slot_count):
        first_column[k] = first_column[k - 1] * (2 * k - 1) / (2 * k)
    matrix = toeplitz(first_column, np.zeros_like(first_column))
    return BaselineStrategy(matrix, _with(matrix, workload))


def optimal(workload: RangeSums, weights: Reals) -> BaselineStrategy:
    """The strategy with unit columns that makes the weighted sum of squared errors least.

    With M = Q^T diag(weights^2) Q and X = B^T B this is: least tr(M X^-1) over diag X <= 1. Its
    dual has one variable a column; v <- diag((V^1/2 M V^1/2)^1/2) is a fixed point iteration for
    it (Denisov et al. 2022).
    """
    queries = query_matrix(workload)
    gram = queries.T @ (weights[:, None] ** 2 * queries)
    v = np.ones(len(gram))
    for _ in range(_ROUNDS):
        root = np.sqrt(v)
        middle = _psd_root(root[:, None] * gram * root[None, :])
        after = np.diag(middle)
        gap = np.abs(after / v - 1).max()
        v = after
        if gap < _GAP:
            break
    root = np.sqrt(v)
    gram_of_strategy = _psd_root(root[:, None] * gram * root[None, :]) / root[:, None] / root
    matrix = np.linalg.cholesky(gram_of_strategy[::-1, ::-1])[::-1, ::-1].T
    matrix = matrix / np.sqrt((matrix**2).sum(axis=0).max())
    return BaselineStrategy(matrix, _with(matrix, workload))


def _psd_root(matrix: Reals) -> Reals:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _with(matrix: Reals, workload: RangeSums) -> Reals:
    return np.asarray(np.linalg.solve(matrix.T, query_matrix(workload).T).T)


def global_sensitivity(
    matrix: Reals, largest_user: int, publishers: int, adjacency: Adjacency
) -> float:
    """How far one user with at most `largest_user` conversions over all slots and publishers moves
    B X, in L2.

    A user is a mixture of users with all conversions in one cell, and a norm is convex, so the
    extremes are single cells: one that appears, or one that turns into another, on another slot of
    the same publisher or on any slot of another one.
    """
    norms = (matrix**2).sum(axis=0)
    squared = norms.max()
    if adjacency is Adjacency.SUBSTITUTE:
        gram = matrix.T @ matrix
        squared = max(squared, (norms[:, None] + norms[None, :] - 2 * gram).max())
        if publishers > 1:
            squared = max(squared, 2 * norms.max())
    return float(largest_user * np.sqrt(squared))


def daily_sensitivity(matrix: Reals, publishers: int, adjacency: Adjacency) -> float:
    """The same for a user who contributes up to 1 on every slot, for B >= 0 alone.

    All at one publisher on every slot is the worst that can appear: ||B 1||. Under substitution
    another user takes its place at another publisher.
    """
    if (matrix < 0).any():
        raise WorkloadError("a strategy with negative entries: its daily sensitivity is not known")
    squared = float((matrix.sum(axis=1) ** 2).sum())
    factor = 2 if adjacency is Adjacency.SUBSTITUTE and publishers > 1 else 1
    return float(np.sqrt(factor * squared))


@dataclass(frozen=True)
class GlobalSensitivity:
    """Users are held to GS conversions over the whole campaign. `times` multiplies the noise: what
    a mechanism costs that is charged more than it needs.

    Formal guarantee: rho-zCDP for one user whose conversions beyond the first GS are cut, by the
    Gaussian mechanism with the L2 sensitivity of `global_sensitivity`. Only the strategy differs.
    """

    strategy_of: Callable[[Setting], BaselineStrategy]
    times: float = 1.0

    def __call__(self, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
        strategy = self.strategy_of(setting)
        largest, publishers = data.dataset.largest_user, len(data.layout)
        sensitivity = global_sensitivity(strategy.matrix, largest, publishers, setting.adjacency)
        scale = self.times * sensitivity / np.sqrt(2 * float(setting.rho))
        kept = data.totals_lifetime(largest * UNITS_PER_CONVERSION) / UNITS_PER_CONVERSION
        bias = setting.workload.answers(kept - data.truth)
        rng = np.random.default_rng([seed, NOISE_STREAM])
        noise = scale * rng.standard_normal((trials, len(strategy.matrix), publishers))
        variances = scale**2 * (strategy.answers**2).sum(axis=1)
        return Outcome(bias[None], strategy.answers @ noise, variances[None])


# Independent noise on every slot (Case et al. 2023), made user-level by group privacy.
IPA = GlobalSensitivity(lambda setting: identity(setting.workload))
# Independent noise on the nodes of a binary tree.
BINARY_TREE = GlobalSensitivity(lambda setting: binary_tree(setting.workload))
# The matrix mechanism with the square root of the prefix sums.
SQUARE_ROOT = GlobalSensitivity(lambda setting: square_root(setting.workload))
# The matrix mechanism with the strategy that makes the weighted sum of squared errors least.
OPTIMAL = GlobalSensitivity(lambda setting: optimal(setting.workload, setting.weights))
