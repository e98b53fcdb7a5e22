"""Cells of users as arrays, in the order in which personal budgets go through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.interface import Integers
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.filter import Gram, largest_cell

Reals = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class ColumnIndex:
    """Columns of one view that somebody asks for, in the order of cells: `begins` is the first cell
    of each, `starts[t - 1]` the first column of slot t. `later` and `earlier` are pairs of places
    of one user and column."""

    squared_weight: int
    begins: Places
    user: Integers
    slot: Integers
    starts: Places
    later: Places
    earlier: Places
    first_link: Places

    @classmethod
    def of(
        cls, view: View, slots: int, user: Integers, slot: Integers, cell: Integers
    ) -> ColumnIndex:
        column = cell // view.stride
        new = (np.diff(slot) != 0) | (np.diff(user) != 0) | (np.diff(column) != 0)
        begins = np.flatnonzero(np.r_[True, new]) if cell.size else np.zeros(0, dtype=np.intp)
        later, earlier = _pairs(user[begins] * view.columns + column[begins])
        return cls(
            view.weight**2, begins, user[begins], slot[begins],
            np.searchsorted(slot[begins], np.arange(1, slots + 2)),
            later, earlier, np.searchsorted(later, np.arange(begins.size + 1)),
        )  # fmt: skip

    def summed(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Of cells, by column."""
        return np.add.reduceat(cells, self.begins) if self.begins.size else cells

    def summed_until(self, cells: NDArray[Any], slot: int) -> NDArray[Any]:
        """The same for the cells before a slot."""
        columns = int(self.starts[slot - 1])
        return np.add.reduceat(cells, self.begins[:columns]) if columns else cells[:0]

    def slice_of(self, slot: int) -> slice:
        return slice(int(self.starts[slot - 1]), int(self.starts[slot]))

    def before(self, costs: Sequence[int], values: Integers) -> Reals:
        """For the columns of a slot, sum over s < t of G_ts times what stands at earlier places of
        user and column."""
        part = self.slice_of(len(costs))
        links = slice(int(self.first_link[part.start]), int(self.first_link[part.stop]))
        earlier = self.earlier[links]
        weights = np.array(costs, dtype=np.float64)[self.slot[earlier] - 1] * values[earlier]
        sums = np.bincount(
            self.later[links] - part.start, weights=weights, minlength=part.stop - part.start
        )
        return sums.astype(np.float64)

    def quadratic(self, gram: Gram, values: NDArray[Any], users: int) -> Reals:
        """For every user, sum over slots s, s' that the gram has of gram_ss' times products of the
        values of one column."""
        entries = np.array(gram, dtype=np.float64)
        end = int(self.starts[len(gram)])
        slot, value = self.slot[:end] - 1, values[:end].astype(np.float64)
        found = np.bincount(self.user[:end], entries[slot, slot] * value**2, users)
        links = int(self.first_link[end])
        later, earlier = self.later[:links], self.earlier[:links]
        between = entries[slot[later], slot[earlier]] * value[later] * value[earlier]
        found += 2 * np.bincount(self.user[later], between, users)
        return np.asarray(self.squared_weight * found)


@dataclass(frozen=True)
class CellIndex:
    """What users ask (user, cell, asked), by slot, then by user; `starts[t - 1]` is where slot t
    begins. `columns` has the same for the columns of every view."""

    slots: int
    layout: Layout
    users: int
    user: Integers
    slot: Integers
    cell: Integers
    asked: Integers
    starts: Places
    columns: tuple[ColumnIndex, ...]
    by_user: Places
    first_of_user: Places

    @classmethod
    def of(cls, contributions: ArrayContributions, layout: Layout | None = None) -> CellIndex:
        """In cells of a layout, that of the contributions or the same taken apart."""
        slots, layout = contributions.slots, layout or contributions.layout
        found = contributions.cells()
        if layout.apart:
            found = _taken_apart(found, layout)
        if layout.once:
            # Rows come in the order of slots, so that the first of a person and cell is the oldest.
            _, user, cell, _ = found
            first = np.sort(np.unique(user * len(layout) + cell, return_index=True)[1])
            found = tuple(column[first] for column in found)
        slot, user, cell, asked = found
        users = int(user.max()) + 1 if user.size else 0
        by_user = np.argsort(user, kind="stable")
        return cls(
            slots, layout, users, user, slot, cell, np.minimum(asked, largest_cell(layout)),
            np.searchsorted(slot, np.arange(1, slots + 2)),
            tuple(ColumnIndex.of(view, slots, user, slot, cell) for view in layout.views),
            by_user, np.searchsorted(user[by_user], np.arange(users + 1)),
        )  # fmt: skip


Rows = tuple[Integers, Integers, Integers, Integers]


def _taken_apart(rows: Rows, layout: Layout) -> Rows:
    """Slot, user, cell and weight for each sum of a view, from those of the finest cells."""
    slot, user, cell, weight = rows
    views = layout.stood_for
    firsts = accumulate((view.columns for view in views), initial=0)
    place = np.concatenate(
        [first + cell // view.stride for first, view in zip(firsts, views, strict=False)]
    )
    users = int(user.max()) + 1 if user.size else 0
    people = np.tile(slot * users + user, len(views)) * len(layout)
    key, sums = np.unique(people + place, return_inverse=True)
    total = np.zeros(key.size, dtype=np.int64)
    np.add.at(total, sums, np.tile(weight, len(views)))
    people, place = np.divmod(key, len(layout))
    return people // max(users, 1), people % max(users, 1), place, total


def _pairs(key: Integers) -> tuple[Places, Places]:
    """All pairs of places (later, earlier) that hold the same key, in the order of `later`."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if key.size else key
    lengths = np.diff(np.r_[begins, key.size])
    rank = np.arange(key.size) - np.repeat(begins, lengths)
    place = np.repeat(np.arange(key.size), rank)
    step = np.arange(place.size) - np.repeat(np.cumsum(rank) - rank, rank)
    later, earlier = order[place], order[place - rank[place] + step]
    by_later = np.argsort(later, kind="stable")
    return later[by_later], earlier[by_later]
