"""How far running totals are off together, so that the noise of any range of slots is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from adsbpc.model.cut import GRADUAL, Added, Trust, added_back

Matrix = Sequence[Sequence[float]]
# The places of two boundaries: from after the one to the other.
Range = tuple[int, int]


@dataclass(frozen=True)
class Stretch:
    """Rows from the one of this number on that measure alike. Of a row's variance, sums that keep k
    dimensions have `times[k]`: one number for all of them, or one for each. `together` is what all
    cells have, or their sum, whichever noisy counts of what was cut are held against."""

    first: int
    times: tuple[tuple[float, ...], ...]
    together: float


@dataclass(frozen=True)
class CutColumn:
    """Noisy running counts of what was cut, after as many slots as boundaries say, and the variance
    of each row."""

    counts: tuple[float, ...]
    variances: tuple[float, ...]


@dataclass(frozen=True)
class Cut:
    """What was cut: `parts[k]` has the part that is of each sum that keeps k dimensions, and
    `squared` the sum of the squares of the cells' parts, or 1 for their sum. If it `is_added`,
    values have it; if not, they may be missing all of it. `expected` is what may have been cut of
    a slot, by column and at last by none, if that is known; of few slots it may be as much as of
    `at_least` so many. `trust` says how much of counts is added."""

    columns: tuple[CutColumn, ...]
    parts: tuple[tuple[float, ...], ...]
    squared: float
    is_added: bool
    expected: tuple[float, ...] = ()
    at_least: int = 1
    trust: Trust = GRADUAL


@dataclass(frozen=True)
class RunningNoise:
    """Running totals after so many slots, 0 to the newest: `boundaries` says after how many. Row k
    has independent noise, of `variances[k]` in a column, and is in the totals of boundary i as many
    times as `weights[i][k]` says."""

    boundaries: tuple[int, ...]
    weights: Matrix
    variances: tuple[float, ...]
    stretches: tuple[Stretch, ...]
    cut: Cut | None = None

    def together(self, one: Range, other: Range) -> list[float]:
        """The covariance of two ranges, from the rows of each stretch."""
        products = self._products(one, other)
        ends = [each.first for each in self.stretches] + [len(products)]
        own = [product * each for product, each in zip(products, self.variances, strict=True)]
        return [sum(own[first:end]) for first, end in pairwise(ends)]

    def _products(self, one: Range, other: Range) -> list[float]:
        (a, b), (c, d) = one, other
        rows = zip(*(self.weights[place] for place in (a, b, c, d)), strict=True)
        return [(wb - wa) * (wd - wc) for wa, wb, wc, wd in rows]

    def of_sum(self, together: Sequence[float], depth: int, place: int) -> float:
        """What such a covariance is for one sum of a view."""
        return sum(
            part * (times[place] if len(times) > 1 else times[0])
            for part, times in zip(
                together, (each.times[depth] for each in self.stretches), strict=True
            )
        )

    def added(self, span: Range) -> Added:
        """What is added to a range because it was cut, or may be missing from it."""
        if self.cut is None:
            return Added()
        products, (a, b) = self._products(span, span), span
        counts = [
            (
                column.counts[b] - column.counts[a],
                sum(p * own for p, own in zip(products, column.variances, strict=True)),
            )
            for column in self.cut.columns
        ]
        if not self.cut.is_added:
            return Added(missing=sum(max(count + sqrt(own), 0.0) for count, own in counts))
        noise = sum(
            part * each.together
            for part, each in zip(self.together(span, span), self.stretches, strict=True)
        )
        slots = max(self.boundaries[b] - self.boundaries[a], self.cut.at_least)
        expected = [slots * each for each in self.cut.expected]
        return added_back(counts, self.cut.squared, noise, expected, self.cut.trust)

    def added_together(self, one: Range, other: Range) -> float:
        """The covariance of what is added to two ranges."""
        if self.cut is None:
            return 0.0
        products = self._products(one, other)
        slopes = zip(self.added(one).slopes, self.added(other).slopes, strict=True)
        return sum(
            mine * theirs * sum(p * own for p, own in zip(products, column.variances, strict=True))
            for (mine, theirs), column in zip(slopes, self.cut.columns, strict=False)
        )

    def part_of(self, depth: int, place: int) -> float:
        """Of what was cut, that of one sum of a view."""
        return 0.0 if self.cut is None else self.cut.parts[depth][place]
