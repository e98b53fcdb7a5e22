"""Personal budgets of people who are in one arm of a trial each, and counted once.

What one of them can ask for is known before anything is seen: one figure of an arm and one of
everything, in one slot. So nobody is ever cut, nothing has to be found out by histograms, and the
noise is shaped for people who come once. The first slot is charged nearly everything, because
whoever comes first may use up a whole budget.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import sqrt

from adsbpc.errors import WorkloadError
from adsbpc.mechanisms.interface import Question
from adsbpc.mechanisms.strategy_choice import query_matrix, query_weights
from adsbpc.model.guarantee import PICO_RHO, affordable
from adsbpc.model.plan import StoredPlan
from adsbpc.privacy import Strategy, equal_columns, square_root
from adsbpc.privacy.strategies import MOST_SLOTS, ONE
from adsbpc.workloads import WeightedSquaredError

# An arm, and everything.
_FIGURES = 2
# Above every rounding of the arithmetic that follows.
_A_LITTLE_MORE = 1 + 1e-6


def plan_once(question: Question) -> StoredPlan:
    """Strategy and budgets of slots. Where nobody says what weighs how much, the last answer weighs
    as much as all others: a trial is read every day, and judged at its end."""
    objective, workload, slots = question.objective, question.workloads[0], question.slots
    if slots > MOST_SLOTS:
        raise WorkloadError(
            f"{slots} slots: people are counted by arm over at most {MOST_SLOTS}. Take longer slots"
        )
    if isinstance(objective, WeightedSquaredError) and objective.weights is None:
        others = len(workload.names) - 1
        objective = replace(objective, weights=(*others * [1.0], sqrt(others + 1)))
    weights, queries = (
        query_weights(workload, objective, square_root(slots)),
        query_matrix(workload),
    )
    strategy = equal_columns(queries.T @ (weights[:, None] * queries))
    whole = int(affordable(question.guarantee.rho) * PICO_RHO)
    return StoredPlan((whole - (slots - 1), *[1] * (slots - 1)), strategy.rows, by_rows=True)


def allowance_for_once(strategy: Strategy) -> float:
    """The norm of whoever costs most: the two figures, in the slot that costs most."""
    most = Fraction(int(strategy.gram.diagonal().max()), ONE**2)
    return sqrt(_FIGURES * most) * _A_LITTLE_MORE
