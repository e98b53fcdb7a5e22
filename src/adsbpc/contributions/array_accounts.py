"""Personal budgets on arrays: for experiments, where the same data are gone through many times.

Floating point finds the users for whom everything surely fits, which is nearly everybody.
`privacy.filter` decides about the others in Python's integers, so that the result is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.interface import LARGEST_NEED, Integers, check_edges
from adsbpc.errors import ContributionError
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.filter import Account, Terms, admit, largest_cell, square_and_cross

Reals = NDArray[np.float64]
Places = NDArray[np.intp]

# Wider than what rounding can do to a sum of floats of one sign.
_UNSURE = 1e-9


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
    def of(cls, contributions: ArrayContributions) -> CellIndex:
        slots, layout = contributions.slots, contributions.layout
        found = contributions.cells()
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


class ArrayAccounts:
    """One run through the slots of an index."""

    def __init__(self, index: CellIndex) -> None:
        self.slots, self.layout = index.slots, index.layout
        self._index = index
        self._moved = np.zeros(index.user.size, dtype=np.int64)
        self._asked_of = [view.summed(index.asked) for view in index.columns]
        self._moved_of = [np.zeros(view.begins.size, dtype=np.int64) for view in index.columns]
        self._spent: Reals = np.zeros(index.users)
        self._need: Reals = np.zeros(index.users)
        self._exact: dict[int, Account] = {}
        self._costs: list[tuple[int, ...]] = []
        self._kept: list[list[int]] = []

    def needs(self, costs: Sequence[int], edges: Sequence[int]) -> Integers:
        check_edges(edges)
        self._open(costs)
        limits = np.array(edges, dtype=np.float64)
        need = self._need[self._need > 0]
        bins = np.searchsorted(limits, need, side="left")
        low, high = need * (1 - _UNSURE), need * (1 + _UNSURE)
        unsure = np.searchsorted(limits, low) != np.searchsorted(limits, high)
        for place, user in zip(
            np.flatnonzero(unsure), np.flatnonzero(self._need > 0)[unsure], strict=True
        ):
            exact = self._exact_need(int(user))
            bins[place] = sum(edge < exact for edge in edges)
        return np.bincount(bins, minlength=len(edges) + 1).astype(np.int64)

    def admit(self, terms: Terms) -> list[int]:
        self._open(terms.costs)
        index, part = self._index, self._slice(terms.slot)
        user, weight = index.user[part], index.asked[part]
        totals = [0] * (len(self.layout) + 1)
        self._kept.append(totals)
        if not user.size:
            return totals
        begins = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
        present = user[begins]
        whole = np.maximum.reduceat(weight, begins) <= terms.cap(terms.multiplier)
        after = self._spent[present] + self._charge(terms)[present]
        sure = whole & (after <= terms.kept_limit * (1 - _UNSURE))
        if self._exact:
            sure &= ~np.isin(present, np.fromiter(self._exact, dtype=np.int64))
        self._spent[present[sure]] = after[sure]
        lengths = np.diff(np.r_[begins, user.size])
        rows = np.repeat(sure, lengths)
        here = np.arange(part.start, part.stop)
        self._moved[here[rows]] = weight[rows] * terms.multiplier
        sums = np.bincount(index.cell[part][rows], weights=weight[rows], minlength=len(self.layout))
        for column, total in enumerate(sums):
            totals[column] += int(total)
        for place in np.flatnonzero(~sure):
            mine = slice(part.start + begins[place], part.start + begins[place] + lengths[place])
            self._admit_exactly(int(present[place]), mine, terms, totals)
        for view, moved in zip(index.columns, self._moved_of, strict=True):
            columns = view.slice_of(terms.slot)
            first = view.begins[columns] - part.start
            moved[columns] = np.add.reduceat(self._moved[part], first)
        return totals

    def kept(self) -> list[list[int]]:
        """What `admit` has returned, slot by slot."""
        return [list(row) for row in self._kept]

    def _charge(self, terms: Terms) -> Reals:
        """What everybody would be charged for everything of a slot, but for rounding."""
        return self._added(
            terms.costs,
            [asked[view.slice_of(terms.slot)].astype(np.float64) * terms.multiplier
             for view, asked in zip(self._index.columns, self._asked_of, strict=True)],
            self._moved_of,
        )  # fmt: skip

    def _added(
        self, costs: Sequence[int], now: Sequence[Reals], values: Sequence[Integers]
    ) -> Reals:
        """What columns of a slot add to what users cost, beside values of earlier slots."""
        added: Reals = np.zeros(self._index.users)
        for view, moved, earlier in zip(self._index.columns, now, values, strict=True):
            more = moved * (2 * view.before(costs, earlier) + float(costs[-1]) * moved)
            user = view.user[view.slice_of(len(costs))]
            added += view.squared_weight * np.bincount(
                user, weights=more, minlength=self._index.users
            )
        return added

    def _admit_exactly(self, user: int, mine: slice, terms: Terms, totals: list[int]) -> None:
        if user not in self._exact:
            self._exact[user] = self._account(user, terms.slot)
        account = self._exact[user]
        cells = [int(cell) for cell in self._index.cell[mine]]
        asked = dict(zip(cells, map(int, self._index.asked[mine]), strict=True))
        kept = admit(account, asked, self.layout, terms)
        for cell, weight in kept.items():
            totals[cell] += weight
        self._moved[mine] = [account.moved.get((terms.slot, cell), 0) for cell in cells]
        self._spent[user] = account.spent

    def _account(self, user: int, before_slot: int) -> Account:
        """The exact books of a user of whom nothing was cut so far."""
        moved = self._of_user(user, before_slot - 1, self._moved)
        return Account(moved, self._cost(moved))

    def _exact_need(self, user: int) -> int:
        asked = self._of_user(user, len(self._costs), self._index.asked)
        return min(self._cost(asked), LARGEST_NEED)

    def _cost(self, moved: Mapping[tuple[int, int], int]) -> int:
        """What moves by slot and cell cost, slot after slot."""
        total, by_slot = 0, dict[int, dict[int, int]]()
        for (slot, cell), move in moved.items():
            by_slot.setdefault(slot, {})[cell] = move
        for slot, now in by_slot.items():
            costs, before = self._costs[slot - 1], dict[int, int]()
            for (earlier, cell), move in moved.items():
                if earlier < slot:
                    before[cell] = before.get(cell, 0) + costs[earlier - 1] * move
            square, cross = square_and_cross(before, now, self.layout.views, costs[-1])
            total += square + 2 * cross
        return total

    def _of_user(self, user: int, last_slot: int, values: Integers) -> dict[tuple[int, int], int]:
        """Values at a user's cells up to a slot, by slot and cell."""
        index = self._index
        places = index.by_user[index.first_of_user[user] : index.first_of_user[user + 1]]
        return {
            (int(index.slot[place]), int(index.cell[place])): int(values[place])
            for place in places[index.slot[places] <= last_slot]
        }

    def _slice(self, slot: int) -> slice:
        return slice(int(self._index.starts[slot - 1]), int(self._index.starts[slot]))

    def _open(self, costs: Sequence[int]) -> None:
        if len(costs) == len(self._costs):
            return
        if len(costs) != len(self._costs) + 1:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: slot {len(self._costs) + 1} is next"
            )
        self._costs.append(tuple(costs))
        now = [
            asked[view.slice_of(len(costs))].astype(np.float64)
            for view, asked in zip(self._index.columns, self._asked_of, strict=True)
        ]
        self._need += self._added(costs, now, self._asked_of)
        np.minimum(self._need, float(LARGEST_NEED), out=self._need)
