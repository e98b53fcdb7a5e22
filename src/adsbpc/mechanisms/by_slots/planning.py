"""Plans of campaigns that version 0.1 began, from what the ledger stores of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from adsbpc.mechanisms.by_slots.allowance import Forecast, Level
from adsbpc.mechanisms.by_slots.mechanism import BudgetBySlots
from adsbpc.mechanisms.interface import Question, usual_sums
from adsbpc.mechanisms.strategy_choice import query_matrix, query_weights
from adsbpc.model.guarantee import affordable
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import Strategy
from adsbpc.privacy.strategies import ONE
from adsbpc.workloads.queries import Reals

# Looks after slots 1, 2, 4, 8, .. have this much of the budget of one of the minor looks, which
# are spread over the campaign to notice a surge; there are about so many of those.
_MAJOR_TO_MINOR = 6
_MINOR_LOOKS = 31


def continue_by_slots(
    question: Question, section: PersonalBudgetSection, stored: StoredPlan
) -> BudgetBySlots:
    """A campaign that an earlier version began goes on as it was planned."""
    rho = Fraction(0)
    if section.allowance is None:
        rho = question.guarantee.rho * Fraction(str(section.histogram_share))
    looks, major = _looks(rho, question.slots)
    strategy = Strategy(stored.strategy)
    mechanism = BudgetBySlots(
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
    weights = query_weights(question.workloads[0], question.objective, strategy)
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


def _forecast(mechanism: BudgetBySlots, weights: Reals, heavy_user: int | None) -> Forecast:
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
        usual_sums(layout) if layout.once else heavy_user,
    )
