"""What is published beside cells: sums of them, and how cells follow from noisy sums.

Cells are the product of lists, the last list changing fastest. A view keeps the first lists, and
has a column for each sum over the others, times the view's weight. Views stand side by side, from
the sum of everything to the cells.

Where people are counted once, nothing adds up: books have a cell for each sum of every view, in the
same order, and each is a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

# A cell of the books is the person's number times one of these, plus the place of the cell.
_FEW_PLACES, _MANY_PLACES = 4096, 32768


@dataclass(frozen=True)
class Columns:
    """`lengths` are those of the lists; `weights` by how many of them a view keeps, 0 for one that
    has no columns. `once` if people are counted once."""

    lengths: tuple[int, ...]
    weights: tuple[int, ...]
    once: bool = False

    @property
    def cells(self) -> int:
        return sum(self.sizes) if self.once else prod(self.lengths)

    @property
    def sizes(self) -> list[int]:
        """How many sums there are, by the number of lists that are told apart."""
        return [prod(self.lengths[:depth]) for depth in range(len(self.lengths) + 1)]

    def coarser(self) -> list[tuple[int, int]]:
        """Where people are counted once: places of a sum and of the next coarser one that whoever
        is in it is in too.

        >>> Columns((2, 2), (1, 1, 1), once=True).coarser()
        [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)]
        """
        found, first = [], 0
        for size, length in zip(self.sizes, self.lengths, strict=False):
            below = first + size
            found += [(below + place, first + place // length) for place in range(size * length)]
            first = below
        return found

    @property
    def books_places(self) -> int:
        return _FEW_PLACES if self.cells < _FEW_PLACES else _MANY_PLACES

    @property
    def views(self) -> list[tuple[int, int, int]]:
        """(first column, cells in a column, weight) of every view that has columns."""
        if self.once:
            return [(0, 1, 1)]
        found, first = [], 0
        for depth, weight in enumerate(self.weights):
            if weight:
                found.append((first, prod(self.lengths[depth:]), weight))
                first += prod(self.lengths[:depth])
        return found

    @property
    def count(self) -> int:
        return sum(self.cells // summed for _, summed, _ in self.views)

    def of(self, cells: Sequence[int]) -> list[int]:
        """
        >>> Columns((2, 2), (1, 0, 3)).of([1, 2, 3, 4])
        [10, 3, 6, 9, 12]
        """
        return [
            weight * sum(cells[start : start + summed])
            for _, summed, weight in self.views
            for start in range(0, self.cells, summed)
        ]

    def squared(self, bound: int, substitution: bool) -> int:
        """How far a person with weights >= 0 that add up to a bound moves all columns, squared: all
        of it in one cell. To be replaced by one who has all of it in another cell moves two columns
        of every view that tells the two apart, and none of the others."""
        added = sum(weight**2 for *_, weight in self.views)
        apart = 2 * sum(weight**2 for _, summed, weight in self.views if summed < self.cells)
        return bound**2 * (max(added, apart) if substitution else added)

    def views_of(self, cells: Sequence[float]) -> list[list[float]]:
        """Sums of cells by the number of lists that are told apart."""
        if self.once:
            firsts = [sum(self.sizes[:depth]) for depth in range(len(self.sizes))]
            return [
                list(cells[first : first + size])
                for first, size in zip(firsts, self.sizes, strict=True)
            ]
        found = [list(cells)]
        for length in reversed(self.lengths):
            finer = found[0]
            found.insert(0, [sum(finer[k : k + length]) for k in range(0, len(finer), length)])
        return found

    def solve(self, values: Sequence[float]) -> list[float]:
        """The cells that fit noisy columns best. From the cells up, each sum is the mean of what
        its own column and its parts say, weighed by precision; on the way down, parts that do not
        add up to their sum share what is missing, because all of them are alike."""
        if self.once:
            return list(values)
        levels: list[list[float]] = []
        parts: list[float] = []
        variance, first = float("inf"), self.count
        for depth in range(len(self.lengths), -1, -1):
            size, weight = prod(self.lengths[:depth]), self.weights[depth]
            own = None
            if weight:
                first -= size
                own = [value / weight for value in values[first : first + size]]
            if depth == len(self.lengths):
                assert own is not None
                parts, variance = own, 1 / weight**2
            else:
                count = self.lengths[depth]
                parts = [sum(parts[k : k + count]) for k in range(0, len(parts), count)]
                variance *= count
                if own is not None:
                    precision = weight**2 + 1 / variance
                    parts = [
                        (weight**2 * mine + theirs / variance) / precision
                        for mine, theirs in zip(own, parts, strict=True)
                    ]
                    variance = 1 / precision
            levels.append(parts)
        found = levels.pop()
        for count, below in zip(self.lengths, reversed(levels), strict=True):
            missing = [
                (whole - sum(below[k * count : (k + 1) * count])) / count
                for k, whole in enumerate(found)
            ]
            found = [part + missing[k // count] for k, part in enumerate(below)]
        return found
