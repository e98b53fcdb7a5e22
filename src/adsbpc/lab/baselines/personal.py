"""Personal budgets in the lab: as this package releases them, and with hindsight."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import numpy as np

from adsbpc.contributions import ArrayAccounts
from adsbpc.lab.baselines.bounded import question_of, trial_seed
from adsbpc.lab.evaluation import LabMechanism, Outcome, Prepared, Reals, Setting
from adsbpc.mechanisms import PersonalBudget, PersonalState, plan_personal
from adsbpc.mechanisms.by_rows.mechanism import BudgetByRows
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.mechanisms.by_rows.state import Row, RowsState
from adsbpc.model import UNITS_PER_CONVERSION
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import SeededRandomness


def personal_budget(section: PersonalBudgetSection) -> LabMechanism:
    return partial(_personal_budget, section)


def with_totals(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    """Personal budgets where the sum of all publishers has noisy columns of its own."""
    section = PersonalBudgetSection()
    return _personal_budget(section, data.with_totals, setting, trials, seed)


def _personal_budget(
    section: PersonalBudgetSection, data: Prepared, setting: Setting, trials: int, seed: int
) -> Outcome:
    mechanism = _plan(section, data, setting)
    return Outcome.of_trials(
        one_trial(mechanism, data, setting, trial_seed(seed, trial)) for trial in range(trials)
    )


def one_trial(
    mechanism: PersonalBudget, data: Prepared, setting: Setting, seed: int
) -> tuple[Reals, Reals, Reals]:
    """Bias, noise and variances of all slots of one trial."""
    randomness, state = SeededRandomness(seed), PersonalState()
    accounts = ArrayAccounts(data.cells)
    answers, errors = [], []
    for _ in range(mechanism.slots):
        released, state = mechanism.release(state, accounts, randomness)
        finest = [each for each in released.answers if len(each.view) == len(released.dimensions)]
        answers += [each.values for each in finest]
        errors += [each.standard_error for each in finest]
    kept = np.array(state.kept, dtype=np.float64)[:, :-1] / UNITS_PER_CONVERSION
    without_noise = setting.workload.answers(kept)
    return (
        without_noise - setting.workload.answers(data.truth),
        np.array(answers) - without_noise,
        np.array(errors) ** 2,
    )


def _plan(section: PersonalBudgetSection, data: Prepared, setting: Setting) -> PersonalBudget:
    return plan_personal(question_of(data, setting), section)


def by_rows(data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    """Personal budgets that measure the past again: in the lab only, so far."""
    mechanism = plan_by_rows(question_of(data, setting), PersonalBudgetSection())
    return Outcome.of_trials(
        _trial_by_rows(mechanism, data, setting, trial_seed(seed, trial)) for trial in range(trials)
    )


def _trial_by_rows(
    mechanism: BudgetByRows, data: Prepared, setting: Setting, seed: int
) -> tuple[Reals, Reals, Reals]:
    """Bias, noise and variances of all slots of one trial. Bias is what the answers are off without
    the noise of the rows, on the path that it has led to."""
    randomness, state = SeededRandomness(seed), RowsState()
    accounts, exact = ArrayAccounts(data.cells), list[Row]()
    answers, without_noise, variances = list[Reals](), list[Reals](), list[float]()
    for _ in range(mechanism.slots):
        state = mechanism.release(state, accounts, randomness)
        exact.append(replace(state.rows[-1], values=tuple(mechanism.exact_row(state))))
        for rows, found in ((state.rows, answers), (exact, without_noise)):
            estimates = mechanism.estimates(rows)
            found += [each.values[-1] for each in estimates.answers(setting.workload)]
        variances += mechanism.estimates(state.rows).noise_variances(setting.workload)
    worth = mechanism.unit_value * UNITS_PER_CONVERSION
    expected = np.array(without_noise) / worth
    return (
        expected - setting.workload.answers(data.truth),
        np.array(answers) / worth - expected,
        np.array(variances) / worth**2,
    )


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
