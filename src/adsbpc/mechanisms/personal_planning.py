"""Strategies of personal budgets from questions, and the plans of campaigns that an earlier version
began, which go on without measuring their past again."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from adsbpc.mechanisms.allowance import Forecast, Level
from adsbpc.mechanisms.interface import Question
from adsbpc.mechanisms.personal_budget import PersonalBudget
from adsbpc.model.guarantee import affordable
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import (
    Strategy,
    identity,
    optimised,
    square_root,
    toeplitz,
)
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads import Objective, WeightedSquaredError, Workload
from adsbpc.workloads.queries import Reals

# Looks after slots 1, 2, 4, 8, .. have this much of the budget of one of the minor looks, which
# are spread over the campaign to notice a surge; there are about so many of those.
_MAJOR_TO_MINOR = 6
_MINOR_LOOKS = 31
# How often the same cell is met again: of this many conversions, spread over all slots.
_RECURRENCE = 2.0
_DEFAULT_BETA = 0.3
_ROUNDS = 12


def continue_personal(
    question: Question, section: PersonalBudgetSection, stored: StoredPlan
) -> PersonalBudget:
    """A campaign that an earlier version began goes on as it was planned."""
    workload = question.workloads[0]
    split = Fraction(0)
    if section.allowance is None:
        split = question.guarantee.rho * Fraction(str(section.histogram_share))
    looks, major = _looks(split, question.slots)
    strategy = Strategy(stored.strategy)
    mechanism = PersonalBudget(
        question.guarantee,
        question.layout,
        strategy,
        stored.slot_rho,
        looks,
        major,
        None,
        section.allowance,
        question.workloads,
        question.unit_value,
    )
    if section.allowance is not None:
        return mechanism
    weights = query_weights(workload, question.objective, strategy)
    forecast = _forecast(mechanism, weights, section.heavy_user)
    return replace(mechanism, forecast=forecast, allowance=stored.start)


def _looks(rho: Fraction, slots: int) -> tuple[dict[int, Fraction], frozenset[int]]:
    """Budgets of the histograms of needs by slot, and which of them are major."""
    if rho == 0:
        return {}, frozenset()
    major = {2**power for power in range(slots.bit_length()) if 2**power <= slots}
    step = -(-slots // _MINOR_LOOKS)
    every = sorted(major | set(range(step, slots + 1, step)) | {slots})
    weights = {slot: _MAJOR_TO_MINOR if slot in major else 1 for slot in every}
    total = sum(weights.values())
    looks = {slot: affordable(rho * weight / total) for slot, weight in weights.items()}
    return looks, frozenset(major)


def query_matrix(workload: Workload) -> Reals:
    return workload.answers(np.eye(workload.slot_count))


def strategy_of(
    section: PersonalBudgetSection, workload: Workload, objective: Objective
) -> Strategy:
    slots = workload.slot_count
    if section.strategy == "identity":
        return identity(slots)
    if section.strategy == "square-root":
        return square_root(slots)
    if section.strategy == "toeplitz":
        return toeplitz(slots, _DEFAULT_BETA if section.beta is None else section.beta)
    queries, recurrence = query_matrix(workload), _RECURRENCE / slots

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


def _typical_cost(strategy: Strategy, recurrence: float) -> float:
    gram = strategy.gram.astype(np.float64) / ONE**2
    return float(np.trace(gram) + recurrence * gram.sum())


def query_weights(workload: Workload, objective: Objective, strategy: Strategy) -> Reals:
    """Squared weights with which errors of queries count when an allowance is chosen."""
    if isinstance(objective, WeightedSquaredError):
        return objective.squared_weights(workload)
    targets = objective.limits(workload)
    ratios = query_variances(query_matrix(workload), strategy) / targets
    return np.asarray((ratios >= 0.99 * ratios.max()) / targets)


def query_variances(queries: Reals, strategy: Strategy) -> Reals:
    """Variances of answers for noise of ONE in every row."""
    inverse = np.linalg.inv(strategy.matrix.astype(np.float64) / ONE)
    return np.asarray(((queries @ inverse) ** 2).sum(axis=1))


def _forecast(mechanism: PersonalBudget, weights: Reals, heavy_user: int | None) -> Forecast:
    workload, slots = mechanism.workloads[0], mechanism.slots
    queries = query_matrix(workload)
    asked = queries.T @ (weights[:, None] * queries)
    inverse = np.linalg.inv(mechanism.strategy.matrix.astype(np.float64))
    gram = mechanism.strategy.gram.astype(np.float64) / ONE**2
    own = float(np.trace(gram)) / slots
    pairs = slots * (slots - 1)
    layout = mechanism.layout
    levels = tuple(
        Level(
            view.columns,
            view.stride,
            view.weight**2 / layout.unit,
            layout.unit * mechanism.margins.view_variance(view.depth),
        )
        for view in layout.views
    )
    return Forecast(
        slots,
        levels,
        asked * (inverse @ inverse.T) * mechanism.noise_of_allowance**2,
        float(weights @ (workload.lengths() / slots) ** 2),
        own,
        (float(gram.sum()) - own * slots) / pairs if pairs else 0.0,
        heavy_user,
    )
