"""Personal budgets in the lab: as this package releases them, and with hindsight."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from adsbpc.contributions import ArrayAccounts
from adsbpc.lab.baselines.bounded import question_of, trial_seed
from adsbpc.lab.evaluation import LabMechanism, Outcome, Prepared, Reals, Setting
from adsbpc.mechanisms import BudgetByRows, RowsState
from adsbpc.mechanisms.by_rows.estimates import Estimates
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import SeededRandomness


def personal_budget(section: PersonalBudgetSection) -> LabMechanism:
    return partial(_personal_budget, section)


def with_columns_for_sums(total: int, others: int, section: PersonalBudgetSection) -> LabMechanism:
    """Personal budgets where sums have noisy columns of their own, with these weights of everything
    and of each further level."""
    return partial(_with_columns_for_sums, total, others, section)


def _with_columns_for_sums(
    total: int,
    others: int,
    section: PersonalBudgetSection,
    data: Prepared,
    setting: Setting,
    trials: int,
    seed: int,
) -> Outcome:
    return _personal_budget(section, data.with_weights(total, others), setting, trials, seed)


def _personal_budget(
    section: PersonalBudgetSection, data: Prepared, setting: Setting, trials: int, seed: int
) -> Outcome:
    mechanism = _plan(section, data, setting)
    return Outcome.of_trials(
        one_trial(mechanism, data, setting, trial_seed(seed, trial)) for trial in range(trials)
    )


def one_trial(
    mechanism: BudgetByRows, data: Prepared, setting: Setting, seed: int
) -> tuple[Reals, Reals, Reals]:
    """Bias, noise and variances of all slots of one trial. Bias is what the answers are off without
    the noise of the rows, on the path that it has led to."""
    randomness, state = SeededRandomness(seed), RowsState()
    accounts, exact = ArrayAccounts(data.cells(mechanism.counted)), list[Row]()
    answers, without_noise = list[tuple[float, ...]](), list[tuple[float, ...]]()
    variances = list[float]()
    for _ in range(mechanism.slots):
        _, state = mechanism.release(state, accounts, randomness)
        row = state.rows[-1]
        sums = mechanism.measurement.row(row.multipliers, row.sizes, state.kept)
        exact.append(replace(row, values=tuple(sums)))
        estimates = mechanism.estimates(state.rows)
        answers += _of_cells(estimates, setting)
        without_noise += _of_cells(mechanism.estimates(exact), setting)
        variances += estimates.noise_variances(setting.workload)
    expected = np.array(without_noise)
    return (
        expected - setting.workload.answers(data.truth),
        np.array(answers) - expected,
        np.array(variances),
    )


def _of_cells(estimates: Estimates, setting: Setting) -> list[tuple[float, ...]]:
    finest = len(estimates.layout.dimensions)
    return [each.values for each in estimates.answers(setting.workload) if len(each.view) == finest]


def _plan(section: PersonalBudgetSection, data: Prepared, setting: Setting) -> BudgetByRows:
    return plan_by_rows(question_of(data, setting), section)


def oracle(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    """Personal budgets with the best constant allowance in hindsight, and nothing spent to find it.

    NOT PRIVATE: the allowance is read from the data. It shows what the forecast loses.
    """
    weights = setting.weights**2

    @cache
    def expected(allowance: float) -> float:
        mechanism = _plan(PersonalBudgetSection(allowance=allowance), data, setting)
        bias, _, variances = one_trial(mechanism, data, setting, seed)
        return float((weights @ bias**2).mean() + weights @ variances)

    # Down from a generous allowance until less is clearly worse, then between the neighbours.
    allowance, best = 1024.0, 1024.0
    while allowance > 1 and expected(allowance) <= 4 * expected(best):
        best = min(best, allowance, key=expected)
        allowance /= 2**0.5
    best = min((best * 2 ** (step / 8) for step in range(-3, 4)), key=expected)
    return _personal_budget(PersonalBudgetSection(allowance=best), data, setting, trials, seed)
