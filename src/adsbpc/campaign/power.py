"""Power of a trial, before any data: the chance to see an effect, with and without privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from adsbpc.campaign.accuracy import limit_of
from adsbpc.campaign.planning import plan_anew
from adsbpc.errors import SpecError
from adsbpc.mechanisms import guarantee_of
from adsbpc.mechanisms.interface import Mechanism
from adsbpc.model import CampaignSpec
from adsbpc.report.looks import Reals, chance_beyond, critical_value, over_slots
from adsbpc.workloads import prefix_sums

_LEVEL = 0.95
_REACH = NormalDist().inv_cdf((1 + _LEVEL) / 2)
USUAL_POWER = 0.8
_STEPS = 60


@dataclass(frozen=True)
class Power:
    """The chance that an effect of this size shows in an arm: at the end by the plain interval, and
    on any day by the band, each also as if there were no noise. `wider` is how much wider the last
    interval is for privacy. `rho_needed` and `slots_needed` give the usual power at the end, each
    with all else as it is; None where no budget, or no ten times as long campaign, does."""

    measure: str
    arm: str
    rate: float
    lift: float
    rho: float
    at_the_end: float
    at_the_end_without_privacy: float
    by_the_band: float
    by_the_band_without_privacy: float
    wider: float
    rho_needed: float | None
    slots_needed: int | None

    def to_object(self) -> dict[str, Any]:
        return asdict(self)


def power_of(spec: CampaignSpec, lift: float, rate: float) -> list[Power]:
    """For every treated arm, of the first measure that counts converters by arm. `rate` is the part
    of the control that converts in the whole campaign, `lift` how much larger it is otherwise."""
    if spec.lift is None:
        raise SpecError("the campaign has no arms: add [lift] to plan a trial")
    if not 0 < rate < 1 or not lift > 0 or rate * (1 + lift) > 1:
        raise SpecError(
            f"a rate of {rate:g} and a lift of {lift:g}: expected parts such as 0.01 and 0.1, and "
            "no more than everybody to convert"
        )
    if not spec.lift.people:
        raise SpecError("how many people each arm has is not known: add [lift.people]")
    found = [run for run in plan_anew(spec).runs if run[0].by_arm and run[0].metric == "converters"]
    if not found:
        raise SpecError(
            'no measure counts converters by arm: add a [[measure]] with metric = "converters" and '
            'by = ["arm"]'
        )
    measure, mechanism = found[0]
    errors = _running_errors(mechanism, spec.campaign.slots)
    rho = float(guarantee_of(spec).rho)
    people = spec.lift.people
    return [
        _power(
            _Trial(people[arm], people[spec.lift.control], rate, lift, errors**2, rho),
            measure.name,
            arm,
        )
        for arm in spec.lift.treated
    ]


def _running_errors(mechanism: Mechanism, slots: int) -> Reals:
    """Of an arm's running totals."""
    names = set(prefix_sums(slots).names)
    limit = limit_of(mechanism, None)
    found = [row for row in mechanism.expected_errors(limit, 1) if row[1] in names]
    if len(found) != slots:
        raise SpecError('power is that of running totals: add a [[workload]] queries = "prefix"')
    return np.array([error for _, _, error in found])


@dataclass(frozen=True)
class _Trial:
    treated: int
    control: int
    rate: float
    lift: float
    noise: Reals
    rho: float

    @property
    def ratio(self) -> float:
        return self.treated / self.control

    @property
    def parts(self) -> Reals:
        """Of the campaign, after each slot."""
        return np.arange(1, len(self.noise) + 1) / len(self.noise)

    def effect(self, part: float = 1.0) -> float:
        return self.treated * self.rate * self.lift * part

    def sampling(self, part: float = 1.0) -> float:
        treated = self.treated * self.rate * (1 + self.lift) * part
        control = self.control * self.rate * part
        return treated + self.ratio**2 * control

    def at_the_end(self, noise: float, part: float = 1.0) -> float:
        variance = self.sampling(part) + (1 + self.ratio**2) * noise
        return NormalDist().cdf(self.effect(part) / sqrt(variance) - _REACH)

    def by_the_band(self, noise: Reals) -> float:
        sampling = np.array([self.sampling(part) for part in self.parts])
        covariance = over_slots(sampling) + over_slots((1 + self.ratio**2) * noise)
        effects = np.array([self.effect(part) for part in self.parts])
        return chance_beyond(covariance, effects, critical_value(covariance, _LEVEL))


def _power(trial: _Trial, measure: str, arm: str) -> Power:
    last = float(trial.noise[-1])
    nothing = np.zeros_like(trial.noise)
    widened = (1 + trial.ratio**2) * last / trial.sampling()

    def by_rho(rho: float) -> float:
        return trial.at_the_end(last * trial.rho / rho)

    def by_length(part: float) -> float:
        return trial.at_the_end(last, part)

    slots = _smallest(by_length, 1 / len(trial.noise), 10.0)
    return Power(
        measure, arm, trial.rate, trial.lift, trial.rho, trial.at_the_end(last),
        trial.at_the_end(0.0), trial.by_the_band(trial.noise), trial.by_the_band(nothing),
        sqrt(1 + widened) - 1, _smallest(by_rho, 1e-6, 1e3),
        None if slots is None else int(np.ceil(slots * len(trial.noise))),
    )  # fmt: skip


def _smallest(power: Callable[[float], float], low: float, high: float) -> float | None:
    """The smallest argument, to many digits, with the usual power; power grows with it."""
    if power(high) < USUAL_POWER:
        return None
    for _ in range(_STEPS):
        middle = sqrt(low * high)
        low, high = (low, middle) if power(middle) >= USUAL_POWER else (middle, high)
    return high
