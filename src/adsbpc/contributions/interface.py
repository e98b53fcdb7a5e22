"""What mechanisms may ask of contributions, whatever holds them.

A contribution is an integer weight on the grid (720,720 units are one conversion) of one user, at
one slot, for one cell. Rows of a user in a slot are ordered by the time of the conversion.

Every answer is an aggregate without noise: it is private data until a mechanism has noised it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adsbpc.errors import ContributionError
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout
from adsbpc.privacy.decays import Crossing
from adsbpc.privacy.filter import Gram, Growth, Renewal, Terms

Integers = NDArray[np.int64]
# G_t1 .. G_tt, or what stands for them in a long campaign.
Costs = Sequence[int] | Crossing

# Some six million conversions; squares of what a bound allows stay within 128 bits.
LARGEST_BOUND = 2**42

# Larger needs count as this one, some ten million conversions in one cell on one slot.
LARGEST_NEED = 2**106 - 1
# And where cells have sizes, some 1,500 conversions in one cell on one slot as so many.
LARGEST_SIZED = 2**30
# In a long campaign needs have cells up to that, and sums of a slot up to this.
_LARGEST_NEEDED_SUM = 2**38


def largest_needed(layout: Layout) -> int:
    """What somebody's weight in one slot and cell counts for at most in needs of long campaigns."""
    if layout.once:
        return UNITS_PER_CONVERSION
    if all(view.stride == 1 for view in layout.views):
        return LARGEST_SIZED
    return min(LARGEST_SIZED, _LARGEST_NEEDED_SUM // len(layout))


def listed(costs: Costs) -> Sequence[int]:
    """Costs of accounts that know all earlier slots."""
    if isinstance(costs, Crossing):
        raise ContributionError(
            f"slot {costs.slot} is one of a long campaign, and these accounts are not"
        )
    return costs


def crossing_of(costs: Costs) -> Crossing:
    """Costs of accounts of a long campaign."""
    if not isinstance(costs, Crossing):
        raise ContributionError(
            f"slot {len(costs)} is none of a long campaign, and these accounts are"
        )
    return costs


class Contributions(Protocol):
    """Slots are numbered 1..slots; totals have one entry for each cell of the layout, zeros too."""

    slots: int
    layout: Layout

    def histogram(self, slot: int, edges: Sequence[int]) -> Integers:
        """Users by their contribution in a slot: entry i counts edges[i-1] < c <= edges[i], the
        first starts above 0, and one more entry counts what is above the last edge."""

    def users_above(self, slot: int, bound: int) -> int:
        """Users who contribute more than the bound in a slot."""

    def totals(self, slot: int, bound: int | None = None) -> Integers:
        """Weight per cell. With a bound, each user's first conversions in time order are
        kept up to exactly the bound, the crossing one in part."""


class Accounts(Protocol):
    """Contributions with books for every user: what was asked for, kept and spent so far.

    Slots are gone through in order, once each: `open` and `needs`, if at all, `renew` if the past
    is let in again, and then `admit`. Where the layout counts people once, somebody asks for a cell
    on the first slot that has rows of both.
    """

    slots: int
    layout: Layout

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        """Take up a slot, where `costs` are G_t1 .. G_tt. Needs have cells multiplied with their
        `sizes`, or with 1; where those are others than on the slot before, `past` is G for the
        slots before this one, and needs are counted again."""

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> Integers:
        """Users by need: the cost that everything they asked for so far would have, this slot
        included, or what it is forecast to grow to. Entry i counts edges[i-1] < need <= edges[i],
        and one more entry counts what is above the last edge."""

    def renew(self, renewal: Renewal) -> list[list[int]]:
        """Let everything before the slot in again. Returns what is kept of each slot, as `admit`
        does."""

    def admit(self, terms: Terms) -> list[int]:
        """Weight per cell that the filter keeps of the slot, and after the cells what it cut, as
        far as the filter lets that be counted."""


def check_slot(slot: int, slots: int) -> None:
    if not 1 <= slot <= slots:
        raise ContributionError(f"slot = {slot}: expected a number from 1 to {slots}")


def check_bound(bound: int) -> None:
    whole = isinstance(bound, int | np.integer) and not isinstance(bound, bool)
    if not whole or not 1 <= bound <= LARGEST_BOUND:
        raise ContributionError(
            f"bound = {bound!r}: expected a whole number of grid units from 1 to {LARGEST_BOUND}"
        )


def check_edges(edges: Sequence[int]) -> None:
    if len(edges) == 0 or edges[0] < 1 or any(b <= a for a, b in pairwise(edges)):
        raise ContributionError(
            f"edges = {list(edges)!r}: expected whole numbers that start at 1 or more and increase"
        )
