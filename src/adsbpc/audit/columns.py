"""What is published beside cells: sums of them, and how cells follow from noisy sums.

Cells are the product of lists, the last list changing fastest. A view keeps the first lists, and
has a column for each sum over the others, times the view's weight. Views stand side by side, from
the sum of everything to the cells.

Where people are counted once, nothing adds up: books have a cell for each sum of every view, in the
same order, and each is a column. Campaigns by rows have such books for other measures too, where
there are several views and not too many columns: what is in a cell is in the cells of its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, prod

# A cell of the books is the person's number times one of these, plus the place of the cell.
_FEW_PLACES, _MANY_PLACES = 4096, 32768


@dataclass(frozen=True)
class Columns:
    """`lengths` are those of the lists; `weights` by how many of them a view keeps, 0 for one that
    has no columns. `once` if people are counted once, `apart` if sums have cells of their own all
    the same."""

    lengths: tuple[int, ...]
    weights: tuple[int, ...]
    once: bool = False
    apart: bool = False

    @property
    def cells(self) -> int:
        """Of the books."""
        return sum(self.sizes[depth] for depth in self._depths)

    @property
    def _depths(self) -> list[int]:
        """How many lists the cells of the books tell apart."""
        if self.apart:
            return [depth for depth, weight in enumerate(self.weights) if weight]
        return list(range(0 if self.once else len(self.lengths), len(self.lengths) + 1))

    @property
    def unit(self) -> Fraction:
        """The square of how far one unit moves all columns, beside the one that it moves most."""
        if self.apart:
            return Fraction(sum(weight**2 for weight in self.weights), max(self.weights) ** 2)
        return Fraction(self.squared(1, substitution=False))

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

    def in_list(self, number: int) -> list[tuple[int, int]]:
        """Places of the books that tell a list apart, each with the place in that list.

        >>> Columns((2, 2), (1, 1, 1), once=True).in_list(0)
        [(1, 0), (2, 1), (3, 0), (4, 0), (5, 1), (6, 1)]
        >>> Columns((2, 2), (1, 0, 3)).in_list(0)
        [(0, 0), (1, 0), (2, 1), (3, 1)]
        >>> Columns((2, 2), (1, 0, 3)).in_list(1)
        [(0, 0), (1, 1), (2, 0), (3, 1)]
        >>> Columns((2, 2), (1, 0, 3), apart=True).in_list(0)
        [(1, 0), (2, 0), (3, 1), (4, 1)]
        """
        found, first = [], 0
        for depth in self._depths:
            size = self.sizes[depth]
            if depth > number:
                below = prod(self.lengths[number + 1 : depth])
                found += [
                    (first + place, place // below % self.lengths[number]) for place in range(size)
                ]
            first += size
        return found

    @property
    def books_places(self) -> int:
        return _FEW_PLACES if self.cells < _FEW_PLACES else _MANY_PLACES

    @property
    def views(self) -> list[tuple[int, int, int]]:
        """(first column, cells in a column, weight) of every view that has columns."""
        if self.once or self.apart:
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

    def solve(
        self, values: Sequence[float], precisions: Sequence[float] | None = None
    ) -> list[float]:
        """The cells that fit noisy columns best. From the cells up, each sum is the mean of what
        its own column and its parts say, weighed by precision; on the way down, parts that do not
        add up to their sum share what is missing, as they share the variance of what they say.
        `precisions` are those of values that say what sums are; without any, values have the
        weights of their views, and noise that is alike."""
        if self.once:
            return list(values)
        if precisions is None:
            weights = self._weights_of_values()
            values = [value / weight for value, weight in zip(values, weights, strict=True)]
            precisions = [weight**2 for weight in weights]
        levels = self._upwards(values, precisions)
        found = levels[0][0]
        for count, (below, spread) in zip(self.lengths, levels[1:], strict=True):
            missing = [
                (whole - sum(below[k * count : (k + 1) * count]))
                / sum(spread[k * count : (k + 1) * count])
                for k, whole in enumerate(found)
            ]
            found = [
                part + own * missing[k // count]
                for k, (part, own) in enumerate(zip(below, spread, strict=True))
            ]
        return found

    def coarsest_variance(self, precisions: Sequence[float]) -> float:
        """Of the sums of the coarsest view with columns, added up. Nothing that is coarser can tell
        more of them than their own columns and their parts do."""
        depth = next(depth for depth, weight in enumerate(self.weights) if weight)
        return sum(self._upwards([0.0] * len(precisions), precisions)[depth][1])

    def variances(self, precisions: Sequence[float]) -> list[list[float]]:
        """Of sums as they follow from everything, by the number of lists that are told apart. Parts
        that share what is missing know no more of their sum than is known of it.

        >>> Columns((2,), (1, 1)).variances([1.0, 1.0, 1.0])
        [[0.6666666666666666], [0.6666666666666666, 0.6666666666666666]]
        """
        (_, found), *below = self._upwards([0.0] * len(precisions), precisions)
        by_depth = [found]
        for count, (_, spread) in zip(self.lengths, below, strict=True):
            together = [
                sum(spread[k * count : (k + 1) * count]) for k in range(len(spread) // count)
            ]
            found = [
                own - (own / together[k // count]) ** 2 * (together[k // count] - found[k // count])
                for k, own in enumerate(spread)
            ]
            by_depth.append(found)
        return by_depth

    def _weights_of_values(self) -> list[int]:
        return [
            weight
            for size, weight in zip(self.sizes, self.weights, strict=True)
            if weight
            for _ in range(size)
        ]

    def _upwards(
        self, values: Sequence[float], precisions: Sequence[float]
    ) -> list[tuple[list[float], list[float]]]:
        """By lists that are told apart: what sums' own columns and all below say, with the variance
        of that."""
        levels: list[tuple[list[float], list[float]]] = []
        end = len(values)
        for depth in range(len(self.lengths), -1, -1):
            size = self.sizes[depth]
            parts, spread = [0.0] * size, [inf] * size
            if levels:
                count = self.lengths[depth]
                parts, spread = (
                    [sum(each[k : k + count]) for k in range(0, len(each), count)]
                    for each in levels[0]
                )
            if self.weights[depth]:
                own = zip(values[end - size : end], precisions[end - size : end], strict=True)
                end -= size
                both = [
                    (1 / theirs + mine, said, mine, of_parts, 1 / theirs)
                    for of_parts, theirs, (said, mine) in zip(parts, spread, own, strict=True)
                ]
                parts = [(said * p + other * q) / whole for whole, said, p, other, q in both]
                spread = [1 / whole for whole, *_ in both]
            levels.insert(0, (parts, spread))
        return levels
