"""Personal budgets from a budget and questions, before any data is seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import isqrt, sqrt

import numpy as np

from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms.allowance import Forecast, Level, Look
from adsbpc.mechanisms.interface import Question
from adsbpc.mechanisms.personal_budget import PersonalBudget
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, affordable
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import Measured
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import (
    Strategy,
    histogram_squared,
    identity,
    optimised,
    square_root,
    toeplitz,
)
from adsbpc.privacy.filter import MOST_CELLS
from adsbpc.privacy.strategies import MOST_SLOTS, ONE
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
# In how many sums of a view somebody is counted who is met by many publishers, say.
_MET_IN_A_VIEW = 4


def plan_personal(
    question: Question,
    section: PersonalBudgetSection,
    stored: StoredPlan | None = None,
    previous: tuple[Measured, ...] = (),
) -> PersonalBudget:
    """A campaign that runs goes on with what is stored of its plan; a new one may start from the
    releases of an earlier campaign."""
    slots, workload = question.slots, question.workloads[0]
    if slots > MOST_SLOTS:
        raise WorkloadError(
            f"{slots} slots: personal budgets take at most {MOST_SLOTS}. Take longer slots, "
            'or mechanism = "adsbpc"'
        )
    if len(question.layout) > MOST_CELLS:
        raise PrivacyError(
            f"{len(question.layout)} cells: personal budgets take at most {MOST_CELLS}. Leave "
            'small ones to "other", or take mechanism = "adsbpc"'
        )
    split = split_personal(question.guarantee.rho, section, slots)
    looks, major = _looks(split.get("histogram", Fraction(0)), slots)
    if stored is None:
        strategy = strategy_of(section, workload, question.objective)
        slot_rho = _paced(split["measurement"], slots)
    else:
        strategy, slot_rho = Strategy(stored.strategy), stored.slot_rho
    mechanism = PersonalBudget(
        question.guarantee,
        question.layout,
        strategy,
        slot_rho,
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
    mechanism = replace(mechanism, forecast=_forecast(mechanism, weights, section.heavy_user))
    if stored is not None:
        return replace(mechanism, allowance=stored.start)
    return starting_from(mechanism, previous) if previous else mechanism


def split_personal(
    rho: Fraction, section: PersonalBudgetSection, _slots: int
) -> dict[str, Fraction]:
    if section.allowance is not None:
        return {"measurement": rho}
    looks = rho * Fraction(str(section.histogram_share))
    return {"measurement": rho - looks, "histogram": looks}


def _paced(rho: Fraction, slots: int) -> tuple[Fraction, ...]:
    """Users may have spent a part sqrt(t / n) of their budget after slot t: early slots cannot use
    all of it up, and what is released so far is charged no more than that."""
    whole = int(affordable(rho) * PICO_RHO)
    reached = [isqrt(whole**2 * slot // slots) for slot in range(slots + 1)]
    parts = tuple(Fraction(b - a, PICO_RHO) for a, b in pairwise(reached))
    if min(parts) == 0:
        raise PrivacyError(
            f"a budget of {float(rho):.3g} cannot be shared among {slots} slots: give the "
            "campaign a larger rho or epsilon"
        )
    return parts


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
    if min(looks.values()) == 0:
        raise PrivacyError(
            f"a budget of {float(rho):.3g} for histograms cannot be shared among {len(every)} "
            "looks: give the campaign a larger rho or epsilon, or a fixed allowance"
        )
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
        # Who is counted once meets no cell again.
        (float(gram.sum()) - own * slots) / pairs if pairs and not layout.once else 0.0,
        _usual_sums(layout) if layout.once else heavy_user,
    )


def _usual_sums(layout: Layout) -> int:
    """In how many sums somebody is who is met often, where people are counted once: everything, and
    some of each view. How often such a person converts says nothing about that."""
    return min(1 + _MET_IN_A_VIEW * len(layout.dimensions), len(layout))


def starting_from(mechanism: PersonalBudget, previous: tuple[Measured, ...]) -> PersonalBudget:
    """The same mechanism, started with the allowance that an earlier campaign's histograms ask
    for. Norms of a longer or shorter campaign are scaled with the root of its length."""
    assert mechanism.forecast is not None
    charges = {
        release.slot: sum(c.rho for c in release.charges if c.part == "histogram")
        for release in previous
        if release.mechanism == mechanism.name and release.histogram
    }
    squared = histogram_squared(mechanism.guarantee.adjacency)
    looks = [
        Look(
            max(1, round(release.slot * mechanism.slots / len(previous))),
            release.histogram,
            sqrt(squared / (2 * charges[release.slot])),
            major=charges[release.slot] > 0.5 * max(charges.values()),
        )
        for release in previous
        if release.slot in charges
    ]
    if not looks:
        raise PrivacyError(
            "[privacy.personal_budget] previous: those releases have no histograms of personal "
            "budgets. Name the folder of a campaign that has, or remove the key"
        )
    worth = mechanism.unit_value * UNITS_PER_CONVERSION
    totals = [[value / worth for value in release.slot_totals[-1].values] for release in previous]
    chosen = mechanism.forecast.choose(looks, [], _in_slots(np.array(totals), mechanism.slots))
    return replace(mechanism, allowance=chosen * sqrt(mechanism.slots / len(previous)))


def _in_slots(totals: Reals, slots: int) -> Reals:
    """The same totals over another number of slots, a row each."""
    so_far = np.vstack([np.zeros(totals.shape[1]), np.cumsum(totals, axis=0)])
    ends = np.linspace(0, len(totals), slots + 1)
    reached = [np.interp(ends, np.arange(len(so_far)), column) for column in so_far.T]
    return np.diff(np.array(reached).reshape(-1, slots + 1), axis=1).T
