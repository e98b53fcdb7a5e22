"""Plans of personal budgets by slots: of long campaigns, and of those that version 0.1 began, from
what the ledger stores of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from adsbpc.mechanisms.by_slots.allowance import Forecast, Level
from adsbpc.mechanisms.by_slots.decay_fit import best_decays, near_toeplitz, on_long_grid
from adsbpc.mechanisms.by_slots.mechanism import BudgetBySlots
from adsbpc.mechanisms.by_slots.mixes import (
    DecayingMix,
    DenseForecast,
    DenseMix,
    LongForecast,
    NoiseForecast,
)
from adsbpc.mechanisms.interface import Question, usual_sums
from adsbpc.mechanisms.strategy_choice import (
    DEFAULT_BETA,
    met_again,
    query_matrix,
    query_weights,
)
from adsbpc.model.guarantee import affordable
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import Strategy
from adsbpc.privacy.decays import DecayingStrategy
from adsbpc.workloads import WeightedSquaredError
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
        # What it began with is kept in what it promised.
        assert section.histogram_share is not None
        rho = question.guarantee.rho * Fraction(str(section.histogram_share))
    looks, major = _looks(rho, question.slots)
    strategy = Strategy(stored.strategy)
    mechanism = BudgetBySlots(
        question.guarantee,
        question.layout,
        DenseMix(strategy),
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
    forecast = _forecast(mechanism, _dense_noise(mechanism, strategy, weights), weights, section)
    return replace(mechanism, forecast=forecast, allowance=stored.start)


def plan_long(
    question: Question,
    section: PersonalBudgetSection,
    split: dict[str, Fraction],
    slot_rho: tuple[Fraction, ...],
    stored: StoredPlan | None,
) -> BudgetBySlots:
    """A campaign with more slots than dense strategies have."""
    if stored is None:
        mix = DecayingMix(_decaying(question, section))
    else:
        (first,), weights, rates = stored.decays
        mix = DecayingMix(DecayingStrategy(question.slots, first, weights, rates))
    looks, major = _looks(split.get("histogram", Fraction(0)), question.slots)
    mechanism = BudgetBySlots(
        question.guarantee,
        question.layout,
        mix,
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
    workload, objective = question.workloads[0], question.objective
    if isinstance(objective, WeightedSquaredError):
        of_queries = objective.squared_weights(workload)
    else:
        targets = objective.limits(workload)
        ratios = mix.variances(workload) / targets
        of_queries = np.asarray((ratios >= 0.99 * ratios.max()) / targets)
    noise = LongForecast(mix, workload, of_queries, mechanism.noise_of_allowance)
    forecast = _forecast(mechanism, noise, of_queries, section)
    return replace(mechanism, forecast=forecast)


def _decaying(question: Question, section: PersonalBudgetSection) -> DecayingStrategy:
    slots, cells = question.slots, len(question.layout)
    if section.strategy == "identity":
        return on_long_grid(near_toeplitz(slots, 0.0), slots)
    if section.strategy == "square-root":
        return on_long_grid(near_toeplitz(slots, 0.5), slots)
    if section.strategy == "toeplitz":
        beta = DEFAULT_BETA if section.beta is None else section.beta
        return on_long_grid(near_toeplitz(slots, beta), slots)
    again = met_again(question.come_back, cells)
    return on_long_grid(best_decays(question.workloads[0], question.objective, again), slots)


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


def _dense_noise(mechanism: BudgetBySlots, strategy: Strategy, weights: Reals) -> DenseForecast:
    queries = query_matrix(mechanism.workloads[0])
    asked = queries.T @ (weights[:, None] * queries)
    inverse = np.linalg.inv(strategy.matrix.astype(np.float64))
    return DenseForecast(asked * (inverse @ inverse.T) * mechanism.noise_of_allowance**2)


def _mean_costs(mix: DenseMix | DecayingMix) -> tuple[float, float]:
    """Of a slot's own cost, and of that of a pair of slots, of one conversion each."""
    slots = mix.strategy.slots
    if isinstance(mix, DenseMix):
        gram = mix.strategy.gram.astype(np.float64)
        own, together = float(np.trace(gram)), float(gram.sum())
    else:
        own = float(mix.entries**2 @ np.arange(slots, 0, -1))
        together = float((np.cumsum(mix.entries) ** 2).sum())
    pairs = slots * (slots - 1)
    return own / slots / mix.one**2, (together - own) / max(pairs, 1) / mix.one**2


def _forecast(
    mechanism: BudgetBySlots, noise: NoiseForecast, weights: Reals, section: PersonalBudgetSection
) -> Forecast:
    workload, slots, layout = mechanism.workloads[0], mechanism.slots, mechanism.layout
    own, recurring = _mean_costs(mechanism.mix)
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
        noise,
        float(weights @ (workload.lengths() / slots) ** 2),
        own,
        # Who is counted once meets no cell again.
        0.0 if layout.once else recurring,
        usual_sums(layout) if layout.once else section.heavy_user,
    )
