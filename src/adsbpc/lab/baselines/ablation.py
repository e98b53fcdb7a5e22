"""Personal budgets without one of the ideas that they are made of: what each one is worth."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property, partial

from adsbpc.lab.baselines.bounded import question_of, trial_seed
from adsbpc.lab.baselines.personal import one_trial
from adsbpc.lab.evaluation import LabMechanism, Outcome, Prepared, Setting
from adsbpc.mechanisms import BudgetByRows
from adsbpc.mechanisms.by_rows.measurement import Measurement
from adsbpc.mechanisms.by_rows.needs import Needs
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import Growth, Terms
from adsbpc.privacy.filter import FORECAST_BITS


class _WithoutRenewals(BudgetByRows):
    """The first look's allowance for good, and all cells alike."""

    def _is_renewal(self, *_: object) -> bool:
        return False

    @property
    def _is_sized(self) -> bool:
        return False


class _WithoutSizes(BudgetByRows):
    @property
    def _is_sized(self) -> bool:
        return False


def _in_place_of(plain: Measurement, other: type[Measurement]) -> Measurement:
    return other(**{each.name: getattr(plain, each.name) for each in fields(plain)})


class _Unpaced(Measurement):
    def terms(self, slot: int, multipliers: tuple[int, ...], sizes: tuple[int, ...]) -> Terms:
        return replace(super().terms(slot, multipliers, sizes), pace=None)


class _WithoutPace(BudgetByRows):
    @cached_property
    def measurement(self) -> Measurement:
        return _in_place_of(super().measurement, _Unpaced)


class _SoFar(Needs):
    def of_looks(self, slot: int, doubt: float) -> Growth:
        """Everybody's squared norm grows as the slots do, however often they were seen."""
        even = (2**FORECAST_BITS * self.strategy.slots // slot,) * slot
        return Growth(even, even)


class _Unforeseen(Measurement):
    @cached_property
    def needs(self) -> Needs:
        return _SoFar(self.strategy)


class _WithoutForecasts(BudgetByRows):
    @cached_property
    def measurement(self) -> Measurement:
        return _in_place_of(super().measurement, _Unforeseen)


_IDEAS: dict[str, type[BudgetByRows]] = {
    "renewals": _WithoutRenewals,
    "sizes": _WithoutSizes,
    "cut": BudgetByRows,
    "pace": _WithoutPace,
    "forecasts": _WithoutForecasts,
}


def without(idea: str, planned: BudgetByRows) -> BudgetByRows:
    """The same run with one idea switched off."""
    given = {each.name: getattr(planned, each.name) for each in fields(planned)}
    # What was cut is counted as ever, and not added.
    return _IDEAS[idea](**{**given, "cuts_nobody": idea == "cut"})


def _ablated(idea: str, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
    planned = plan_by_rows(question_of(data, setting), PersonalBudgetSection())
    mechanism = without(idea, planned)
    return Outcome.of_trials(
        one_trial(mechanism, data, setting, trial_seed(seed, trial)) for trial in range(trials)
    )


WITHOUT: dict[str, LabMechanism] = {
    f"personal-budget-without-{idea}": partial(_ablated, idea) for idea in _IDEAS
}
