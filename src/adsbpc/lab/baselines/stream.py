"""Stream: a binary tree whose contribution bound doubles when a sparse vector says so.

After Dong, Luo and Yi, "Continual Observation under User-level Differential Privacy", S&P 2023, in
the form that the AdsBPC paper compares with. A bound tau starts at 1; a sparse vector watches how
many users have contributed more than tau so far, and each report doubles tau and starts a new tree,
whose first leaf holds everything up to then, truncated at the new tau.

Formal guarantee: half of rho pays one sparse vector with at most ceil(log2 GS) reports, half pays
the trees, in equal parts. A user moves the leaves of a tree by at most tau in all, so that a tree
with bound tau and L levels has sensitivity tau sqrt(L), or sqrt(2) times that under substitution.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, log, log2, sqrt

import numpy as np

from adsbpc.lab.baselines.bounded import trial_seed
from adsbpc.lab.baselines.strategies import dyadic_pieces
from adsbpc.lab.evaluation import NOISE_STREAM, Outcome, Prepared, Reals, Setting
from adsbpc.model import UNITS_PER_CONVERSION, Adjacency
from adsbpc.privacy import SeededRandomness, SparseVector, counts_are_monotone, pure_epsilon


@dataclass(frozen=True)
class _Tree:
    """Serves the slots first..; its first leaf holds the slots 1..first."""

    first: int
    bound: int


def stream(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    most = max(1, ceil(log2(data.dataset.largest_user)))
    tree_rho = float(setting.rho) / 2 / trees_at_most(most)
    return Outcome.of_trials(
        _one(
            data,
            setting,
            tree_rho,
            _trees(data, setting, most, trial_seed(seed, trial)),
            np.random.default_rng([seed, NOISE_STREAM, trial]),
        )
        for trial in range(trials)
    )


def trees_at_most(reports: int) -> int:
    """The first one, and one more for each report."""
    return reports + 1


def tree_scale(bound: int, leaves: int, rho: float, adjacency: Adjacency) -> float:
    """Noise of a node: each leaf is in one node of every level."""
    factor = 2 if adjacency is Adjacency.SUBSTITUTE else 1
    return bound * sqrt(factor * leaves.bit_length() / (2 * rho))


def _trees(data: Prepared, setting: Setting, most: int, seed: int) -> list[_Tree]:
    randomness = SeededRandomness(seed)
    watch = SparseVector.start(
        pure_epsilon(Fraction(setting.rho) / 2),
        most,
        randomness,
        monotone=counts_are_monotone(setting.adjacency),
    )
    # Above what the noise alone reaches in any of the queries, most of the time.
    threshold = ceil(watch.scales.query * log(2 * data.slots))
    trees = [_Tree(1, 1)]
    for slot in range(1, data.slots + 1):
        bound = trees[-1].bound
        while watch.passes(
            data.users_above_lifetime(slot, bound * UNITS_PER_CONVERSION), threshold, randomness
        ):
            bound *= 2
        if bound > trees[-1].bound:
            trees = [*(tree for tree in trees if tree.first < slot), _Tree(slot, bound)]
    return trees


def _one(
    data: Prepared, setting: Setting, rho: float, trees: list[_Tree], rng: np.random.Generator
) -> tuple[Reals, Reals, Reals]:
    """Answers from the tree in force when a query is due; a range that began under an earlier
    tree is the difference of two running totals."""
    slots, publishers = data.slots, len(data.layout)
    starts = [tree.first for tree in trees]
    in_force = [bisect_right(starts, t) - 1 for t in range(1, slots + 1)]
    scales = [
        tree_scale(tree.bound, slots - tree.first + 1, rho, setting.adjacency) for tree in trees
    ]
    sums: list[Reals] = []
    for tree in trees:
        kept = data.totals_lifetime(tree.bound * UNITS_PER_CONVERSION) / UNITS_PER_CONVERSION
        sums.append(np.vstack([np.zeros(publishers), np.cumsum(kept, axis=0)]))

    @cache
    def node(k: int, _piece: tuple[int, int]) -> Reals:
        return scales[k] * rng.standard_normal(publishers)

    def noise_of(k: int, pieces: list[tuple[int, int]]) -> Reals:
        return np.asarray(sum(node(k, piece) for piece in pieces))

    running = []
    for t in range(1, slots + 1):
        k = in_force[t - 1]
        pieces = dyadic_pieces(1, t - trees[k].first + 1)
        running.append((sums[k][t], noise_of(k, pieces), len(pieces) * scales[k] ** 2))
    found = []
    for first, last in zip(setting.workload.first, setting.workload.last, strict=True):
        k = in_force[last - 1]
        if first == 1:
            found.append(running[last - 1])
        elif first > trees[k].first:
            start = trees[k].first
            pieces = dyadic_pieces(first - start + 1, last - start + 1)
            value = sums[k][last] - sums[k][first - 1]
            found.append((value, noise_of(k, pieces), len(pieces) * scales[k] ** 2))
        else:
            newer, older = running[last - 1], running[first - 2]
            found.append((newer[0] - older[0], newer[1] - older[1], newer[2] + older[2]))
    values, noises, variances = map(np.array, zip(*found, strict=True))
    return values - setting.workload.answers(data.truth), noises, variances
