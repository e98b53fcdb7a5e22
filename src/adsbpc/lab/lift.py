"""How often intervals and bands of lift hold, and what privacy costs a trial: trials with a known
effect, repeated. Nothing touches a file or a ledger."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import BudgetByRows, RowsState, plan_measures
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Measure, Measured
from adsbpc.privacy import SeededRandomness
from adsbpc.report import joint_noise
from adsbpc.report.contrast import ArmTotals, Contrast
from adsbpc.report.looks import Reals

Whole = NDArray[np.int64]

LEVEL = 0.95
_REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
# Of every trial: fewer than in a report, because there are many trials.
_DRAWS = 20_000
_TREATED, _CONTROL = 0, 1
# What one person may spend in the campaign, as a public guess: so many times the cap.
_VALUE_CAP, _ALLOWANCE = 250.0, 3.0
# Purchases of a buyer after the first, and how much baskets differ: as a deviation of logarithms.
_MORE_PURCHASES, _BASKET, _SPREAD = 0.3, 40.0, 1.2


@dataclass(frozen=True)
class Scenario:
    """`rate` is the chance that somebody of the control converts in the campaign, `effect` how much
    larger it is for the treated. With `value`, what buyers spend is compared."""

    name: str
    rate: float
    effect: float
    value: bool = False


SCENARIOS = (
    Scenario("no effect", 0.01, 0.0),
    Scenario("small effect", 0.01, 0.1),
    Scenario("large effect", 0.01, 0.5),
    Scenario("rare conversions", 0.005, 0.2),
    Scenario("heavy-tailed value", 0.01, 0.2, value=True),
)


@dataclass(frozen=True)
class RepeatedTrial:
    """So many people in each of two arms, over so many days, for a budget."""

    people: int = 32_000
    slots: int = 31
    rho: float = 1.0

    def spec(self, *measures: dict[str, Any]) -> CampaignSpec:
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": "lift", "advertiser": "lab", "start": "2026-03-01",
                    "slots": self.slots, "publishers": ["any"],
                },
                "events": {"impressions": "none.parquet", "conversions": "none.parquet"},
                "privacy": {"rho": self.rho, "personal_budget": {"allowance": _ALLOWANCE}},
                "lift": {
                    "key_file": "none.key", "shares": {"treatment": 0.5, "control": 0.5},
                    "people": {"treatment": self.people, "control": self.people},
                },
                "measure": [{"by": ["arm"], **each} for each in measures],
            }
        )  # fmt: skip

    @cached_property
    def noise(self) -> Reals:
        """The covariance of an arm's converters over all slots, which depends on no data."""
        spec = self.spec({"name": "converters", "metric": "converters"})
        ((measure, mechanism),) = plan_measures(spec).runs
        assert isinstance(mechanism, BudgetByRows)
        nobody = np.array([], dtype=np.int64)
        drawn = _released(mechanism, measure, [nobody] * 4, seed=1)
        found = mechanism.running_noise(drawn, range(self.slots + 1))
        return joint_noise.of_sum(found, 1, 0)[1:, 1:]


def _released(
    mechanism: BudgetByRows,
    measure: Measure,
    columns: Sequence[Whole],
    seed: int,
) -> list[Measured]:
    """A measure from the first slot to the last, by the mechanism of campaigns, from users, slots,
    cells and weights."""
    user, slot, cell, weight = columns
    rows = ArrayContributions(user, slot, cell, weight, mechanism.slots, measure.layout)
    accounts, state = ArrayAccounts(CellIndex.of(rows, mechanism.counted)), RowsState()
    randomness, found = SeededRandomness(seed), []
    for _ in range(mechanism.slots):
        drawn, state = mechanism.release(state, accounts, randomness)
        found.append(Measured(**dict(drawn), measure=measure.name, metric=measure.metric))
    return found


@dataclass(frozen=True)
class Outcome:
    """Of one trial: whether the plain interval of the last look, all plain intervals, and the band
    hold what is true; and whether somebody who stops at the first look that excludes 0 would have
    stopped, by either. A band that never `begins`, because too few people are behind the figures,
    holds."""

    end: bool
    begins: bool
    band: bool
    alarm: bool
    plain_alarm: bool
    critical: float
    width: float


def one_trial(trial: RepeatedTrial, scenario: Scenario, seed: int) -> Outcome:
    rng = np.random.default_rng((seed, 7))
    if scenario.value:
        contrast, truth = _trial_of_value(trial, scenario, rng, seed)
    else:
        contrast, truth = _trial_of_converters(trial, scenario, rng)
    looks, first = np.arange(trial.slots), contrast.begins
    off = np.abs(contrast.incremental - truth) / contrast.errors
    away = np.abs(contrast.incremental) / contrast.errors
    judged = looks >= first
    return Outcome(
        bool(off[-1] <= _REACH),
        first < trial.slots,
        bool((off[judged] <= contrast.critical).all()),
        bool((away[judged] > contrast.critical).any()),
        bool((away[judged] > _REACH).any()),
        contrast.critical,
        2 * _REACH * float(contrast.errors[-1]),
    )


def _days(rng: Generator, trial: RepeatedTrial, scenario: Scenario) -> list[Whole]:
    """When whoever converts does so for the first time, by arm: days are counted from 0."""
    rates = (scenario.rate * (1 + scenario.effect), scenario.rate)
    return [
        rng.integers(0, trial.slots, rng.binomial(trial.people, rate), dtype=np.int64)
        for rate in rates
    ]


def _trial_of_converters(
    trial: RepeatedTrial, scenario: Scenario, rng: Generator
) -> tuple[Contrast, Reals]:
    """Nobody is ever cut of people in arms, so that totals are what is true, and noise."""
    root, people = np.linalg.cholesky(trial.noise + 1e-9 * np.eye(trial.slots)), trial.people
    arms = []
    for days in _days(rng, trial, scenario):
        true = np.bincount(days, minlength=trial.slots).cumsum()
        noisy = true + root @ rng.standard_normal(trial.slots)
        arms.append(ArmTotals(noisy, people=np.full(trial.slots, float(people))))
    expected = people * scenario.rate * scenario.effect
    truth = expected * np.arange(1, trial.slots + 1) / trial.slots
    return _contrast(arms, trial.noise, np.zeros_like(trial.noise)), truth


def _contrast(arms: Sequence[ArmTotals], noise: Reals, shared: Reals) -> Contrast:
    ratio = np.ones(len(noise))
    return Contrast(
        arms[_TREATED], arms[_CONTROL], ratio, noise, noise, shared, LEVEL, _REACH, draws=_DRAWS
    )


def _trial_of_value(
    trial: RepeatedTrial, scenario: Scenario, rng: Generator, seed: int
) -> tuple[Contrast, Reals]:
    """Baskets of buyers, by the mechanism of campaigns, which cuts what goes beyond budgets."""
    spec = trial.spec(
        {"name": "value", "metric": "value", "value_cap": _VALUE_CAP, "share": 0.6},
        {"name": "squares", "metric": "squared_value", "value_cap": _VALUE_CAP, "share": 0.4},
    )
    user, slot, cell, spent, first = [], [], [], [], 0
    for arm, days in enumerate(_days(rng, trial, scenario)):
        more = rng.poisson(_MORE_PURCHASES, days.size)
        who = np.concatenate([np.arange(days.size), np.repeat(np.arange(days.size), more)])
        # Later purchases are on any day from the first one on.
        when = np.concatenate([days, rng.integers(np.repeat(days, more), trial.slots)])
        user.append(who + first)
        slot.append(when + 1)
        cell.append(np.full(who.size, arm))
        basket = _BASKET * np.exp(rng.normal(-(_SPREAD**2) / 2, _SPREAD, who.size))
        spent.append(np.minimum(basket, _VALUE_CAP))
        first += days.size
    columns = [np.concatenate(each) for each in (user, slot, cell)]
    amounts = np.concatenate(spent)
    found, noise = dict[str, list[Measured]](), np.zeros(0)
    for measure, mechanism in plan_measures(spec).runs:
        assert isinstance(mechanism, BudgetByRows)
        weights = np.floor(UNITS_PER_CONVERSION * amounts / _VALUE_CAP).astype(np.int64)
        rows: Sequence[Whole] = (*columns, weights)
        if measure.is_squared:
            rows = _squared(*rows)
        found[measure.name] = _released(mechanism, measure, rows, seed)
        if measure.is_squared:
            continue
        running = mechanism.running_noise(found["value"], range(trial.slots + 1))
        noise = joint_noise.of_sum(running, 1, _TREATED)[1:, 1:]
        shared = joint_noise.between_sums(running, 1, measure.layout.sizes[1])[1:, 1:]
    arms = [
        ArmTotals(
            _totals(found["value"], arm),
            _totals(found["squares"], arm)
            + np.array([each.running_totals[1].standard_error for each in found["squares"]]),
            np.full(trial.slots, float(trial.people)),
            _VALUE_CAP,
        )
        for arm in (_TREATED, _CONTROL)
    ]
    # What is caused of the mean; by day it follows from when people buy.
    growth = _expected_growth(trial.slots)
    mean = _mean_basket() * growth
    return _contrast(arms, noise, shared), trial.people * scenario.rate * scenario.effect * mean


def _totals(released: Sequence[Measured], arm: int) -> Reals:
    return np.array([each.running_totals[1].values[arm] for each in released])


def _squared(user: Whole, slot: Whole, cell: Whole, weight: Whole) -> tuple[Whole, ...]:
    """By how much the square of everybody's total grows, purchase by purchase."""
    order = np.lexsort((slot, user))
    user, slot, cell, weight = (each[order] for each in (user, slot, cell, weight))
    running = weight.cumsum()
    starts = np.r_[True, user[1:] != user[:-1]]
    before = (running - weight)[starts][starts.cumsum() - 1]
    so_far = (running - before).astype(np.float64)

    def squares(total: Reals) -> Whole:
        return np.floor(total * total / UNITS_PER_CONVERSION).astype(np.int64)

    return user, slot, cell, squares(so_far) - squares(so_far - weight)


def _mean_basket() -> float:
    """Of one purchase, up to the cap: of a log-normal with mean _BASKET."""
    normal, level = NormalDist(), log(_VALUE_CAP / _BASKET)
    within = normal.cdf(level / _SPREAD - _SPREAD / 2)
    beyond = 1 - normal.cdf(level / _SPREAD + _SPREAD / 2)
    return _BASKET * within + _VALUE_CAP * beyond


def _expected_growth(slots: int) -> Reals:
    """Purchases of a buyer until each day, in the mean: the first one on any day alike, and others
    on the days from there on."""
    days = np.arange(slots)
    later = np.where(days[None, :] >= days[:, None], 1 / (slots - days[:, None]), 0.0)
    return np.asarray((1 / slots + _MORE_PURCHASES * later.mean(axis=0)).cumsum())


def outcomes_of(
    trial: RepeatedTrial, scenario: Scenario, trials: int, seed: int, jobs: int
) -> Iterator[Outcome]:
    """As they are done, in order."""
    seeds = range(seed * 1_000_000, seed * 1_000_000 + trials)
    run = partial(one_trial, trial, scenario)
    if jobs <= 1:
        yield from map(run, seeds)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(run, seeds, chunksize=10)


def row_of(trial: RepeatedTrial, scenario: Scenario, found: Sequence[Outcome]) -> dict[str, Any]:
    """`false_alarms` are those of somebody who looks every day, and stops when an effect shows."""
    count = len(found)

    def part(name: str) -> float:
        return float(sum(getattr(each, name) for each in found)) / count

    alarms = {"told": part("alarm"), "told_by_plain": part("plain_alarm")}
    if scenario.effect == 0:
        alarms = {"false_alarms": part("alarm"), "plain_false_alarms": part("plain_alarm")}
    return {
        "figure": "coverage", "scenario": scenario.name, "rho": trial.rho, "people": trial.people,
        "slots": trial.slots, "trials": count, "plain_at_the_end": part("end"),
        "band_begins": part("begins"), "band_on_all_days": part("band"), **alarms,
        "critical_value": part("critical"), "standard_error": sqrt(0.05 * 0.95 / count),
    }  # fmt: skip


def price_of(trial: RepeatedTrial, rate: float = 0.01) -> dict[str, Any]:
    """How much wider the last interval of the difference is than without privacy: by daily releases
    as they are planned, and by one release at the end."""
    count = trial.people * rate
    sampling = 2 * count * (1 - rate)
    alone = 2 * 1 / (2 * trial.rho)
    return {
        "figure": "price", "rho": trial.rho, "people": trial.people, "slots": trial.slots,
        "rate": rate, "width_without_privacy": 2 * _REACH * sqrt(sampling),
        "wider_by_daily_releases": sqrt(1 + 2 * float(trial.noise[-1, -1]) / sampling) - 1,
        "wider_by_one_release": sqrt(1 + alone / sampling) - 1,
    }  # fmt: skip


def price_figure(people: int, slots: int, rate: float = 0.01) -> dict[str, Any]:
    """The price by budget, as a Vega-Lite figure."""
    rows = []
    for rho in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0):
        price = price_of(RepeatedTrial(people, slots, rho), rate)
        rows += [
            {"rho": rho, "wider": 100 * price[key], "releases": name}
            for key, name in (
                ("wider_by_daily_releases", f"{slots} daily releases"),
                ("wider_by_one_release", "one release at the end"),
            )
        ]
    return {
        "title": {
            "text": "What privacy costs a trial",
            "subtitle": f"Two arms of {people:,} people, {100 * rate:g}% convert",
            "anchor": "start",
        },
        "width": 480,
        "height": 260,
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"filled": True, "size": 50}, "strokeWidth": 2},
        "encoding": {
            "x": {"field": "rho", "type": "quantitative", "scale": {"type": "log", "nice": False},
                  "axis": {"title": "rho", "values": [0.01, 0.05, 0.2, 1], "grid": False}},
            "y": {"field": "wider", "type": "quantitative",
                  "axis": {"title": "wider than without privacy, %"}},
            "color": {"field": "releases", "type": "nominal",
                      "scale": {"range": ["#0067a6", "#9aa5b1"]},
                      "legend": {"title": None, "orient": "top-right"}},
        },
    }  # fmt: skip
