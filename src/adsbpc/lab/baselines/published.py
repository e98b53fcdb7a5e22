"""AdsBPC as its listings have it: FOR COMPARISON ONLY, it is not as private as it says.

Algorithms 1 to 4 of the paper: real-valued bounds r with noise scaled to r, of which "the first r
conversions" keep ceil(r); a noisy threshold that is drawn anew after each report; a quantile that
leaves out the first interval; sensitivity r for several publishers under substitution.
`privacy/README.md` says what each of these costs. Three things had to be decided: the list of
bounds is appended to once a slot, a quantile without any interval is 1, no bound is below 0.001.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt, tanh

import numpy as np
from numpy.random import Generator

from adsbpc.lab.evaluation import NOISE_STREAM, Outcome, Prepared, Reals, Setting
from adsbpc.model import UNITS_PER_CONVERSION


@dataclass(frozen=True)
class PublishedAdsBPC:
    """Parameters and their names as in the paper; `quantile_only` is its second ablation."""

    share_measurement: float = 0.7
    quantile_slots: int = 7
    percent: float = 0.99
    scale_up: float = 1.3
    scale_down: float = 0.8
    threshold: float = 50.0
    max_reports: int = 7
    quantile_only: bool = False

    def __call__(self, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
        rho, workload = float(setting.rho), setting.workload
        shape = setting.objective.scales(workload, self.share_measurement * rho).variances

        def one(trial: int) -> tuple[Reals, Reals, Reals]:
            rng = np.random.default_rng([seed, NOISE_STREAM, trial])
            bounds = np.array(_Bounds(self, data, rho, rng).all())
            kept = data.capped([ceil(bound) * UNITS_PER_CONVERSION for bound in bounds])
            variances = shape * bounds**2
            drawn = rng.standard_normal(kept.shape) * np.sqrt(variances)[:, None]
            return (
                workload.answers(kept - data.truth),
                workload.answers(drawn),
                workload.variances(variances),
            )

        return Outcome.of_trials(map(one, range(trials)))


@dataclass
class _Watch:
    """CheckUpdate, with its state."""

    threshold: float
    epsilon: float
    reports_left: int
    rng: Generator
    noisy_threshold: float = field(init=False)
    reports: int = field(init=False)

    def __post_init__(self) -> None:
        self.reports = self.reports_left
        self._redraw()

    def _redraw(self) -> None:
        self.noisy_threshold = self.threshold + self.rng.laplace(0, 2 / self.epsilon)

    def passes(self, query: float) -> bool:
        if self.reports_left == 0:
            return False
        if query + self.rng.laplace(0, 4 * self.reports / self.epsilon) <= self.noisy_threshold:
            return False
        self.reports_left -= 1
        self._redraw()
        return True


@dataclass(frozen=True)
class _Bounds:
    parameters: PublishedAdsBPC
    data: Prepared
    rho: float
    rng: Generator

    def all(self) -> list[float]:
        chosen = self.parameters
        rest = (1 - chosen.share_measurement) * self.rho
        slots = self.data.slots
        first = slots if chosen.quantile_only else min(chosen.quantile_slots, slots)
        each = rest / first if chosen.quantile_only else rest / 2 / first
        bounds = [self._quantile(slot, sqrt(8 * each)) for slot in range(1, first + 1)]
        if first == slots:
            return bounds
        epsilon = _epsilon_of_pure(rest / 2) / 2
        up = _Watch(chosen.threshold, epsilon, chosen.max_reports, self.rng)
        down = _Watch(-chosen.threshold, epsilon, chosen.max_reports, self.rng)
        for slot in range(first + 1, slots + 1):
            usual = float(np.mean(bounds[-chosen.quantile_slots :]))
            above = self._above(slot, usual)
            raise_it = up.passes(above)
            lower_it = down.passes(above - self._above(slot, usual * chosen.scale_down))
            if raise_it != lower_it:
                usual *= chosen.scale_up if raise_it else chosen.scale_down
            bounds.append(usual)
        return bounds

    def _above(self, slot: int, bound: float) -> int:
        return self.data.users_above(slot, bound * UNITS_PER_CONVERSION)

    def _quantile(self, slot: int, epsilon: float) -> float:
        """The listing starts its loop at i = 1; where it leaves no interval, a bound of 1."""
        limit = float(self.data.dataset.quantile_limit)
        counts = np.minimum(self.data.user_totals(slot) / UNITS_PER_CONVERSION, limit)
        edges = np.r_[0.0, counts, limit]
        k = counts.size
        gaps = np.diff(edges)[1:]
        positive = gaps > 0
        if not positive.any():
            return 1.0
        scores = np.full(k, -np.inf)
        ranks = np.arange(1, k + 1)
        scores[positive] = (
            np.log(gaps[positive])
            - epsilon * np.abs(ranks[positive] - self.parameters.percent * k) / 2
        )
        chances = np.exp(scores - scores.max())
        place = 1 + int(self.rng.choice(k, p=chances / chances.sum()))
        return max(float(self.rng.uniform(edges[place], edges[place + 1])), 1e-3)


def _epsilon_of_pure(rho: float) -> float:
    """The epsilon with epsilon tanh(epsilon / 2) = rho."""
    low, high = 0.0, 1.0 + 2 * sqrt(2 * rho) + 2 * rho
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * tanh(middle / 2) <= rho else (low, middle)
    return low
