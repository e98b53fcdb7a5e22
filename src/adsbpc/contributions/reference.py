"""Caps and histograms in plain Python, one user at a time: the oracle for both implementations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from adsbpc.contributions.interface import (
    LARGEST_NEED,
    LARGEST_SIZED,
    Costs,
    crossing_of,
    largest_needed,
    listed,
)
from adsbpc.model.layout import Layout
from adsbpc.privacy.decays import Crossing, RunningSums
from adsbpc.privacy.filter import (
    Account,
    Gram,
    Growth,
    Need,
    Renewal,
    Terms,
    admit,
    largest_cell,
    renew,
    square_and_cross,
)
from adsbpc.privacy.long_account import LongAccount


@dataclass(frozen=True)
class Row:
    """One conversion's weight for one cell; a user's rows come in time order."""

    user: str
    slot: int
    cell: int
    weight: int


def taken_apart(rows: Iterable[Row], layout: Layout) -> list[Row]:
    """In the cells of a layout that is taken apart: what is in a finest cell is in its sums too."""
    firsts = list(accumulate((view.columns for view in layout.stood_for), initial=0))
    return [
        replace(row, cell=first + row.cell // view.stride)
        for row in rows
        for first, view in zip(firsts, layout.stood_for, strict=False)
    ]


def _of_user(rows: Iterable[Row], slot: int | None) -> list[list[Row]]:
    users: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if slot is None or row.slot == slot:
            users[row.user].append(row)
    return list(users.values())


def histogram(rows: Iterable[Row], slot: int, edges: Sequence[int]) -> list[int]:
    counts = [0] * (len(edges) + 1)
    for mine in _of_user(rows, slot):
        total = sum(row.weight for row in mine)
        if total > 0:
            counts[sum(edge < total for edge in edges)] += 1
    return counts


def users_above(rows: Iterable[Row], slot: int, bound: int) -> int:
    return sum(sum(row.weight for row in mine) > bound for mine in _of_user(rows, slot))


def _keep_first(mine: list[Row], bound: int | None) -> list[tuple[Row, int]]:
    kept = []
    left = sum(row.weight for row in mine) if bound is None else bound
    for row in mine:
        weight = min(row.weight, left)
        left -= weight
        kept.append((row, weight))
    return kept


def totals(rows: Iterable[Row], slot: int, cells: int, bound: int | None = None) -> list[int]:
    sums = [0] * cells
    for mine in _of_user(rows, slot):
        for row, weight in _keep_first(mine, bound):
            sums[row.cell] += weight
    return sums


def totals_lifetime(rows: Iterable[Row], slots: int, cells: int, bound: int) -> list[list[int]]:
    sums = [[0] * cells for _ in range(slots)]
    for mine in _of_user(rows, None):
        for row, weight in _keep_first(sorted(mine, key=lambda row: row.slot), bound):
            sums[row.slot - 1][row.cell] += weight
    return sums


@dataclass
class ReferenceUser:
    """What somebody asked for, and the books."""

    asked: dict[tuple[int, int], int] = field(default_factory=dict)
    account: Account = field(default_factory=Account)

    @property
    def need(self) -> int:
        return self.account.need.own + self.account.need.across

    def add_need(
        self, slot: int, costs: Sequence[int], sizes: Sequence[int], layout: Layout
    ) -> None:
        """What a slot adds to what everything that was asked for would cost."""
        now, before = dict[int, int](), dict[int, int]()
        for (earlier, cell), weight in self.asked.items():
            sized = min(weight, LARGEST_SIZED) * sizes[cell] if sizes else weight
            if earlier == slot:
                now[cell] = sized
            elif earlier < slot:
                before[cell] = before.get(cell, 0) + costs[earlier - 1] * sized
        if not now:
            return
        square, cross = square_and_cross(before, now, layout.views, costs[-1])
        need = self.account.need
        need.own = min(need.own + square, LARGEST_NEED)
        need.across = min(need.across + 2 * cross, LARGEST_NEED)
        need.seen += 1


class ReferenceAccounts:
    """Personal budgets, one user at a time, with Python's integers."""

    def __init__(self, rows: Iterable[Row], slots: int, layout: Layout) -> None:
        self.slots, self.layout = slots, layout
        self.users: dict[str, ReferenceUser] = defaultdict(ReferenceUser)
        self._rows = list(rows)
        self._slot = 0
        self._sizes: Sequence[int] = ()

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        costs = listed(costs)
        if len(costs) == self._slot:
            return
        self._slot, most = len(costs), largest_cell(self.layout)
        self._sizes = sizes
        for row in self._rows:
            if row.slot == self._slot and row.weight > 0:
                asked, place = self.users[row.user].asked, (row.slot, row.cell)
                if self.layout.once and any((s, row.cell) in asked for s in range(1, row.slot)):
                    continue
                asked[place] = min(asked.get(place, 0) + row.weight, most)
        for user in self.users.values():
            if past is not None:
                user.account.need = Need()
                for slot in range(1, self._slot):
                    user.add_need(slot, past[slot - 1][:slot], sizes, self.layout)
            user.add_need(self._slot, costs, sizes, self.layout)

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> list[int]:
        self.open(costs)
        counts = [0] * (len(edges) + 1)
        for user in self.users.values():
            need = user.need if growth is None else growth.of(user.account.need)
            counts[sum(edge < need for edge in edges)] += 1
        return counts

    def renew(self, renewal: Renewal) -> list[list[int]]:
        slot, columns = renewal.terms.slot, len(self.layout) + len(renewal.terms.cuts)
        totals = [[0] * columns for _ in range(slot - 1)]
        for user in self.users.values():
            past = {place: weight for place, weight in user.asked.items() if place[0] < slot}
            for (earlier, cell), kept in renew(user.account, past, self.layout, renewal).items():
                totals[earlier - 1][cell] += kept
        return totals

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        totals = [0] * (len(self.layout) + len(terms.cuts))
        for user in self.users.values():
            mine = {p: weight for (slot, p), weight in user.asked.items() if slot == terms.slot}
            for column, weight in admit(user.account, mine, self.layout, terms).items():
                totals[column] += weight
        return totals


@dataclass
class LongReferenceUser:
    """Running sums of what somebody asked for, and the books."""

    wished: RunningSums = field(default_factory=lambda: RunningSums({}))
    account: LongAccount = field(default_factory=LongAccount)
    asked: dict[int, int] = field(default_factory=dict)

    def open(self, crossing: Crossing, layout: Layout) -> None:
        """What the slot adds to what everything that was asked for would cost."""
        if not self.asked:
            return
        most, need = largest_needed(layout), self.account.need
        now = {cell: min(weight, most) for cell, weight in self.asked.items()}
        before = self.wished.before(crossing)
        square, cross = square_and_cross(before, now, layout.views, crossing.own)
        need.own = min(need.own + square, LARGEST_NEED)
        need.across = min(need.across + 2 * cross, LARGEST_NEED)
        need.seen += 1
        self.wished.add(crossing, now)


class LongReferenceAccounts:
    """Personal budgets of a long campaign, one user at a time, with Python's integers."""

    def __init__(self, rows: Iterable[Row], slots: int, layout: Layout) -> None:
        self.slots, self.layout = slots, layout
        self.users: dict[str, LongReferenceUser] = defaultdict(LongReferenceUser)
        self._rows: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            self._rows[row.slot].append(row)
        self._slot = 0

    def open(self, costs: Costs) -> None:
        crossing = crossing_of(costs)
        if crossing.slot == self._slot:
            return
        self._slot, most = crossing.slot, largest_cell(self.layout)
        for user in self.users.values():
            user.asked = {}
        for row in self._rows[self._slot]:
            user = self.users[row.user]
            if row.weight > 0 and not (self.layout.once and row.cell in user.wished.cells):
                user.asked[row.cell] = min(user.asked.get(row.cell, 0) + row.weight, most)
        for user in self.users.values():
            user.open(crossing, self.layout)

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> list[int]:
        self.open(costs)
        assert growth is None
        counts = [0] * (len(edges) + 1)
        for user in self.users.values():
            need = user.account.need.own + user.account.need.across
            counts[sum(edge < need for edge in edges)] += 1
        return counts

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        totals = [0] * (len(self.layout) + len(terms.cuts))
        for user in self.users.values():
            if user.asked:
                for column, weight in admit(user.account, user.asked, self.layout, terms).items():
                    totals[column] += weight
        return totals
