"""Contributions in arrays: for experiments, where the same data are asked many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adsbpc.contributions.interface import (
    Integers,
    check_bound,
    check_edges,
    check_slot,
)
from adsbpc.errors import ContributionError
from adsbpc.model.layout import Layout

_EXACT_IN_DOUBLE = 2**53


class ArrayContributions:
    """Rows (user, slot, cell, weight), a user's rows of one slot in time order.

    Sorted by slot and user once; every question is then a pass over one slot's slice.
    """

    def __init__(
        self,
        users: ArrayLike,
        slot_numbers: ArrayLike,
        cell_indices: ArrayLike,
        weights: ArrayLike,
        slots: int,
        layout: Layout,
    ) -> None:
        user = np.asarray(users)
        slot = np.asarray(slot_numbers, dtype=np.int64)
        cell = np.asarray(cell_indices, dtype=np.int64)
        weight = np.asarray(weights, dtype=np.int64)
        if not user.shape == slot.shape == cell.shape == weight.shape:
            raise ContributionError(
                "the arrays of users, slots, cells and weights differ in length"
            )
        if slot.size and (slot.min() < 1 or slot.max() > slots):
            raise ContributionError(
                f"slots run from {slot.min()} to {slot.max()}: expected 1..{slots}"
            )
        if slot.size and (cell.min() < 0 or cell.max() >= len(layout)):
            raise ContributionError(
                f"cell indices run from {cell.min()} to {cell.max()}: expected 0..{len(layout) - 1}"
            )
        if slot.size and weight.min() < 0:
            raise ContributionError(f"the smallest weight is {weight.min()}: expected none below 0")
        if float(weight.sum(dtype=np.float64)) >= _EXACT_IN_DOUBLE:
            raise ContributionError("the weights add up to 2**53 or more: use a coarser grid")
        self.slots = slots
        self.layout = layout
        codes = np.unique(user, return_inverse=True)[1]
        order = np.lexsort((codes, slot))
        self._user, self._cell, self._weight = codes[order], cell[order], weight[order]
        self._slot = slot[order]
        self._edges = np.searchsorted(self._slot, np.arange(1, slots + 2))

    def _of_slot(self, slot: int) -> tuple[Integers, Integers, Integers]:
        check_slot(slot, self.slots)
        part = slice(self._edges[slot - 1], self._edges[slot])
        return self._user[part], self._cell[part], self._weight[part]

    def user_totals(self, slot: int) -> Integers:
        """What each user with rows in a slot contributes."""
        user, _, weight = self._of_slot(slot)
        starts = _starts(user)
        return np.add.reduceat(weight, starts) if starts.size else np.zeros(0, dtype=np.int64)

    def histogram(self, slot: int, edges: Sequence[int]) -> Integers:
        check_edges(edges)
        totals = self.user_totals(slot)
        bins = np.searchsorted(np.asarray(edges, dtype=np.int64), totals[totals > 0], side="left")
        return np.bincount(bins, minlength=len(edges) + 1).astype(np.int64)

    def users_above(self, slot: int, bound: int) -> int:
        check_bound(bound)
        return int(np.count_nonzero(self.user_totals(slot) > bound))

    def totals(self, slot: int, bound: int | None = None) -> Integers:
        user, cell, weight = self._of_slot(slot)
        if bound is not None:
            check_bound(bound)
            weight = _keep_first(user, weight, bound)
        return self._sum(cell, weight)

    def totals_lifetime(self, bound: int) -> Integers:
        check_bound(bound)
        by_user = np.argsort(self._user, kind="stable")
        kept = np.empty_like(self._weight)
        kept[by_user] = _keep_first(self._user[by_user], self._weight[by_user], bound)
        place = (self._slot - 1) * len(self.layout) + self._cell
        flat = np.bincount(place, weights=kept, minlength=self.slots * len(self.layout))
        return flat.astype(np.int64).reshape(self.slots, len(self.layout))

    def users_above_lifetime(self, slot: int, bound: int) -> int:
        """Users who contribute more than the bound from the first slot to this one."""
        check_slot(slot, self.slots)
        check_bound(bound)
        end = self._edges[slot]
        sums = np.bincount(self._user[:end], weights=self._weight[:end])
        return int(np.count_nonzero(sums > bound))

    def cells(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Slot, user, cell and weight of what is above 0, in that order; users are numbered from
        0."""
        if not self._user.size:
            return self._slot, self._user, self._cell, self._weight
        users, cells = int(self._user.max()) + 1, len(self.layout)
        key = (self._slot * users + self._user) * cells + self._cell
        order = np.argsort(key, kind="stable")
        begins = _starts(key[order])
        weight = np.add.reduceat(self._weight[order], begins)
        rows = order[begins][weight > 0]
        return self._slot[rows], self._user[rows], self._cell[rows], weight[weight > 0]

    def _sum(self, cell: Integers, weight: Integers) -> Integers:
        # Sums of doubles are exact below 2**53, which the constructor made sure of.
        summed = np.bincount(cell, weights=weight, minlength=len(self.layout))
        return summed.astype(np.int64)


def _starts(user: Integers) -> NDArray[np.intp]:
    """Where each user's rows begin in an array that is grouped by user."""
    if not user.size:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.r_[True, user[1:] != user[:-1]])


def _keep_first(user: Integers, weight: Integers, bound: int) -> Integers:
    """Each user's weights in order until the bound is reached exactly."""
    starts = _starts(user)
    if not starts.size:
        return weight
    earlier = np.cumsum(weight) - weight
    lengths = np.diff(np.r_[starts, user.size])
    earlier -= np.repeat(earlier[starts], lengths)
    kept: Integers = np.clip(bound - earlier, 0, weight)
    return kept
