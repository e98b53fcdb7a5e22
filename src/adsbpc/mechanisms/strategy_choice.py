"""Strategies of personal budgets, before any data is seen, and how their queries count."""

from __future__ import annotations

import numpy as np

from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import Strategy, identity, optimised, square_root, toeplitz
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads import Objective, WeightedSquaredError, Workload
from adsbpc.workloads.queries import Reals

# How often the same cell is met again: of so many conversions, spread over all slots. Where there
# are few cells, people are loyal to one; where there are many, it hardly happens.
_LOYAL, _SPREAD_OUT = 40.0, 2.0
_FEW_CELLS = 50
DEFAULT_BETA = 0.3
_ROUNDS = 12


def strategy_of(
    section: PersonalBudgetSection,
    workload: Workload,
    objective: Objective,
    come_back: bool,
    cells: int,
) -> Strategy:
    slots = workload.slot_count
    if section.strategy == "identity":
        return identity(slots)
    if section.strategy == "square-root":
        return square_root(slots)
    if section.strategy == "toeplitz":
        return toeplitz(slots, DEFAULT_BETA if section.beta is None else section.beta)
    queries, recurrence = query_matrix(workload), met_again(come_back, cells) / slots

    def best_for(weights: Reals) -> Strategy:
        return optimised(queries.T @ (weights[:, None] * queries), recurrence)

    if isinstance(objective, WeightedSquaredError):
        return best_for(objective.squared_weights(workload))
    # The worst query: more weight, again and again, for those that are worse than others.
    targets, weights = objective.limits(workload), np.ones(len(queries))
    tried = []
    for _ in range(_ROUNDS):
        strategy = best_for(weights / targets)
        ratios = query_variances(queries, strategy) / targets
        tried.append((float(ratios.max() * _typical_cost(strategy, recurrence)), strategy))
        weights = weights * (ratios / ratios.mean())
    return min(tried, key=lambda pair: pair[0])[1]


def met_again(come_back: bool, cells: int) -> float:
    """Of somebody's conversions, how many are with the same cell on another slot."""
    if not come_back:
        return _SPREAD_OUT
    return min(max(_LOYAL * (_FEW_CELLS / cells) ** 2, _SPREAD_OUT), _LOYAL)


def _typical_cost(strategy: Strategy, recurrence: float) -> float:
    gram = strategy.gram.astype(np.float64) / ONE**2
    return float(np.trace(gram) + recurrence * gram.sum())


def query_matrix(workload: Workload) -> Reals:
    return workload.answers(np.eye(workload.slot_count))


def query_weights(workload: Workload, objective: Objective, strategy: Strategy) -> Reals:
    """Squared weights with which errors of queries count when an allowance is chosen."""
    if isinstance(objective, WeightedSquaredError):
        return objective.squared_weights(workload)
    targets = objective.limits(workload)
    ratios = query_variances(query_matrix(workload), strategy) / targets
    return np.asarray((ratios >= 0.99 * ratios.max()) / targets)


def query_variances(queries: Reals, strategy: Strategy) -> Reals:
    """Variances of answers for noise of ONE in every row."""
    return np.asarray(_row_variances(queries, strategy).sum(axis=1))


def last_row_variances(queries: Reals, strategy: Strategy) -> Reals:
    """What of that is the last row's."""
    return _row_variances(queries, strategy)[:, -1]


def _row_variances(queries: Reals, strategy: Strategy) -> Reals:
    inverse = np.linalg.inv(strategy.matrix.astype(np.float64) / ONE)
    return np.asarray((queries @ inverse) ** 2)
