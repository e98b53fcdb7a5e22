"""What an experiment asks, what a mechanism answers, and how far off that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from math import sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions import ArrayContributions, CellIndex
from adsbpc.contributions.interface import Integers
from adsbpc.lab.datasets import Dataset
from adsbpc.model import UNITS_PER_CONVERSION, Adjacency, Layout
from adsbpc.workloads import (
    MaxVariance,
    Objective,
    RangeSums,
    WeightedSquaredError,
    per_slot,
    prefix_sums,
    sliding_windows,
)

Reals = NDArray[np.float64]

# The paper's scenario 1: the last day counts seven times.
LAST_WEIGHT = 7.0
# Whoever asks for the end above all: more would gain little there.
END_WEIGHT = 1000.0
WINDOW = 7
# Noise must not repeat the draws that made the data from the same seed.
NOISE_STREAM = 7
QUERIES = ("prefix", "end", "sliding", "slot")


@dataclass(frozen=True)
class Setting:
    """Budget, adjacency and queries: the same for every mechanism of a comparison."""

    rho: Fraction
    adjacency: Adjacency
    slots: int
    queries: str = "prefix"

    @cached_property
    def workload(self) -> RangeSums:
        if self.queries == "sliding":
            return sliding_windows(self.slots, min(WINDOW, self.slots))
        return per_slot(self.slots) if self.queries == "slot" else prefix_sums(self.slots)

    @property
    def objective(self) -> Objective:
        """Scenario 1 of the paper weighs squared errors, scenario 2 looks at the worst query."""
        if self.queries == "sliding":
            return MaxVariance()
        return WeightedSquaredError(tuple(self.weights))

    @cached_property
    def weights(self) -> Reals:
        weights = np.ones(self.slots)
        if self.queries in ("prefix", "end"):
            weights[-1] = END_WEIGHT if self.queries == "end" else LAST_WEIGHT
        return weights


@dataclass(frozen=True)
class UserTotals:
    """Conversions of users with cells, one row for each pair; users are numbered."""

    user: Integers
    cell: Integers
    conversions: Reals


class Prepared:
    """A dataset with the answers that mechanisms ask for again and again remembered."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._contributions: ArrayContributions = dataset.contributions
        self.slots, self.layout = dataset.slots, self._contributions.layout
        self.totals = cache(self._contributions.totals)
        self.totals_lifetime = cache(self._contributions.totals_lifetime)
        self._histogram = cache(self._contributions.histogram)
        self.user_totals = cache(self._user_totals)
        self.cells = cache(self._cells_of)
        self.with_weights = cache(self._with_weights)

    def _with_weights(self, total: int, others: int) -> Prepared:
        """The same people, where sums of every view have columns of their own."""
        layout = Layout(self.layout.dimensions, (total, *[others] * len(self.layout.dimensions)))
        contributions = copy(self._contributions)
        contributions.layout = layout
        return Prepared(replace(self.dataset, contributions=contributions))

    def summed(self, errors: Reals, depth: int) -> Reals:
        """Of cells along the last axis, for the sums that keep the first dimensions."""
        sums = self.layout.sizes[depth]
        return np.asarray(errors.reshape(*errors.shape[:-1], sums, -1).sum(axis=-1))

    def histogram(self, slot: int, edges: Sequence[int]) -> Integers:
        return self._histogram(slot, tuple(edges)).copy()

    def _user_totals(self, slot: int) -> Integers:
        """What each user of a slot contributes, in ascending order."""
        return np.sort(self._contributions.user_totals(slot))

    def users_above(self, slot: int, bound: float) -> int:
        """Also for bounds that are no whole number, which only the paper's own listings have."""
        totals = self.user_totals(slot)
        return int(totals.size - np.searchsorted(totals, bound, side="right"))

    def users_above_lifetime(self, slot: int, bound: int) -> int:
        return self._contributions.users_above_lifetime(slot, bound)

    def capped(self, bounds: list[int]) -> Reals:
        """Totals in conversions, a row a slot, each capped at its bound in grid units."""
        rows = [self.totals(slot, bound) for slot, bound in enumerate(bounds, start=1)]
        return np.array(rows, dtype=np.float64) / UNITS_PER_CONVERSION

    def user_totals_within(self, first: int, last: int) -> UserTotals:
        """What every user has with every cell, over all slots from the first to the last."""
        slot, user, cell, weight = self._contributions.cells()
        inside = (slot >= first) & (slot <= last)
        pairs = user[inside] * len(self.layout) + cell[inside]
        pair, place = np.unique(pairs, return_inverse=True)
        conversions = np.bincount(place, weight[inside]) / UNITS_PER_CONVERSION
        return UserTotals(pair // len(self.layout), pair % len(self.layout), conversions)

    def _cells_of(self, layout: Layout) -> CellIndex:
        """For personal budgets, whose accounts go through the slots anew in every trial."""
        return CellIndex.of(self._contributions, layout)

    @cached_property
    def truth(self) -> Reals:
        rows = [self.totals(slot) for slot in range(1, self.slots + 1)]
        return np.array(rows, dtype=np.float64) / UNITS_PER_CONVERSION


@dataclass(frozen=True)
class Outcome:
    """Errors of answers, in conversions, split into what capping cut and what noise added.

    `bias` and `noise` have axes (trial, query, publisher); a bias that is the same in every trial
    has one. `variances` of the noise have axes (trial, query): all publishers get the same. A
    mechanism that releases once, at the end, has one query, the last; others have all.
    """

    bias: Reals
    noise: Reals
    variances: Reals

    def answers_all(self, setting: Setting) -> bool:
        return len(self.noise[0]) == len(setting.workload.names)

    @classmethod
    def of_trials(cls, found: Iterable[tuple[Reals, Reals, Reals]]) -> Outcome:
        return cls(*map(np.array, zip(*found, strict=True)))


class LabMechanism(Protocol):
    def __call__(self, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome: ...


@dataclass(frozen=True)
class ViewScores:
    """Errors of the sums of a view; None where only the last query was answered."""

    last_rmse: float
    wrmse: float | None = None
    wrmse_stderr: float | None = None
    bias: float | None = None
    noise: float | None = None


@dataclass(frozen=True)
class LastScores:
    """Errors of the last query, which every mechanism answers.

    `last_rmse` is a root mean square over trials and publishers, `last_rmse_closed_form` what it
    would be with endless trials of the noise. `coarser` has the same of sums, by the name of their
    view: of all publishers together, and where a data set tells more apart, of publishers.
    """

    last_rmse: float
    last_rmse_closed_form: float
    relative_error_large: float
    relative_error_medium: float
    relative_error_small: float
    coarser: dict[str, ViewScores]


@dataclass(frozen=True)
class Scores(LastScores):
    """Errors of one mechanism on one dataset; a standard error needs several trials.

    `wrmse` is the paper's sqrt(sum_j gamma_j^2 err_j^2) / n, as a root mean square over trials and
    publishers; `wrmse_mean_of_roots` averages the roots instead, and lies some 10% lower.
    `wrmse_closed_form` is what it would be with endless trials of the noise.
    """

    wrmse: float
    wrmse_stderr: float | None
    wrmse_closed_form: float
    wrmse_mean_of_roots: float
    bias: float
    noise: float
    rmse: float
    max_variance: float


def scores_of(outcome: Outcome, data: Prepared, setting: Setting) -> Scores:
    """For outcomes that answer all queries."""
    n, squares = setting.slots, setting.weights**2
    errors = outcome.bias + outcome.noise

    def weighted(part: Reals) -> Reals:
        return np.asarray(np.einsum("q,tqp->tp", squares, part**2))

    def size(part: Reals) -> float:
        return float(sqrt(weighted(part).mean()) / n)

    def of_view(depth: int, last: ViewScores) -> ViewScores:
        parts = (data.summed(each, depth) for each in (errors, outcome.bias, outcome.noise))
        whole, bias, noise = parts
        root = _root_mean_square(weighted(whole), n)
        return ViewScores(last.last_rmse, *root, size(bias), size(noise))

    last = last_scores_of(outcome, data, setting)
    finer_first = range(len(last.coarser) - 1, -1, -1)
    coarser = {
        name: of_view(depth, own)
        for depth, (name, own) in zip(finer_first, last.coarser.items(), strict=True)
    }
    wrmse, stderr = _root_mean_square(weighted(errors), n)
    variance = (outcome.variances @ squares).mean() / n**2
    return Scores(
        **{**vars(last), "coarser": coarser},
        wrmse=wrmse,
        wrmse_stderr=stderr,
        wrmse_closed_form=float(np.sqrt(size(outcome.bias) ** 2 + variance)),
        wrmse_mean_of_roots=float(np.sqrt(weighted(errors)).mean() / n),
        bias=size(outcome.bias),
        noise=size(outcome.noise),
        rmse=float(np.sqrt((errors**2).mean())),
        max_variance=float(outcome.variances.max(axis=1).mean()),
    )


def _root_mean_square(weighted: Reals, n: int) -> tuple[float, float | None]:
    """With its standard error: that of the mean square over twice the root."""
    by_trial = weighted.mean(axis=1)
    root = sqrt(by_trial.mean()) / n
    if len(by_trial) < 2 or not root:
        return root, None
    return root, float(by_trial.std(ddof=1) / sqrt(len(by_trial)) / (2 * root * n**2))


def last_scores_of(outcome: Outcome, data: Prepared, setting: Setting) -> LastScores:
    errors = outcome.bias + outcome.noise
    bias, variances = outcome.bias[:, -1], outcome.variances[:, -1]
    large, medium, small = _relative_errors(errors, data, setting)
    return LastScores(
        float(np.sqrt((errors[:, -1] ** 2).mean())),
        float(np.sqrt((bias**2).mean() + variances.mean())),
        large,
        medium,
        small,
        {
            data.layout.view_name(depth): ViewScores(
                float(np.sqrt((data.summed(errors, depth)[:, -1] ** 2).mean()))
            )
            for depth in range(len(data.layout.dimensions) - 1, -1, -1)
        },
    )


def _relative_errors(errors: Reals, data: Prepared, setting: Setting) -> list[float]:
    """Root mean square error of the last query over the true value, for three sizes of publisher.

    Publishers without anything to measure have no relative error.
    """
    true = setting.workload.answers(data.truth)[-1]
    order = np.argsort(-true, kind="stable")
    order = order[true[order] > 0]
    thirds = np.array_split(order, 3)
    return [
        float(np.sqrt(((errors[:, -1, part] / true[part]) ** 2).mean())) if part.size else 0.0
        for part in thirds
    ]
