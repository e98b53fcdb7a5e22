"""Contribution bounds per slot, in whole conversions: by quantile and sparse vector, or histogram.

A bound is a function of released values only: whatever looks at users goes through `privacy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import ClassVar, Protocol

import numpy as np

from adsbpc.contributions.interface import Contributions
from adsbpc.errors import PrivacyError
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import Adjacency, Charge, affordable
from adsbpc.model.release_spec import AdsBPCSection
from adsbpc.privacy import (
    Randomness,
    SparseVector,
    counts_are_monotone,
    exponential_cost,
    exponential_epsilon,
    histogram_squared,
    noisy_histogram,
    private_quantile,
    pure_cost,
    pure_epsilon,
    sparse_vector_scales,
    unbounded_quantile,
)

# Upper ends of the histogram's bins, in conversions; one more bin holds what is above.
HISTOGRAM_EDGES = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 1024)
# Users above the last edge are taken to contribute this much.
ABOVE_LAST = 2 * HISTOGRAM_EDGES[-1]
# At most this many histograms over a campaign, so that each keeps a fair share of the budget.
_CHECKPOINTS = 31
# Bins whose count could be noise alone do not count. How many standard deviations it takes grows
# with the bin: a false count far out would cost most.
_NOISE_LEVELS = np.minimum(1.5 + 0.5 * np.arange(len(HISTOGRAM_EDGES) + 1), 5.0)
# What a bound cuts weighs this much more than noise: it is known by rough counts at best.
_BIAS_WEIGHT = 4.0
# The histograms of this many checkpoints are averaged, newest included.
_MEMORY = 14


# No bound goes above this, in conversions per user and slot, whatever the data.
LARGEST_BOUND = 1_000_000


def units(conversions: int) -> int:
    return conversions * UNITS_PER_CONVERSION


def _edges(ends: range | tuple[int, ...]) -> list[int]:
    return [units(end) for end in ends]


@dataclass(frozen=True)
class Past:
    """What earlier slots left: their bounds and histograms (empty where a slot did not look), the
    sum of squared shares of cells in what was released, and `secret`, which is."""

    bounds: list[int]
    histograms: list[list[int]]
    concentration: float
    secret: dict[str, list[int]]


# A slot's bound, the histogram that it looked at, the secret state afterwards, what was charged.
Bound = tuple[int, list[int], dict[str, list[int]], list[Charge]]


class Tracker(Protocol):
    """Finds bounds. `budgets` are what it may spend; `fixed` is the bound if it is public."""

    @property
    def name(self) -> str: ...

    @property
    def budgets(self) -> tuple[Fraction, ...]: ...

    @property
    def fixed(self) -> int | None: ...

    def next_bound(
        self, slot: int, past: Past, contributions: Contributions, randomness: Randomness
    ) -> Bound: ...

    def secrets_after(
        self, slot: int, bounds: list[int], secret: dict[str, list[int]], bound: int
    ) -> list[dict[str, list[int]]]:
        """The secret states that a slot may have left if it was released with this bound."""


@dataclass(frozen=True)
class FixedBound:
    """A bound that the campaign file states: nothing is looked at or spent."""

    fixed: int
    name: ClassVar[str] = "fixed"
    budgets: ClassVar[tuple[Fraction, ...]] = ()

    def next_bound(
        self, _slot: int, _past: Past, _contributions: Contributions, _randomness: Randomness
    ) -> Bound:
        return self.fixed, [], {}, []

    def secrets_after(
        self, _slot: int, _bounds: list[int], secret: dict[str, list[int]], _bound: int
    ) -> list[dict[str, list[int]]]:
        return [secret]


@dataclass(frozen=True)
class QuantileAndSparseVector:
    """The paper's tracker: a private quantile on the first slots, then the mean of the last
    bounds, raised or lowered when a sparse vector reports (Algorithms 1 to 3, corrected)."""

    section: AdsBPCSection
    adjacency: Adjacency
    rho_first: Fraction
    rho_track: Fraction
    slots: int
    name: ClassVar[str] = "svt"
    fixed: ClassVar[None] = None

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        return self.rho_first, self.rho_track

    @property
    def _first_slots(self) -> int:
        return min(self.section.quantile_slots, self.slots)

    @property
    def _share(self) -> Fraction:
        return Fraction(str(self.section.quantile))

    def first_bound(
        self, slot: int, contributions: Contributions, randomness: Randomness
    ) -> tuple[int, Charge]:
        rho = affordable(self.rho_first / self._first_slots)
        limit = self.section.quantile_limit
        if limit == "none":
            epsilon = pure_epsilon(rho)
            bound = unbounded_quantile(
                lambda r: int(contributions.histogram(slot, [units(r)])[0]),
                self._share, epsilon, randomness,
            )  # fmt: skip
            return bound, Charge.for_cost("quantile", pure_cost(epsilon))
        epsilon = exponential_epsilon(rho)
        counts = contributions.histogram(slot, _edges(range(1, limit + 1)))
        counts[-2] += counts[-1]
        bound = private_quantile(counts[:-1], self._share, epsilon, randomness)
        return bound, Charge.for_cost("quantile", exponential_cost(epsilon))

    def _start(self, randomness: Randomness) -> SparseVector:
        return SparseVector.start(
            pure_epsilon(affordable(self.rho_track / 2)),
            self.section.max_reports,
            randomness,
            monotone=counts_are_monotone(self.adjacency),
        )

    def next_bound(
        self, slot: int, past: Past, contributions: Contributions, randomness: Randomness
    ) -> Bound:
        if slot <= self._first_slots:
            bound, charge = self.first_bound(slot, contributions, randomness)
            return bound, [], past.secret, [charge]
        charges = []
        if slot == self._first_slots + 1:
            # Both thresholds are drawn once, before the first query, and paid for then.
            up, down = self._start(randomness), self._start(randomness)
            spent = pure_cost(up.scales.epsilon) + pure_cost(down.scales.epsilon)
            charges.append(Charge.for_cost("sparse vector", spent))
        else:
            up, down = self._resume(slot, past.secret)
        lower, usual, _ = choices = self._choices(past.bounds)
        above = contributions.users_above(slot, units(usual))
        raise_it = up.passes(above, self.section.threshold, randomness)
        lower_it = False
        if lower < usual:
            # Lowering cuts everybody above the lower bound. The paper counts only those between
            # the two bounds, and so lowers a bound that nearly everybody passes.
            affected = contributions.users_above(slot, units(lower))
            lower_it = down.passes(-affected, -self.section.threshold, randomness)
        return _chosen(choices, raise_it, lower_it), [], _saved(up, down), charges

    def secrets_after(
        self, slot: int, bounds: list[int], secret: dict[str, list[int]], bound: int
    ) -> list[dict[str, list[int]]]:
        """One, or two where both sparse vectors may have reported or neither."""
        if slot <= self._first_slots:
            return [secret]
        if slot == self._first_slots + 1:
            raise PrivacyError(
                f"slot {slot}: drew the secret thresholds of the sparse vectors, which no release "
                "tells. The slot counts as spent, and the campaign cannot go on from it: restore a "
                "backup that has it"
            )
        lower, usual, _ = choices = self._choices(bounds)
        found = []
        for raise_it, lower_it in ((False, False), (True, False), (False, True), (True, True)):
            up, down = self._resume(slot, secret)
            possible = (up.reports_left or not raise_it) and (
                (down.reports_left and lower < usual) or not lower_it
            )
            if possible and _chosen(choices, raise_it, lower_it) == bound:
                up.reports_left -= raise_it
                down.reports_left -= lower_it
                found.append(_saved(up, down))
        return found

    def _choices(self, bounds: list[int]) -> tuple[int, int, int]:
        """The lower, the usual and the higher bound that follow those of earlier slots."""
        recent = bounds[-self.section.quantile_slots :]
        usual = max(1, floor(Fraction(sum(recent), len(recent)) + Fraction(1, 2)))
        lower = max(1, floor(usual * Fraction(str(self.section.scale_down))))
        return lower, usual, min(ceil(usual * Fraction(str(self.section.scale_up))), LARGEST_BOUND)

    def _resume(self, slot: int, secret: dict[str, list[int]]) -> tuple[SparseVector, SparseVector]:
        if secret.keys() != {"up", "down"}:
            raise PrivacyError(
                f"slot {slot}: the secret state of the sparse vectors is lost, and drawing it anew "
                "would spend more than was promised. Restore the saved state"
            )
        scales = sparse_vector_scales(
            pure_epsilon(affordable(self.rho_track / 2)),
            self.section.max_reports,
            monotone=counts_are_monotone(self.adjacency),
        )
        return SparseVector(scales, *secret["up"]), SparseVector(scales, *secret["down"])


def _chosen(choices: tuple[int, int, int], raise_it: bool, lower_it: bool) -> int:
    lower, usual, higher = choices
    return usual if raise_it == lower_it else higher if raise_it else lower


def _saved(up: SparseVector, down: SparseVector) -> dict[str, list[int]]:
    return {
        "up": [up.reports_left, up.threshold_noise],
        "down": [down.reports_left, down.threshold_noise],
    }


@dataclass(frozen=True)
class HistogramTracker:
    """The better tracker: noisy histograms of users by contribution, and a bound that balances
    what it would cut against the noise it would need. The choice is post-processing.

    `noise_variance` is the mean variance of an answer under a bound of 1, `slots_per_answer` how
    many slots an answer sums over (root mean square).
    """

    adjacency: Adjacency
    rho: Fraction
    slots: int
    cells: int
    noise_variance: float
    slots_per_answer: float
    name: ClassVar[str] = "histogram"
    fixed: ClassVar[None] = None

    @property
    def budgets(self) -> tuple[Fraction, ...]:
        return (self.rho,)

    def is_checkpoint(self, slot: int) -> bool:
        return (slot - 1) % self.slots_each == 0

    @property
    def slots_each(self) -> int:
        """How many slots go by one histogram."""
        return -(-self.slots // _CHECKPOINTS)

    @property
    def deviation(self) -> float:
        """Of a bin's noise."""
        return sqrt(histogram_squared(self.adjacency) / (2 * float(self.rho_each)))

    @property
    def rho_each(self) -> Fraction:
        return affordable(self.rho / (1 + (self.slots - 1) // self.slots_each))

    def next_bound(
        self, slot: int, past: Past, contributions: Contributions, randomness: Randomness
    ) -> Bound:
        histogram: list[int] = []
        charges = []
        if self.is_checkpoint(slot):
            histogram, charge = self.look(slot, contributions, randomness)
            charges.append(charge)
        seen = [counts for counts in (*past.histograms, histogram) if counts]
        return self.choose(seen, past.concentration), histogram, {}, charges

    def secrets_after(
        self, _slot: int, _bounds: list[int], secret: dict[str, list[int]], _bound: int
    ) -> list[dict[str, list[int]]]:
        return [secret]

    def look(
        self, slot: int, contributions: Contributions, randomness: Randomness
    ) -> tuple[list[int], Charge]:
        counts = contributions.histogram(slot, _edges(HISTOGRAM_EDGES))
        noisy = noisy_histogram(counts, self.rho_each, self.adjacency, randomness)
        return [int(value) for value in noisy.values], Charge.for_cost("histogram", noisy.cost)

    def choose(self, histograms: list[list[int]], concentration: float) -> int:
        """The bound with the least expected square error per cell, bias counted more.

        `concentration` is the sum of squared shares of cells, as released so far: what a
        bound cuts hurts most where it falls on few cells.
        """
        recent = np.array(histograms[-_MEMORY:], dtype=np.float64)
        noise = self.deviation / sqrt(len(recent))
        counts = recent.mean(axis=0)
        counts[counts < _NOISE_LEVELS * noise] = 0
        ends = np.array([*HISTOGRAM_EDGES, ABOVE_LAST], dtype=np.float64)

        def expected_error(bound: int) -> float:
            cut = float(counts @ np.maximum(ends - bound, 0))
            bias = concentration * (self.slots_per_answer * cut) ** 2 / self.cells
            return _BIAS_WEIGHT * bias + bound**2 * self.noise_variance

        return min(HISTOGRAM_EDGES, key=expected_error)
