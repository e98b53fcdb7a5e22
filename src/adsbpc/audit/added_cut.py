"""What is added to published sums because it was cut, from the noisy columns that count it.

Of a sum over slots each of these columns has a noisy count c, with a variance v that follows from
the strategy and the multipliers. It is trusted in the part 1 - (2 log(1 + 10 h) v / c^2)^2, if that
is above 0 and c is too, where h says how much noise the count would bring into the sums of the
coarsest view that has columns, or into cells: v times the sum of the squares of their parts, by the
variance that all of them have without it. Campaigns of early versions have 3 for 10 and no square,
as AdsBPC has. A cell's part is in proportion to the root of what was
released of it so far. Where sums are cells of their own, each view has its cut, and all are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import log1p, sqrt

from adsbpc.audit.columns import Columns
from adsbpc.audit.promised_plan import CONVERSION, PromisedPlan
from adsbpc.audit.stretches import ReleasedRow

# What was released of a cell counts as no less than this.
_LEAST = 0.001


def parts_of(totals: Sequence[float]) -> list[float]:
    """The part of what was cut that is of each cell.

    >>> parts_of([4.0, 1.0])
    [0.6666666666666666, 0.3333333333333333]
    """
    roots = [sqrt(max(total, _LEAST)) for total in totals]
    return [root / sum(roots) for root in roots]


def precisions_of(row: ReleasedRow, columns: Columns) -> list[float]:
    """Of what the columns of a row say that sums are."""
    if len(columns.views) == 1:
        weight = 1 if columns.apart else columns.views[0][2]
        return [float(weight * each) ** 2 for each in row.multipliers[: columns.cells]]
    alike = row.multipliers[0]
    return [
        float(weight * alike) ** 2
        for _, summed, weight in columns.views
        for _ in range(columns.cells // summed)
    ]


def solved(rows: Sequence[Sequence[int]], values: Sequence[float]) -> list[float]:
    """x with B x = values, slot after slot.

    >>> solved([[2], [1, 3]], [10.0, 8.0])
    [5.0, 1.0]
    """
    found: list[float] = []
    for row, value in zip(rows, values, strict=False):
        earlier = sum(entry * each for entry, each in zip(row, found, strict=False))
        found.append((value - earlier) / row[-1])
    return found


def trusted(
    count: float, variance: float, squared_parts: float, of_cells: float, is_decided: bool = False
) -> float:
    """What is added of a noisy count, where cells have the variance `of_cells` together."""
    harm = variance * squared_parts / of_cells if of_cells > 0 else 0.0
    doubt = 2 * log1p((10 if is_decided else 3) * harm) * variance
    if count <= 0 or count**2 <= doubt:
        return 0.0
    return count * (1 - (doubt / count**2) ** (2 if is_decided else 1))


@dataclass(frozen=True)
class AddedCut:
    """`values` are the noisy ones by row and column, what was cut last."""

    plan: PromisedPlan
    released: Sequence[ReleasedRow]
    values: Sequence[Sequence[int]]
    scale: float

    @property
    def _unit(self) -> float:
        """A grid unit in the metric."""
        return self.plan.worth / CONVERSION

    @cached_property
    def _counts(self) -> list[list[float]]:
        """By column of what was cut: noisy running counts, from that of no slot on."""
        found = []
        for place in range(-self.plan.cuts, 0):
            rows = zip(self.values, self.released, strict=True)
            counted = [own[place] / (self._times * row.multipliers[place]) for own, row in rows]
            by_slot = solved(self.plan.rows, counted)
            found.append([0.0, *accumulate(each * self._unit for each in by_slot)])
        return found

    @cached_property
    def _running(self) -> list[list[float]]:
        """How often the running total after so many slots, none at first, has each row: sums of
        rows of the inverse of B."""
        columns, rows = [], self.plan.rows[: len(self.released)]
        for start in range(len(rows)):
            only = [1.0] + [0.0] * (len(rows) - start - 1)
            later = solved([row[start:] for row in rows[start:]], only)
            columns.append([0.0] * (start + 1) + list(accumulate(later)))
        return [list(each) for each in zip(*columns, strict=True)]

    @property
    def _times(self) -> int:
        """How often what was cut is counted."""
        columns = self.plan.columns
        return sum(weight > 0 for weight in columns.weights) if columns.apart else 1

    @cached_property
    def _of_sums(self) -> list[float]:
        """By row, the variance of all sums together, for noise of variance 1 in every column."""
        columns = self.plan.columns
        if columns.once:
            return [
                sum(1 / each**2 for each in row.multipliers[: columns.cells])
                for row in self.released
            ]
        return [columns.coarsest_variance(precisions_of(row, columns)) for row in self.released]

    def parts(self, _number: int, totals: Sequence[float]) -> list[float]:
        """The part of what was cut that is of each cell, after so many slots."""
        return parts_of(totals)

    def total(self, _number: int, first: int, last: int, squared_parts: float) -> float:
        """Added to the sum over slots of all cells together."""
        late, early = self._running[last], self._running[first - 1]
        squares = [
            ((b - a) * self.scale * self._unit) ** 2 for a, b in zip(early, late, strict=True)
        ]
        of_sums = sum(own * each for own, each in zip(squares, self._of_sums, strict=True))
        added = 0.0
        for place, counts in zip(range(-self.plan.cuts, 0), self._counts, strict=True):
            count = counts[last] - counts[first - 1]
            rows = zip(squares, self.released, strict=True)
            variance = sum(own / (self._times * row.multipliers[place]) ** 2 for own, row in rows)
            added += trusted(count, variance, squared_parts, of_sums, self.plan.decides_cut)
        return added
