"""PipelineDP, which releases once, at the end: the library itself, with limits of its own.

Its noise comes from a source that cannot be seeded, so two runs differ, by what so many trials
leave to chance.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from adsbpc.errors import SpecError
from adsbpc.lab.baselines.pipelinedp_limits import (
    Limits,
    chosen_privately,
    guessed,
    in_hindsight,
    kept_of,
)
from adsbpc.lab.evaluation import NOISE_STREAM, Outcome, Prepared, Reals, Setting, UserTotals
from adsbpc.privacy import epsilon_of, epsilon_of_gaussian, histogram_squared, totals_squared

DELTA = 1e-6


@dataclass(frozen=True)
class PipelineDP:
    """The sum of conversions per publisher over the last query's slots, released once: privacy id
    is the user, partitions are the public publishers, noise is Gaussian.

    Formal guarantee: (epsilon, delta)-DP for one user, with the epsilon that our rho means at
    delta = 1e-6. What the exact analysis of Gaussian noise buys for that epsilon is more than rho,
    and PipelineDP is given all of it.

    Its limits L0 and Linf are found as `limits` says. `private`: by a noisy histogram, for
    `histogram_share` of the budget, the most that personal budgets spend on theirs; Gaussian noise
    composes exactly, so nothing is lost by the split. `guess`: from `heavy_user` alone, with the
    whole budget for the release. `hindsight`: NOT PRIVATE, the best ones for the data.
    """

    limits: Literal["private", "guess", "hindsight"] = "private"
    heavy_user: int = 30
    histogram_share: float = 0.05

    def __call__(self, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
        span = setting.workload.span(len(setting.workload.names) - 1)
        assert span is not None
        rows, publishers = data.user_totals_within(*span), len(data.layout)
        whole = gaussian_rho(epsilon_of(setting.rho, DELTA), DELTA)
        looking = whole * self.histogram_share if self.limits == "private" else 0.0
        # Of a release whose sensitivity is 1 for one user who is added or removed.
        released = (whole - looking) / totals_squared(setting.adjacency, data.layout, 1)
        epsilon = epsilon_of_gaussian(Fraction(released), DELTA)
        noise = 1 / sqrt(2 * released)
        deviation = sqrt(histogram_squared(setting.adjacency) / (2 * looking)) if looking else 0.0
        true = np.bincount(rows.cell, rows.conversions, publishers)

        known = self._known(rows, publishers, noise)

        def one(rng: Generator) -> tuple[Reals, Reals, Reals]:
            limits = known or chosen_privately(rows, publishers, noise, deviation, rng)
            kept = kept_of(rows, limits, publishers)
            answers, scale = release_once(rows, publishers, limits, epsilon)
            variance = scale**2 + kept.variance.mean()
            return (kept.mean - true)[None], (answers - kept.mean)[None], np.array([variance])

        rngs = [np.random.default_rng([seed, NOISE_STREAM, trial]) for trial in range(trials)]
        return Outcome.of_trials(map(one, rngs))

    def _known(self, rows: UserTotals, publishers: int, noise: float) -> Limits | None:
        """Limits that do not depend on noise are the same in every trial."""
        if self.limits == "guess":
            return guessed(self.heavy_user, publishers)
        return in_hindsight(rows, publishers, noise) if self.limits == "hindsight" else None


def gaussian_rho(epsilon: float, delta: float) -> float:
    """The largest rho of Gaussian noise that is (epsilon, delta)-DP by its exact analysis.

    >>> round(gaussian_rho(epsilon_of(Fraction(1), 1e-6), 1e-6), 3)
    1.115
    """
    low, high = 0.0, 1.0
    while epsilon_of_gaussian(Fraction(high), delta) < epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        below = epsilon_of_gaussian(Fraction(middle), delta) < epsilon
        low, high = (middle, high) if below else (low, middle)
    return low


def release_once(
    rows: UserTotals, publishers: int, limits: Limits, epsilon: float
) -> tuple[Reals, float]:
    """PipelineDP's sums by publisher, and the standard deviation that it tells of their noise."""
    library = _library()
    accountant = library.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=DELTA)
    engine = library.DPEngine(accountant, library.LocalBackend())
    asked = library.AggregateParams(
        metrics=[library.Metrics.SUM],
        noise_kind=library.NoiseKind.GAUSSIAN,
        max_partitions_contributed=limits.publishers,
        # It wants a number here, and does not use it: sums are capped, not rows.
        max_contributions_per_partition=1,
        min_sum_per_partition=0.0,
        max_sum_per_partition=float(limits.each),
        output_noise_stddev=True,
    )
    columns = library.DataExtractors(
        privacy_id_extractor=itemgetter(0),
        partition_extractor=itemgetter(1),
        value_extractor=itemgetter(2),
    )
    listed = list(
        zip(rows.user.tolist(), rows.cell.tolist(), rows.conversions.tolist(), strict=True)
    )
    sums = engine.aggregate(listed, asked, columns, public_partitions=list(range(publishers)))
    accountant.compute_budgets()
    found = dict(sums)
    answers = np.array([found[cell].sum for cell in range(publishers)])
    return answers, float(found[0].sum_noise_stddev)


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            # Python warns of its docstrings when it compiles them for the first time.
            warnings.simplefilter("ignore")
            import pipeline_dp
    except ImportError as error:
        raise SpecError(
            f"PipelineDP cannot be imported ({error})",
            "mechanism pipelinedp",
            to_do="Install it with `make setup`, or with "
            "`pip install --require-hashes -r requirements/pipelinedp.txt`",
        ) from None
    return pipeline_dp
