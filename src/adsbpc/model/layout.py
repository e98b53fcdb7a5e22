"""What is counted, as everything after attribution sees it: cells, and views that sum them.

Cells are the product of public lists, in their order: cell number (i, j) of lists with m and n
values is i n + j. A view keeps the first dimensions and sums over the rest, so cell number c is in
column c // stride of a view.

Where people are counted once, whoever is in two cells is in their sum once: no sum follows from the
cells. So every sum of every view is a cell of its own there, from everything to the finest. Other
layouts can be taken apart in the same way: then what is in a cell is in the cells of its sums too,
and each can be measured as finely as suits it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product
from operator import mul
from typing import TypeVar

Number = TypeVar("Number", int, float)

# Weights are whole numbers, because rows of a strategy are. Larger ones would leave multipliers,
# which are whole numbers too, less room to be precise.
LARGEST_WEIGHT = 8


@dataclass(frozen=True)
class Dimension:
    """A public list of values, of which the last one stands for everything else."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """Sums over all dimensions but the first `depth`: `columns` of them, each over `stride` cells.
    Its columns hold what they sum, times `weight`."""

    depth: int
    columns: int
    stride: int
    weight: int


def view_name(dimensions: Sequence[str]) -> str:
    """What people call the sums that keep these dimensions."""
    return " x ".join(dimensions) or "total"


@dataclass(frozen=True)
class Layout:
    """Public. `weights` has one entry for each number of dimensions that a view may keep, from none
    to all of them; a view with a weight of 0 has no columns of its own, and is the sum of others.
    `once` says that people are counted once, by sums that are cells of their own, and `apart` that
    the sums of views with a weight are such cells, too.
    """

    dimensions: tuple[Dimension, ...]
    weights: tuple[int, ...]
    once: bool = False
    apart: bool = False

    def __post_init__(self) -> None:
        rule = ""
        if len(self.weights) != len(self.dimensions) + 1:
            rule = f"{len(self.dimensions) + 1} of them"
        elif not all(type(each) is int and 0 <= each <= LARGEST_WEIGHT for each in self.weights):
            rule = f"whole numbers from 0 to {LARGEST_WEIGHT}"
        elif self.weights[-1] == 0:
            rule = "one above 0 for cells, the last"
        elif self.once and set(self.weights) != {1}:
            rule = "1 for every view, where people are counted once"
        elif self.once and self.apart:
            rule = "sums that are cells of their own for one reason"
        if rule:
            raise ValueError(f"weights = {self.weights}: expected {rule}")

    @classmethod
    def of_publishers(cls, names: Sequence[str]) -> Layout:
        """Publishers, each by itself."""
        return cls((Dimension("publisher", tuple(names)),), (0, 1))

    def __len__(self) -> int:
        if self.apart:
            return sum(view.columns for view in self.stood_for)
        return sum(self.sizes) if self.once else self.sizes[-1]

    def taken_apart(self) -> Layout:
        """The same with a cell for each sum of a view with a weight, from the coarsest on."""
        return replace(self, apart=True)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many sums there are when the first k dimensions are kept, for each k."""
        return tuple(accumulate((len(each.values) for each in self.dimensions), mul, initial=1))

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Those with columns of their own, the coarsest first."""
        if self.once or self.apart:
            # Nothing is summed: one view has every cell.
            return (View(len(self.dimensions), len(self), stride=1, weight=1),)
        return self.stood_for

    @cached_property
    def stood_for(self) -> tuple[View, ...]:
        """Views with a weight, whether they sum cells or have cells of their own."""
        return tuple(
            View(depth, size, self.sizes[-1] // size, weight)
            for depth, (size, weight) in enumerate(zip(self.sizes, self.weights, strict=True))
            if weight
        )

    @property
    def columns(self) -> int:
        """Of all views together."""
        return sum(view.columns for view in self.views)

    @property
    def unit(self) -> int:
        """The square of how far one unit in one cell moves the columns of a row."""
        return sum(view.weight**2 for view in self.views)

    def names(self, depth: int) -> tuple[tuple[str, ...], ...]:
        """The values that each sum keeps of the first `depth` dimensions, in order."""
        return tuple(product(*(each.values for each in self.dimensions[:depth])))

    def view_name(self, depth: int) -> str:
        return view_name(tuple(each.name for each in self.dimensions[:depth]))

    def summed(self, cells: Sequence[Number], depth: int) -> list[Number]:
        """Figures of cells, summed up for a view."""
        if self.once:
            first = sum(self.sizes[:depth])
            return list(cells[first : first + self.sizes[depth]])
        stride = len(self) // self.sizes[depth]
        return [sum(cells[first : first + stride]) for first in range(0, len(self), stride)]

    def in_columns(self, cells: Sequence[int]) -> list[int]:
        """What a row of all columns holds, view after view."""
        if self.once or self.apart:
            return list(cells)
        return [
            view.weight * total for view in self.views for total in self.summed(cells, view.depth)
        ]
