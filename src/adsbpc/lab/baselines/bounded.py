"""Mechanisms that bound what a user contributes on each slot: AdsBPC, and MMBPC with its bounds."""

from __future__ import annotations

from functools import cache, partial
from math import ceil

import numpy as np

from adsbpc.lab.baselines import strategies
from adsbpc.lab.evaluation import NOISE_STREAM, LabMechanism, Outcome, Prepared, Reals, Setting
from adsbpc.mechanisms import AdsBPC, BoundedState, Question, plan_adsbpc
from adsbpc.model import UNITS_PER_CONVERSION, Guarantee
from adsbpc.model.release_spec import AdsBPCSection
from adsbpc.privacy import SeededRandomness, totals_squared


def adsbpc(section: AdsBPCSection) -> LabMechanism:
    """AdsBPC as this package releases it, with some choice of bounds."""
    return partial(_adsbpc, section)


def _adsbpc(
    section: AdsBPCSection, data: Prepared, setting: Setting, trials: int, seed: int
) -> Outcome:
    mechanism, workload = _plan(section, data, setting), setting.workload

    def one(trial: int) -> tuple[Reals, Reals, Reals]:
        state, kept = _all_slots(mechanism, data, trial_seed(seed, trial))
        values = np.array(state.values, dtype=np.float64) / UNITS_PER_CONVERSION
        variances = (np.array(state.scales) / UNITS_PER_CONVERSION) ** 2
        return (
            workload.answers(kept - data.truth),
            workload.answers(values - kept),
            workload.variances(variances),
        )

    return Outcome.of_trials(map(one, range(trials)))


def _all_slots(mechanism: AdsBPC, data: Prepared, seed: int) -> tuple[BoundedState, Reals]:
    """The state after the last slot, and the totals that its bounds have kept."""
    randomness, state = SeededRandomness(seed), BoundedState()
    for _ in range(mechanism.slots):
        _, state = mechanism.release(state, data, randomness)
    return state, data.capped([bound * UNITS_PER_CONVERSION for bound in state.bounds])


def trial_seed(seed: int, trial: int) -> int:
    """Streams of different trials, and of different seeds, have nothing in common."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1, np.uint64)[0])


def _plan(section: AdsBPCSection, data: Prepared, setting: Setting) -> AdsBPC:
    """The paper's Lambda belongs to the dataset."""
    if "quantile_limit" not in section.model_fields_set:
        section = section.model_copy(update={"quantile_limit": data.dataset.quantile_limit})
    return plan_adsbpc(question_of(data, setting), section)


def question_of(data: Prepared, setting: Setting) -> Question:
    return Question(
        Guarantee(setting.rho, setting.adjacency, "lab"),
        data.layout,
        (setting.workload,),
        setting.objective,
        1 / UNITS_PER_CONVERSION,
    )


def oracle(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    """AdsBPC with the best constant bound in hindsight, and nothing spent to find it.

    NOT PRIVATE: the bound is read from the data. It is the opponent to beat.
    """
    weights = setting.weights**2

    @cache
    def expected(bound: int) -> float:
        bias, variances = _bias(bound, data, setting), _variances(bound, data, setting)
        return float((weights @ bias**2).mean() + weights @ variances)

    grid = _candidates(data)
    place = grid.index(min(grid, key=expected))
    # Between the neighbours of the best one on the grid, which is coarse for large bounds.
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    step = max(1, (high - low) // 50)
    best = min({*range(low, high + 1, step), grid[place]}, key=expected)
    return _constant(best, data, setting, trials, seed)


def constant_bound(bound: int) -> LabMechanism:
    """AdsBPC with a public constant bound, and the whole budget for measurement."""
    return partial(_constant, bound)


def _candidates(data: Prepared) -> list[int]:
    """Bounds up to the largest contribution of any user on any slot."""
    totals = [data.user_totals(slot) for slot in range(1, data.slots + 1)]
    largest = max((int(each[-1]) for each in totals if each.size), default=1)
    most = max(1, ceil(largest / UNITS_PER_CONVERSION))
    # Every small bound, steps of a tenth further up, and the one that cuts nothing.
    steps = {int(1.1**power) for power in range(200)} | set(range(1, 33)) | {most}
    return sorted(bound for bound in steps if bound <= most)


def _bias(bound: int, data: Prepared, setting: Setting) -> Reals:
    kept = data.capped([bound * UNITS_PER_CONVERSION] * setting.slots)
    return setting.workload.answers(kept - data.truth)


def _slot_variances(bound: int, data: Prepared, setting: Setting) -> Reals:
    factor = totals_squared(setting.adjacency, data.layout, bound)
    return setting.objective.scales(setting.workload, float(setting.rho)).variances * factor


def _variances(bound: int, data: Prepared, setting: Setting) -> Reals:
    return setting.workload.variances(_slot_variances(bound, data, setting))


def _constant(bound: int, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    rng = np.random.default_rng([seed, NOISE_STREAM])
    scales = np.sqrt(_slot_variances(bound, data, setting))
    drawn = rng.standard_normal((trials, setting.slots, len(data.layout))) * scales[:, None]
    noise = np.array([setting.workload.answers(each) for each in drawn])
    return Outcome(_bias(bound, data, setting)[None], noise, _variances(bound, data, setting)[None])


def matrix_bounded(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    """MMBPC: the matrix mechanism with bounded contributions per slot.

    Publishes B diag(1/r) X + noise, with the bounds r and their budget as AdsBPC finds them (the
    paper's tracker). Formal guarantee: rho-zCDP, with the sensitivity ||B 1|| of a user who
    contributes up to r_i on every slot. The paper scales the columns and keeps the event-level
    sensitivity, which covers a user on one slot only.
    """
    mechanism = _plan(AdsBPCSection(bounds="svt"), data, setting)
    strategy = strategies.square_root(setting.workload)
    sensitivity = strategies.daily_sensitivity(strategy.matrix, len(data.layout), setting.adjacency)
    scale = sensitivity / np.sqrt(2 * float(sum(mechanism.slot_rho)))
    queries = strategies.query_matrix(setting.workload)

    def one(trial: int) -> tuple[Reals, Reals, Reals]:
        state, kept = _all_slots(mechanism, data, trial_seed(seed, trial))
        bounds = np.array(state.bounds, dtype=np.float64)
        answers = np.linalg.solve(strategy.matrix.T, (queries * bounds).T).T
        rng = np.random.default_rng([seed, NOISE_STREAM, trial])
        drawn = scale * rng.standard_normal((setting.slots, len(data.layout)))
        variances = scale**2 * (answers**2).sum(axis=1)
        return setting.workload.answers(kept - data.truth), answers @ drawn, variances

    return Outcome.of_trials(map(one, range(trials)))
