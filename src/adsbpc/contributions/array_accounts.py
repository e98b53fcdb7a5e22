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
from adsbpc.privacy.filter import (
    FORECAST_BITS,
    Account,
    Gram,
    Growth,
    Moves,
    Need,
    Renewal,
    Terms,
    admit,
    largest_cell,
    quadratic,
    renew,
    square_and_cross,
)

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
    def of(cls, contributions: ArrayContributions) -> CellIndex:
        slot, user, cell, asked = contributions.cells()
        slots, layout = contributions.slots, contributions.layout
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
        self._moved_of = [np.zeros(view.begins.size, dtype=np.int64) for view in index.columns]
        self._fixed: Reals = np.zeros(index.users)
        self._spent: Reals = np.zeros(index.users)
        self._sizes: tuple[int, ...] = ()
        self._sized_of = [view.summed(index.asked) for view in index.columns]
        self._own: Reals = np.zeros(index.users)
        self._across: Reals = np.zeros(index.users)
        self._seen = np.zeros(index.users, dtype=np.int64)
        self._exact: dict[int, Account] = {}
        self._costs: list[tuple[int, ...]] = []
        self._terms: list[Terms] = []
        self._renewals: list[Renewal] = []
        self._kept: list[list[int]] = []

    def open(
        self, costs: Sequence[int], sizes: Sequence[int] = (), past: Gram | None = None
    ) -> None:
        if len(costs) == len(self._costs):
            return
        if len(costs) != len(self._costs) + 1:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: slot {len(self._costs) + 1} is next"
            )
        self._costs.append(tuple(costs))
        if past is not None:
            self._sizes = tuple(sizes)
            sized = self._sized(self._index.asked)
            self._sized_of = [view.summed(sized) for view in self._index.columns]
            self._own, self._across = np.zeros_like(self._own), np.zeros_like(self._across)
            self._seen[:] = 0
            for slot in range(1, len(costs)):
                self._add_needs(past[slot - 1][:slot])
        self._add_needs(costs)

    def _sized(self, asked: Integers) -> Integers:
        return asked * np.array(self._sizes)[self._index.cell] if self._sizes else asked

    def _add_needs(self, costs: Sequence[int]) -> None:
        views, users = self._index.columns, self._index.users
        for view, asked in zip(views, self._sized_of, strict=True):
            part = view.slice_of(len(costs))
            now, user = asked[part].astype(np.float64), view.user[part]
            own = view.squared_weight * float(costs[-1]) * now**2
            across = view.squared_weight * 2 * now * view.before(costs, asked)
            self._own += np.bincount(user, own, users)
            self._across += np.bincount(user, across, users)
        part = self._slice(len(costs))
        self._seen[np.unique(self._index.user[part])] += 1
        np.minimum(self._own, float(LARGEST_NEED), out=self._own)
        np.minimum(self._across, float(LARGEST_NEED), out=self._across)

    def needs(
        self, costs: Sequence[int], edges: Sequence[int], growth: Growth | None = None
    ) -> Integers:
        check_edges(edges)
        self.open(costs)
        limits = np.array(edges, dtype=np.float64)
        users = np.flatnonzero(self._own > 0)
        need = self._own + self._across if growth is None else self._expected(growth)
        need = need[users]
        slack = 0.0 if growth is None else float(max(growth.own) + max(growth.across))
        bins = np.searchsorted(limits, need, side="left")
        low, high = need * (1 - _UNSURE) - slack, need * (1 + _UNSURE) + slack
        unsure = np.searchsorted(limits, low) != np.searchsorted(limits, high)
        for place, user in zip(np.flatnonzero(unsure), users[unsure], strict=True):
            found = self._exact_need(int(user))
            exact = found.own + found.across if growth is None else growth.of(found)
            bins[place] = sum(edge < exact for edge in edges)
        return np.bincount(bins, minlength=len(edges) + 1).astype(np.int64)

    def _expected(self, growth: Growth) -> Reals:
        seen = np.maximum(self._seen, 1) - 1
        own, across = (
            np.minimum(need / 2**FORECAST_BITS, float(growth.largest))
            for need in (self._own, self._across)
        )
        factors = np.array(growth.own, dtype=np.float64), np.array(growth.across, dtype=np.float64)
        return np.asarray(own * factors[0][seen] + across * factors[1][seen])

    def renew(self, renewal: Renewal) -> list[list[int]]:
        index, terms, users = self._index, renewal.terms, self._index.users
        end = int(index.starts[terms.slot - 1])
        user, asked = index.user[:end], index.asked[:end]
        wished = asked * self._multipliers(terms)[index.cell[:end]]
        coming: Reals = np.zeros(users)
        for view, moved in zip(index.columns, self._moved_of, strict=True):
            self._fixed += view.quadratic(renewal.ended, moved, users)
            columns = int(view.starts[terms.slot - 1])
            summed = np.add.reduceat(wished, view.begins[:columns]) if columns else wished
            coming += view.quadratic(renewal.coming, summed, users)
        sums = np.bincount(user, wished.astype(np.float64), users)
        sure = (sums < renewal.largest_sum(self.layout.views) * (1 - _UNSURE)) & self._surely_whole(
            self._fixed + coming, terms
        )
        sure[list(self._exact)] = False
        self._spent[sure] = (self._fixed + coming)[sure]
        rows = sure[user]
        unsure = [int(each) for each in np.unique(user[~rows])]
        for each in unsure:
            # While what is moved is still that of the rows that have ended.
            self._account_of(each, terms.slot)
        self._moved[:end] = np.where(rows, wished, 0)
        place = (index.slot[:end] - 1) * len(self.layout) + index.cell[:end]
        kept = np.bincount(place[rows], asked[rows], (terms.slot - 1) * len(self.layout))
        nothing = [0] * len(terms.cuts)
        totals = [
            [*map(int, row), *nothing] for row in kept.reshape(terms.slot - 1, len(self.layout))
        ]
        for each in unsure:
            self._renew_exactly(each, renewal, totals)
        self._renewals.append(renewal)
        for view, moved in zip(index.columns, self._moved_of, strict=True):
            columns = int(view.starts[terms.slot - 1])
            if columns:
                moved[:columns] = np.add.reduceat(self._moved[:end], view.begins[:columns])
        self._kept = [list(row) for row in totals]
        return totals

    def _renew_exactly(self, user: int, renewal: Renewal, totals: list[list[int]]) -> None:
        last = renewal.terms.slot - 1
        account = self._account_of(user, last + 1)
        if renewal.terms.pace is not None:
            account.need = self._exact_need(user)
        asked = self._of_user(user, last, self._index.asked)
        for (slot, cell), kept in renew(account, asked, self.layout, renewal).items():
            totals[slot - 1][cell] += kept
        for place in self._places_of(user, last):
            at = int(self._index.slot[place]), int(self._index.cell[place])
            self._moved[place] = account.moved.get(at, 0)
        self._spent[user], self._fixed[user] = account.spent[0], account.fixed[0]

    def _multipliers(self, terms: Terms) -> Integers:
        return np.array([terms.multiplier_of(cell) for cell in range(len(self.layout))])

    def _surely_whole(self, after: Reals, terms: Terms) -> NDArray[np.bool_]:
        """Of all users, who surely fits with everything, if this is what that would cost."""
        fits = after <= terms.kept_limit * (1 - _UNSURE)
        if terms.pace is None:
            return fits
        expected = after + self._expected(terms.pace.growth)
        free = after <= terms.pace.free * (1 - _UNSURE)
        return fits & (free | (expected <= terms.kept_limit * (1 - _UNSURE)))

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        self._terms.append(terms)
        index, part = self._index, self._slice(terms.slot)
        user, weight = index.user[part], index.asked[part]
        totals = [0] * (len(self.layout) + len(terms.cuts))
        self._kept.append(totals)
        if not user.size:
            return totals
        multipliers = self._multipliers(terms)
        caps = np.array([terms.cap(int(each)) for each in multipliers])
        of_cell = multipliers[index.cell[part]]
        begins = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
        present = user[begins]
        whole = np.logical_and.reduceat(weight <= caps[index.cell[part]], begins)
        after = self._spent + self._charge(terms, weight * of_cell.astype(np.float64))
        sure = whole & self._surely_whole(after, terms)[present]
        if self._exact:
            sure &= ~np.isin(present, np.fromiter(self._exact, dtype=np.int64))
        self._spent[present[sure]] = after[present[sure]]
        lengths = np.diff(np.r_[begins, user.size])
        rows = np.repeat(sure, lengths)
        here = np.arange(part.start, part.stop)
        self._moved[here[rows]] = weight[rows] * of_cell[rows]
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
        """What is kept of the slots so far, as the last row has them."""
        return [list(row) for row in self._kept]

    def _charge(self, terms: Terms, wished: Reals) -> Reals:
        """What everybody would be charged for everything of a slot, but for rounding."""
        added: Reals = np.zeros(self._index.users)
        start = int(self._index.starts[terms.slot - 1])
        for view, earlier in zip(self._index.columns, self._moved_of, strict=True):
            columns = view.slice_of(terms.slot)
            moved = np.add.reduceat(wished, view.begins[columns] - start)
            more = moved * (2 * view.before(terms.costs, earlier) + float(terms.own) * moved)
            added += view.squared_weight * np.bincount(
                view.user[columns], weights=more, minlength=self._index.users
            )
        return added

    def _admit_exactly(self, user: int, mine: slice, terms: Terms, totals: list[int]) -> None:
        account = self._account_of(user, terms.slot)
        if terms.pace is not None:
            account.need = self._exact_need(user)
        cells = [int(cell) for cell in self._index.cell[mine]]
        asked = dict(zip(cells, map(int, self._index.asked[mine]), strict=True))
        kept = admit(account, asked, self.layout, terms)
        for cell, weight in kept.items():
            totals[cell] += weight
        self._moved[mine] = [account.moved.get((terms.slot, cell), 0) for cell in cells]
        self._spent[user] = account.spent[0]

    def _account_of(self, user: int, before_slot: int) -> Account:
        """The exact books of a user; of those who are new here nothing was cut so far."""
        if user not in self._exact:
            moved = self._of_user(user, before_slot - 1, self._moved)
            self._exact[user] = self._rebuilt(user, moved)
        return self._exact[user]

    def _rebuilt(self, user: int, moved: Moves) -> Account:
        views = self.layout.views
        fixed, terms = 0, list(self._terms)
        for renewal in self._renewals:
            last = renewal.terms.slot - 1
            earlier = {
                (slot, cell): weight * terms[slot - 1].multiplier_of(cell)
                for (slot, cell), weight in self._of_user(user, last, self._index.asked).items()
            }
            fixed += quadratic(earlier, renewal.ended, views)
            terms[:last] = [renewal.terms] * last
        # What coming rows cost: those before the last renewal among themselves, then slot by slot.
        begun = self._renewals[-1].terms.slot if self._renewals else 1
        past = {place: move for place, move in moved.items() if place[0] < begun}
        spent = fixed
        if self._renewals:
            spent += quadratic(past, self._renewals[-1].coming, views)
        spent += self._cost(moved, begun)
        return Account(dict(moved), [spent, 0, 0], [fixed, 0, 0])

    def _exact_need(self, user: int) -> Need:
        last = len(self._costs)
        sized = {
            (slot, cell): weight * (self._sizes[cell] if self._sizes else 1)
            for (slot, cell), weight in self._of_user(user, last, self._index.asked).items()
        }
        own = sum(
            quadratic({place: w for place, w in sized.items() if place[0] == slot},
                      self._own_costs, self.layout.views)
            for slot in {slot for slot, _ in sized}
        )  # fmt: skip
        whole = self._cost(sized, 1)
        seen = len({slot for slot, _ in sized})
        return Need(min(own, LARGEST_NEED), min(whole - own, LARGEST_NEED), seen)

    @property
    def _own_costs(self) -> Gram:
        last = len(self._costs)
        return tuple(
            tuple(self._costs[s][s] if s == r else 0 for r in range(last)) for s in range(last)
        )

    def _cost(self, moved: Moves, first_slot: int) -> int:
        """What moves by slot and cell cost, slot after slot, from a slot on."""
        total, by_slot = 0, dict[int, dict[int, int]]()
        for (slot, cell), move in moved.items():
            by_slot.setdefault(slot, {})[cell] = move
        for slot, now in by_slot.items():
            if slot < first_slot:
                continue
            costs, before = self._costs[slot - 1], dict[int, int]()
            for (earlier, cell), move in moved.items():
                if earlier < slot:
                    before[cell] = before.get(cell, 0) + costs[earlier - 1] * move
            square, cross = square_and_cross(before, now, self.layout.views, costs[-1])
            total += square + 2 * cross
        return total

    def _places_of(self, user: int, last_slot: int) -> Places:
        index = self._index
        places = index.by_user[index.first_of_user[user] : index.first_of_user[user + 1]]
        return places[index.slot[places] <= last_slot]

    def _of_user(self, user: int, last_slot: int, values: Integers) -> dict[tuple[int, int], int]:
        """Values at a user's cells up to a slot, by slot and cell."""
        index = self._index
        return {
            (int(index.slot[place]), int(index.cell[place])): int(values[place])
            for place in self._places_of(user, last_slot)
        }

    def _slice(self, slot: int) -> slice:
        return slice(int(self._index.starts[slot - 1]), int(self._index.starts[slot]))
