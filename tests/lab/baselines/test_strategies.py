"""Strategy matrices: they answer the workload, and their sensitivity is what users can do."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest

from adsbpc.errors import WorkloadError
from adsbpc.lab.baselines import strategies
from adsbpc.lab.baselines.strategies import BaselineStrategy, query_matrix
from adsbpc.model import Adjacency
from adsbpc.workloads import RangeSums, per_slot, prefix_sums, sliding_windows

WORKLOADS = [prefix_sums(13), sliding_windows(13, 4), per_slot(6), prefix_sums(1)]


def made(name: str, workload: RangeSums) -> BaselineStrategy:
    if name == "optimal":
        return strategies.optimal(workload, np.ones(len(workload.names)))
    found: BaselineStrategy = getattr(strategies, name)(workload)
    return found


@pytest.mark.parametrize("name", ["identity", "binary_tree", "square_root", "optimal"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_a_strategy_answers_its_workload(name: str, workload: RangeSums) -> None:
    strategy = made(name, workload)
    assert strategy.answers @ strategy.matrix == pytest.approx(query_matrix(workload), abs=1e-6)


@pytest.mark.parametrize("name", ["identity", "binary_tree", "square_root", "optimal"])
@pytest.mark.parametrize("publishers", [1, 2])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_global_sensitivity_is_the_largest_distance(
    name: str, publishers: int, adjacency: Adjacency
) -> None:
    """Against all users with at most two conversions on three slots."""
    matrix = made(name, prefix_sums(3)).matrix
    cells = list(product(range(3), range(publishers)))
    users = [np.zeros((3, publishers))]
    for chosen in product(cells, repeat=2):
        user = np.zeros((3, publishers))
        for cell in chosen:
            user[cell] += 1
        users.append(user)
    users += [np.eye(1, 3, slot).T @ np.eye(1, publishers, p) for slot, p in cells]
    others = users[:1] if adjacency is Adjacency.ADD_REMOVE else users
    largest = max(
        float(np.linalg.norm(matrix @ (one - other))) for one in users for other in others
    )
    claimed = strategies.global_sensitivity(matrix, 2, publishers, adjacency)
    assert claimed == pytest.approx(largest)


@pytest.mark.parametrize("publishers", [1, 2])
def test_a_user_may_move_between_days_of_one_publisher(publishers: int) -> None:
    """For sliding windows the best strategy has columns that point away from each other."""
    matrix = made("optimal", sliding_windows(31, 7)).matrix
    cells = [np.eye(1, 31, slot).T @ np.eye(1, publishers, p) for slot in range(31)
             for p in range(publishers)]  # fmt: skip
    largest = max(float(np.linalg.norm(matrix @ (a - b))) for a in cells for b in cells)
    claimed = strategies.global_sensitivity(matrix, 1, publishers, Adjacency.SUBSTITUTE)
    assert largest > sqrt(2) * 1.05
    assert claimed == pytest.approx(largest)


def test_daily_sensitivity_is_refused_where_it_is_not_known() -> None:
    with pytest.raises(WorkloadError, match="negative entries"):
        strategies.daily_sensitivity(np.array([[1.0, -1.0]]), 1, Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("name", ["identity", "square_root"])
@pytest.mark.parametrize("publishers", [1, 2])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_daily_sensitivity_is_the_largest_distance(
    name: str, publishers: int, adjacency: Adjacency
) -> None:
    """Against all users with one conversion a slot, at any publisher or nowhere."""
    matrix = made(name, prefix_sums(3)).matrix
    users = []
    for places in product(range(publishers + 1), repeat=3):
        user = np.zeros((3, publishers))
        for slot, place in enumerate(places):
            if place:
                user[slot, place - 1] = 1
        users.append(user)
    others = [np.zeros((3, publishers))] if adjacency is Adjacency.ADD_REMOVE else users
    largest = max(
        float(np.linalg.norm(matrix @ (one - other))) for one in users for other in others
    )
    claimed = strategies.daily_sensitivity(matrix, publishers, adjacency)
    assert claimed == pytest.approx(largest)


def error(strategy: BaselineStrategy, weights: np.ndarray) -> float:
    """Weighted squared error for a sensitivity of 1."""
    sensitivity = (strategy.matrix**2).sum(axis=0).max()
    return float(sensitivity * (weights**2 @ (strategy.answers**2).sum(axis=1)))


@pytest.mark.parametrize("workload", [prefix_sums(31), sliding_windows(31, 7)], ids=str)
def test_the_optimal_strategy_beats_the_others_and_meets_its_lower_bound(
    workload: RangeSums,
) -> None:
    weights = np.ones(31)
    weights[-1] = 7
    best = error(strategies.optimal(workload, weights), weights)
    for name in ("identity", "square_root"):
        assert best < error(made(name, workload), weights)
    queries = query_matrix(workload)
    # No factorisation is below the squared nuclear norm over n (Li and Miklau 2013).
    bound = np.linalg.svd(weights[:, None] * queries, compute_uv=False).sum() ** 2 / 31
    assert bound <= best * (1 + 1e-9)
    # The columns are all of one length, which the best strategy's are.
    matrix = strategies.optimal(workload, weights).matrix
    assert (matrix**2).sum(axis=0) == pytest.approx(np.ones(31), abs=1e-6)


def test_a_tree_puts_prefixes_together_from_few_nodes() -> None:
    strategy = strategies.binary_tree(prefix_sums(31))
    assert [int(row.sum()) for row in strategy.answers] == [k.bit_count() for k in range(1, 32)]
    assert (strategy.matrix**2).sum(axis=0).max() == 5


def test_the_square_root_is_one() -> None:
    strategy = strategies.square_root(prefix_sums(20))
    assert strategy.matrix @ strategy.matrix == pytest.approx(query_matrix(prefix_sums(20)))
    assert strategy.matrix[1, 0] == 0.5
    assert sqrt((strategy.matrix[:, 0] ** 2).sum()) == pytest.approx(sqrt(1.999), rel=0.2)
