"""Limits for PipelineDP: to how many publishers a user counts, and how much with each.

PipelineDP has to be told both before it looks, and its error depends on them more than on anything
else. Three ways to find them: in private from a noisy histogram, from a guess, or in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.stats import poisson

from adsbpc.lab.evaluation import Reals, UserTotals

# Four steps per octave, as the histograms of personal budgets have; small whole numbers are exact.
_STEPS = sorted({ceil(2 ** (step / 4) - 1e-9) for step in range(49)})
_LARGEST = _STEPS[-1]
# Bins side by side that are looked at together, and how many standard deviations more than the
# largest of so many draws of noise they need.
_BLOCKS = (1, 2, 4, 8)
_SAFETY = 1.0


@dataclass(frozen=True)
class Limits:
    """A user counts with at most `publishers` of them, drawn at random, and with at most `each`
    conversions per publisher: L0 and Linf."""

    publishers: int
    each: int

    @property
    def sensitivity(self) -> float:
        """L2, for one user who is added or removed."""
        return sqrt(self.publishers) * self.each


@dataclass(frozen=True)
class Kept:
    """What limits leave, by publisher: its mean, and its variance because publishers are drawn."""

    mean: Reals
    variance: Reals


def kept_of(rows: UserTotals, limits: Limits, publishers: int) -> Kept:
    capped = np.minimum(rows.conversions, limits.each)
    chance = np.minimum(1.0, limits.publishers / np.bincount(rows.user)[rows.user])

    def by_publisher(part: Reals) -> Reals:
        return np.bincount(rows.cell, part, publishers).astype(np.float64)

    return Kept(by_publisher(capped * chance), by_publisher(capped**2 * chance * (1 - chance)))


def guessed(heavy_user: int, publishers: int) -> Limits:
    """For a heavy user's conversions, spread evenly over as many publishers as they reach.

    >>> guessed(30, 1_000), guessed(30, 20)
    (Limits(publishers=30, each=1), Limits(publishers=20, each=2))
    """
    reached = min(heavy_user, publishers)
    return Limits(reached, ceil(heavy_user / reached))


def in_hindsight(rows: UserTotals, publishers: int, noise: float) -> Limits:
    """Those with the least error on this very data: NOT PRIVATE. `noise` is the standard deviation
    for a sensitivity of 1."""
    true = np.bincount(rows.cell, rows.conversions, publishers)

    def harm(limits: Limits) -> float:
        kept = kept_of(rows, limits, publishers)
        return float(((kept.mean - true) ** 2 + kept.variance).mean())

    return _least(publishers, noise, harm)


def chosen_privately(
    rows: UserTotals, publishers: int, noise: float, deviation: float, rng: Generator
) -> Limits:
    """Those with the least error by a noisy histogram, in which every user is in one bin: by how
    many publishers they have, and by how many conversions.

    Bins that noise alone could have filled are joined with their neighbours until they stand out,
    or count as empty. What users with several publishers have with each is taken to follow a
    Poisson distribution, and publishers to be of one size.
    """
    reached = [step for step in _STEPS if step < publishers] + [publishers]
    people = np.unique(rows.user, return_inverse=True)[1]
    spread = np.searchsorted(reached, np.bincount(people))
    total = np.searchsorted(_STEPS, np.minimum(np.bincount(people, rows.conversions), _LARGEST))
    counts = np.zeros((len(reached), len(_STEPS)))
    np.add.at(counts, (spread, total), 1)
    noisy = counts + deviation * rng.standard_normal(counts.shape)
    bins = [
        _Bin(users, reached[k], _moments(reached[k], _STEPS[t]))
        for users, k, t in _standing_out(noisy, deviation)
    ]
    if not bins:
        return Limits(1, 1)

    def harm(limits: Limits) -> float:
        cut = sum(each.cut(limits) for each in bins) / publishers
        return cut**2 + sum(each.variance(limits) for each in bins) / publishers

    return _least(publishers, noise, harm)


def _standing_out(noisy: Reals, deviation: float) -> Iterator[tuple[float, int, int]]:
    """Users of bins, and of ever larger blocks of bins that did not stand out, with the place of
    the block's middle. One false block far out would ruin the choice, so noise fills none."""
    left, open_bins = noisy.copy(), np.ones(noisy.shape, dtype=bool)
    for size in _BLOCKS:
        starts = [
            (k, t) for k in range(0, left.shape[0], size) for t in range(0, left.shape[1], size)
        ]
        doubt = sqrt(2 * log(max(len(starts), 2))) + _SAFETY
        for k, t in starts:
            block = np.s_[k : k + size, t : t + size]
            users, bins = float(left[block].sum()), int(open_bins[block].sum())
            if bins and users > doubt * deviation * sqrt(bins):
                height, width = left[block].shape
                yield users, k + (height - 1) // 2, t + (width - 1) // 2
                left[block], open_bins[block] = 0.0, False


def _least(publishers: int, noise: float, harm: Callable[[Limits], float]) -> Limits:
    """The limits whose noise and harm are least together; those whose noise alone is more than the
    best so far come last, and are not looked at."""
    best, least = Limits(1, 1), inf
    for limits in _candidates(publishers):
        variance = (noise * limits.sensitivity) ** 2
        if variance >= least:
            break
        error = variance + harm(limits)
        if error < least:
            best, least = limits, error
    return best


def _candidates(publishers: int) -> Iterator[Limits]:
    reached = [step for step in _STEPS if step < publishers] + [publishers]
    every = [Limits(k, each) for k in reached for each in _STEPS]
    yield from sorted(every, key=lambda limits: limits.sensitivity)


@dataclass(frozen=True)
class _Bin:
    """Users who are taken to be alike. `moments` are the mean, and the mean square, of what one has
    with a publisher, by how much of it is kept at most."""

    users: float
    publishers: int
    moments: tuple[Reals, Reals]

    def _chance(self, limits: Limits) -> float:
        return min(1.0, limits.publishers / self.publishers)

    def cut(self, limits: Limits) -> float:
        mean, _ = self.moments
        kept = self._chance(limits) * mean[limits.each]
        return self.users * self.publishers * float(mean[-1] - kept)

    def variance(self, limits: Limits) -> float:
        chance = self._chance(limits)
        square = float(self.moments[1][limits.each])
        return self.users * self.publishers * chance * (1 - chance) * square


def _moments(publishers: int, conversions: int) -> tuple[Reals, Reals]:
    """E min(X, c) and E min(X, c)^2 for every c up to the largest: sums over the tail of X."""
    steps = np.arange(_LARGEST)
    mean = conversions / publishers
    if publishers == 1 or mean <= 1:
        # Nothing is left to chance: all with one publisher, or one with each.
        above = np.clip(mean - steps, 0, 1)
    else:
        # Poisson, given that it is not 0.
        rate = float(brentq(lambda r: r - mean * (1 - exp(-r)), 1e-9, mean + 1))
        above = poisson.sf(steps, rate) / (1 - exp(-rate))
    return np.r_[0.0, np.cumsum(above)], np.r_[0.0, np.cumsum((2 * steps + 1) * above)]
