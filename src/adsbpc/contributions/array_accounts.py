"""Personal budgets on arrays: for experiments, where the same data are gone through many times.

Floating point finds the users for whom everything surely fits, which is nearly everybody.
`privacy.filter` decides about the others in Python's integers, so that the result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.interface import LARGEST_NEED, Integers, check_edges
from adsbpc.errors import ContributionError
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import LARGEST_CELL, Account, Terms, admit

Reals = NDArray[np.float64]
Places = NDArray[np.intp]

# Wider than what rounding can do to a sum of floats of one sign.
_UNSURE = 1e-9


@dataclass(frozen=True)
class CellIndex:
    """What users ask (user, cell, asked), by slot, then by user; `starts[t - 1]` is where slot t
    begins. `later` and `earlier` are pairs of places of one user and cell."""

    slots: int
    layout: Layout
    users: int
    user: Integers
    slot: Integers
    cell: Integers
    asked: Integers
    starts: Places
    later: Places
    earlier: Places
    first_link: Places
    by_user: Places
    first_of_user: Places

    @classmethod
    def of(cls, contributions: ArrayContributions) -> CellIndex:
        slot, user, cell, asked = contributions.cells()
        slots, layout = contributions.slots, contributions.layout
        asked = np.minimum(asked, LARGEST_CELL)
        later, earlier = _pairs(user * len(layout) + cell)
        users = int(user.max()) + 1 if user.size else 0
        by_user = np.argsort(user, kind="stable")
        return cls(
            slots, layout, users, user, slot, cell, asked,
            np.searchsorted(slot, np.arange(1, slots + 2)),
            later, earlier, np.searchsorted(later, np.arange(user.size + 1)),
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
        moved = weight.astype(np.float64) * terms.multiplier
        before = self._before(terms.costs, part, self._moved)
        charge = np.add.reduceat(moved * (2 * before + float(terms.own) * moved), begins)
        whole = np.maximum.reduceat(weight, begins) <= terms.cap(terms.multiplier)
        after = self._spent[present] + charge
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
        return totals

    def kept(self) -> list[list[int]]:
        """What `admit` has returned, slot by slot."""
        return [list(row) for row in self._kept]

    def _admit_exactly(self, user: int, mine: slice, terms: Terms, totals: list[int]) -> None:
        if user not in self._exact:
            self._exact[user] = self._account(user, terms.slot)
        account = self._exact[user]
        columns = [int(column) for column in self._index.cell[mine]]
        asked = dict(zip(columns, map(int, self._index.asked[mine]), strict=True))
        kept = admit(account, asked, len(self.layout), terms)
        for column, weight in kept.items():
            totals[column] += weight
        self._moved[mine] = [account.moved.get((terms.slot, column), 0) for column in columns]
        self._spent[user] = account.spent

    def _account(self, user: int, before_slot: int) -> Account:
        """The exact books of a user of whom nothing was cut so far."""
        account = Account()
        for place in self._cells_of(user, before_slot - 1):
            slot, column = int(self._index.slot[place]), int(self._index.cell[place])
            move, costs = int(self._moved[place]), self._costs[slot - 1]
            earlier = sum(costs[s - 1] * account.moved.get((s, column), 0) for s in range(1, slot))
            account.spent += move * (2 * earlier + costs[-1] * move)
            account.moved[(slot, column)] = move
        return account

    def _exact_need(self, user: int) -> int:
        need, asked = 0, dict[tuple[int, int], int]()
        for place in self._cells_of(user, len(self._costs)):
            slot, column = int(self._index.slot[place]), int(self._index.cell[place])
            weight, costs = int(self._index.asked[place]), self._costs[slot - 1]
            earlier = sum(costs[s - 1] * asked.get((s, column), 0) for s in range(1, slot))
            need += weight * (2 * earlier + costs[-1] * weight)
            asked[(slot, column)] = weight
        return min(need, LARGEST_NEED)

    def _cells_of(self, user: int, last_slot: int) -> Places:
        """A user's cells up to a slot, in the order of slots."""
        index = self._index
        places = index.by_user[index.first_of_user[user] : index.first_of_user[user + 1]]
        return places[index.slot[places] <= last_slot]

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
        part = self._slice(len(costs))
        weight = self._index.asked[part].astype(np.float64)
        before = self._before(costs, part, self._index.asked)
        more = weight * (2 * before + float(costs[-1]) * weight)
        self._need += np.bincount(self._index.user[part], weights=more, minlength=self._index.users)
        np.minimum(self._need, float(LARGEST_NEED), out=self._need)

    def _before(self, costs: Sequence[int], part: slice, values: Integers) -> Reals:
        """sum over s < t of G_ts times what stands at the earlier places of user and cell."""
        index = self._index
        links = slice(int(index.first_link[part.start]), int(index.first_link[part.stop]))
        earlier = index.earlier[links]
        weights = np.array(costs, dtype=np.float64)[index.slot[earlier] - 1] * values[earlier]
        sums = np.bincount(
            index.later[links] - part.start, weights=weights, minlength=part.stop - part.start
        )
        return sums.astype(np.float64)
