"""Caps and histograms in plain Python, one user at a time: the oracle for both implementations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from adsbpc.contributions.interface import LARGEST_NEED
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import Account, Terms, admit, largest_cell, square_and_cross


@dataclass(frozen=True)
class Row:
    """One conversion's weight for one cell; a user's rows come in time order."""

    user: str
    slot: int
    cell: int
    weight: int


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
class _User:
    asked: dict[tuple[int, int], int] = field(default_factory=dict)
    need: int = 0
    account: Account = field(default_factory=Account)


class ReferenceAccounts:
    """Personal budgets, one user at a time, with Python's integers."""

    def __init__(self, rows: Iterable[Row], slots: int, layout: Layout) -> None:
        self.slots, self.layout = slots, layout
        self.users: dict[str, _User] = defaultdict(_User)
        self._rows = list(rows)
        self._slot = 0

    def _open(self, costs: Sequence[int]) -> None:
        if len(costs) == self._slot:
            return
        self._slot, most = len(costs), largest_cell(self.layout)
        for row in self._rows:
            if row.slot == self._slot and row.weight > 0:
                asked, place = self.users[row.user].asked, (row.slot, row.cell)
                if self.layout.once and any((s, row.cell) in asked for s in range(1, row.slot)):
                    continue
                asked[place] = min(asked.get(place, 0) + row.weight, most)
        for user in self.users.values():
            user.need = min(user.need + self._more(user, costs), LARGEST_NEED)

    def _more(self, user: _User, costs: Sequence[int]) -> int:
        """What the slot adds to what everything that was asked for would cost."""
        now, before = dict[int, int](), dict[int, int]()
        for (slot, cell), weight in user.asked.items():
            if slot == self._slot:
                now[cell] = weight
            else:
                before[cell] = before.get(cell, 0) + costs[slot - 1] * weight
        square, cross = square_and_cross(before, now, self.layout.views, costs[-1])
        return square + 2 * cross

    def needs(self, costs: Sequence[int], edges: Sequence[int]) -> list[int]:
        self._open(costs)
        counts = [0] * (len(edges) + 1)
        for user in self.users.values():
            counts[sum(edge < user.need for edge in edges)] += 1
        return counts

    def admit(self, terms: Terms) -> list[int]:
        self._open(terms.costs)
        totals = [0] * (len(self.layout) + 1)
        for user in self.users.values():
            mine = {p: weight for (slot, p), weight in user.asked.items() if slot == terms.slot}
            for column, weight in admit(user.account, mine, self.layout, terms).items():
                totals[column] += weight
        return totals
