"""Personal budgets on arrays: for experiments, where the same data are gone through many times.

Floating point decides wherever it cannot be wrong, which is nearly everywhere: what is kept is a
whole number of parts. Users for whom rounding might matter are gone through again by
`contributions.reference`, in Python's integers, so that the result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions.array_index import CellIndex, Reals
from adsbpc.contributions.interface import (
    LARGEST_NEED,
    LARGEST_SIZED,
    Costs,
    Integers,
    check_edges,
    listed,
)
from adsbpc.contributions.reference import ReferenceAccounts, ReferenceUser, Row
from adsbpc.errors import ContributionError
from adsbpc.privacy.filter import (
    ALONE,
    FORECAST_BITS,
    LARGEST_COST,
    PARTS,
    Gram,
    Growth,
    Pace,
    Renewal,
    Terms,
)

Flags = NDArray[np.bool_]
Users = Integers | slice

# Wider than what rounding can do to a sum of floats of one sign, and to a number of parts.
UNSURE, _UNSURE_PARTS = 1e-9, 1e-4


@dataclass
class _Step:
    """What was public of a slot, as far as it has come."""

    costs: tuple[int, ...]
    sizes: tuple[int, ...]
    past: Gram | None
    renewal: Renewal | None = None
    terms: Terms | None = None


@dataclass
class _CutColumn:
    """What is counted of users of whom something was cut, a column each."""

    slots: int
    users: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    moved: Integers = field(init=False)
    spent: Reals = field(default_factory=lambda: np.zeros(0))
    fixed: Reals = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.moved = np.zeros((self.slots, 0), dtype=np.int64)

    def places(self, users: Integers) -> Integers:
        """Where users are, who get a place if they have none."""
        new = np.setdiff1d(users, self.users)
        if new.size:
            order = np.argsort(np.r_[self.users, new], kind="stable")
            self.users = np.r_[self.users, new][order]
            nothing = np.zeros((self.slots, new.size), dtype=np.int64)
            self.moved = np.concatenate([self.moved, nothing], axis=1)[:, order]
            self.spent = np.r_[self.spent, np.zeros(new.size)][order]
            self.fixed = np.r_[self.fixed, np.zeros(new.size)][order]
        return np.searchsorted(self.users, users)


class ArrayAccounts:
    """One run through the slots of an index."""

    def __init__(self, index: CellIndex) -> None:
        self.slots, self.layout = index.slots, index.layout
        self._index = index
        self._moved = np.zeros(index.user.size, dtype=np.int64)
        self._moved_of = [np.zeros(view.begins.size, dtype=np.int64) for view in index.columns]
        self._fixed: Reals = np.zeros(index.users)
        self._spent: Reals = np.zeros(index.users)
        self._sized_of = [view.summed(index.asked) for view in index.columns]
        self._own: Reals = np.zeros(index.users)
        self._across: Reals = np.zeros(index.users)
        self._seen = np.zeros(index.users, dtype=np.int64)
        self._cut = [_CutColumn(index.slots), _CutColumn(index.slots)]
        self._steps: list[_Step] = []

    # ---- needs ---------------------------------------------------------------------------------

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        costs = listed(costs)
        if len(costs) == len(self._steps):
            return
        if len(costs) != len(self._steps) + 1:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: slot {len(self._steps) + 1} is next"
            )
        self._steps.append(_Step(tuple(costs), tuple(sizes), past))
        if past is not None:
            asked = self._index.asked
            if sizes:
                asked = np.minimum(asked, LARGEST_SIZED) * np.array(sizes)[self._index.cell]
            self._sized_of = [view.summed(asked) for view in self._index.columns]
            self._own, self._across = np.zeros_like(self._own), np.zeros_like(self._across)
            self._seen[:] = 0
            for slot in range(1, len(costs)):
                self._add_needs(past[slot - 1][:slot])
        self._add_needs(costs)

    def _add_needs(self, costs: Sequence[int]) -> None:
        users = self._index.users
        for view, asked in zip(self._index.columns, self._sized_of, strict=True):
            part = view.slice_of(len(costs))
            now, user = asked[part].astype(np.float64), view.user[part]
            own = view.squared_weight * float(costs[-1]) * now**2
            across = view.squared_weight * 2 * now * view.before(costs, asked)
            self._own += np.bincount(user, own, users)
            self._across += np.bincount(user, across, users)
        self._seen[np.unique(self._index.user[self._slice(len(costs))])] += 1
        np.minimum(self._own, float(LARGEST_NEED), out=self._own)
        np.minimum(self._across, float(LARGEST_NEED), out=self._across)

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> Integers:
        check_edges(edges)
        self.open(costs)
        limits = np.array(edges, dtype=np.float64)
        users = np.flatnonzero(self._own > 0)
        need = self._own[users] + self._across[users]
        if growth is not None:
            need = self._expected(growth, users)
        slack = 0.0 if growth is None else float(max(growth.own) + max(growth.across))
        bins = np.searchsorted(limits, need, side="left")
        low, high = need * (1 - UNSURE) - slack, need * (1 + UNSURE) + slack
        unsure = np.searchsorted(limits, low) != np.searchsorted(limits, high)
        for place, user in zip(np.flatnonzero(unsure), users[unsure], strict=True):
            found = self.replayed(int(user))
            exact = found.need if growth is None else growth.of(found.account.need)
            bins[place] = sum(edge < exact for edge in edges)
        return np.bincount(bins, minlength=len(edges) + 1).astype(np.int64)

    def _expected(self, growth: Growth, users: Users) -> Reals:
        seen = np.maximum(self._seen[users], 1) - 1
        own, across = (
            np.minimum(np.floor(need[users] / 2**FORECAST_BITS), float(growth.largest))
            for need in (self._own, self._across)
        )
        factors = np.array(growth.own, dtype=np.float64), np.array(growth.across, dtype=np.float64)
        return np.asarray(own * factors[0][seen] + across * factors[1][seen])

    # ---- what is let in ------------------------------------------------------------------------

    def renew(self, renewal: Renewal) -> list[list[int]]:
        index, terms, users = self._index, renewal.terms, self._index.users
        self._steps[-1].renewal = renewal
        end = int(index.starts[terms.slot - 1])
        user, asked = index.user[:end], index.asked[:end]
        multipliers = self._multipliers(terms)[index.cell[:end]]
        coming: Reals = np.zeros(users)
        for view, moved in zip(index.columns, self._moved_of, strict=True):
            self._fixed += view.quadratic(renewal.ended, moved, users)
            summed = view.summed_until(asked * multipliers, terms.slot)
            coming += view.quadratic(renewal.coming, summed, users)
        sums = np.bincount(user, asked * multipliers.astype(np.float64), users)
        parts, unsure = self._parts(coming, np.zeros(users), terms, self._fixed, slice(None))
        most = float(renewal.largest_sum(self.layout.views))
        unsure |= (np.abs(sums / most - 1) < UNSURE) | (np.abs(coming / LARGEST_COST - 1) < UNSURE)
        parts[(sums > most) | (coming > LARGEST_COST)] = 0
        part = parts[user]
        kept = asked * part // PARTS
        self._moved[:end] = kept * multipliers
        whole = parts == PARTS
        charged = np.where(whole, coming, coming * (parts / PARTS) ** 2)
        self._spent = np.minimum(self._fixed + charged, float(terms.kept_limit))
        place = (index.slot[:end] - 1) * len(self.layout) + index.cell[:end]
        shape = terms.slot - 1, len(self.layout)
        cells = whole_sums(place, kept, shape[0] * shape[1]).reshape(shape)
        cut = np.zeros((terms.slot - 1, 0), dtype=np.int64)
        short = np.unique(user[part < PARTS])
        if short.size:
            of_short = np.searchsorted(short, user[part < PARTS])
            at = (index.slot[:end][part < PARTS] - 1) * short.size + of_short
            cut = whole_sums(at, (asked - kept)[part < PARTS], (terms.slot - 1) * short.size)
            cut = cut.reshape(terms.slot - 1, short.size)
        counted = self._renew_cut(short, cut, renewal, unsure)
        totals = [[*map(int, row), *more] for row, more in zip(cells, counted, strict=True)]
        present = np.unique(user)
        for each in present[unsure[present]]:
            self._settle(int(each), totals)
        self._sum_moved(0, terms.slot - 1)
        return totals

    def _renew_cut(
        self, users: Integers, left: Integers, renewal: Renewal, unsure: Flags
    ) -> list[list[int]]:
        """Count what was cut again, by slot; users for whom that is not sure are flagged."""
        slots = renewal.terms.slot - 1
        ended, coming = (np.array(g, dtype=np.float64) for g in (renewal.ended, renewal.coming))
        totals: list[list[int]] = [[] for _ in range(slots)]
        for tier, column in zip(renewal.terms.cuts, self._cut, strict=False):
            here = column.places(users)
            earlier = column.moved[:slots].astype(np.float64)
            column.fixed = column.fixed + np.einsum("su,sr,ru->u", earlier, ended, earlier)
            wished = (left * tier.multiplier).astype(np.float64)
            square = np.einsum("su,sr,ru->u", wished, coming, wished)
            room = tier.limit - column.fixed[here]
            parts, doubt = whole_parts(fitting(square, np.zeros_like(square), room))
            doubt &= square > 0
            most = float(renewal.largest_sum(ALONE))
            doubt |= (wished.sum(axis=0) > most * (1 - UNSURE)) | (
                square > LARGEST_COST * (1 - UNSURE)
            )
            unsure[users[doubt]] = True
            counted = left * parts // PARTS
            column.moved[:slots] = 0
            column.moved[:slots, here] = counted * tier.multiplier
            column.spent = column.fixed.copy()
            charged = np.where(parts == PARTS, square, square * (parts / PARTS) ** 2)
            column.spent[here] = np.minimum(column.fixed[here] + charged, float(tier.limit))
            for row, total in zip(totals, counted.sum(axis=1), strict=True):
                row.append(int(total))
            left = left - counted
        return totals

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        self._steps[-1].terms = terms
        index, part = self._index, self._slice(terms.slot)
        user, weight = index.user[part], index.asked[part]
        if not user.size:
            return [0] * (len(self.layout) + len(terms.cuts))
        multipliers = self._multipliers(terms)
        caps = np.array([terms.cap(int(each)) for each in multipliers])[index.cell[part]]
        of_cell = multipliers[index.cell[part]]
        begins = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
        present, lengths = user[begins], np.diff(np.r_[begins, user.size])
        square, cross = self._square_and_cross(terms, weight * of_cell)
        parts, unsure = self._parts(square, cross, terms, self._spent[present], present)
        unsure |= np.logical_or.reduceat(weight > caps, begins)
        of_row = np.repeat(parts, lengths)
        kept = weight * of_row // PARTS
        self._moved[part] = kept * of_cell
        is_short = parts < PARTS
        if is_short.any():
            square, cross = self._square_and_cross(terms, kept * of_cell)
        self._spent[present] += square + 2 * cross
        cells = whole_sums(index.cell[part], kept, len(self.layout))
        cut = np.add.reduceat(weight - kept, begins)[is_short]
        doubtful = np.zeros(index.users, dtype=np.bool_)
        doubtful[present] = unsure
        totals = [[*map(int, cells), *self._admit_cut(present[is_short], cut, terms, doubtful)]]
        for each in present[doubtful[present]]:
            self._settle(int(each), totals)
        self._sum_moved(terms.slot - 1, terms.slot)
        return totals[0]

    def _admit_cut(self, users: Integers, left: Integers, terms: Terms, unsure: Flags) -> list[int]:
        totals, costs = [], np.array(terms.listed[:-1], dtype=np.float64)
        for tier, column in zip(terms.cuts, self._cut, strict=False):
            here = column.places(users)
            before = costs @ column.moved[: terms.slot - 1, here].astype(np.float64)
            unsure[users[left > terms.cap(tier.multiplier)]] = True
            wished = (left * tier.multiplier).astype(np.float64)
            square, cross = terms.own * wished**2, wished * before
            room = tier.limit - column.spent[here]
            parts, doubt = whole_parts(fitting(square, cross, room))
            unsure[users[doubt & (left > 0)]] = True
            counted = left * parts // PARTS
            moved = counted * tier.multiplier
            column.moved[terms.slot - 1, here] = moved
            column.spent[here] += terms.own * moved.astype(np.float64) ** 2 + 2 * moved * before
            totals.append(int(counted.sum()))
            left = left - counted
        return totals

    def _parts(
        self, square: Reals, cross: Reals, terms: Terms, spent: Reals, users: Users
    ) -> tuple[Integers, Flags]:
        """How many parts of users are kept, and of whom that is not sure."""
        found = fitting(square, cross, terms.kept_limit - spent)
        if terms.pace is not None:
            growth = self._expected(terms.pace.growth, users)
            found = _paced(found, square, cross, terms.kept_limit, spent, terms.pace, growth)
        parts, unsure = whole_parts(found)
        unsure &= square > 0
        if terms.pace is not None:
            after = spent + square + 2 * cross
            unsure |= np.abs(after / terms.pace.free - 1) < UNSURE
        return parts, unsure

    def _square_and_cross(self, terms: Terms, moved: Integers) -> tuple[Reals, Reals]:
        """Of the users of a slot in their order, for what is moved in its cells."""
        square = cross = np.zeros(0)
        start = int(self._index.starts[terms.slot - 1])
        for view, earlier in zip(self._index.columns, self._moved_of, strict=True):
            columns = view.slice_of(terms.slot)
            user = view.user[columns]
            begins = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
            now = np.add.reduceat(moved, view.begins[columns] - start).astype(np.float64)
            weight, before = float(view.squared_weight), view.before(terms.listed, earlier)
            of_view = (
                weight * np.add.reduceat(float(terms.own) * now**2, begins),
                weight * np.add.reduceat(now * before, begins),
            )
            square = square + of_view[0] if square.size else of_view[0]
            cross = cross + of_view[1] if cross.size else of_view[1]
        return square, cross

    def _multipliers(self, terms: Terms) -> Integers:
        return np.array([terms.multiplier_of(cell) for cell in range(len(self.layout))])

    def _sum_moved(self, after_slot: int, last_slot: int) -> None:
        """Sums of the columns of views, for slots of which cells have changed."""
        start, end = (int(self._index.starts[slot]) for slot in (after_slot, last_slot))
        for view, moved in zip(self._index.columns, self._moved_of, strict=True):
            columns = slice(int(view.starts[after_slot]), int(view.starts[last_slot]))
            if columns.start < columns.stop:
                begins = view.begins[columns] - start
                moved[columns] = np.add.reduceat(self._moved[start:end], begins)

    # ---- exactly -------------------------------------------------------------------------------

    def replayed(self, user: int) -> ReferenceUser:
        """One user from the first slot to where the steps are, in whole numbers."""
        places = self._places_of(user, len(self._steps))
        rows = [
            Row(str(user), *(int(of[place]) for of in (
                self._index.slot, self._index.cell, self._index.asked)))
            for place in places
        ]  # fmt: skip
        accounts = ReferenceAccounts(rows, self.slots, self.layout)
        for step in self._steps:
            accounts.open(step.costs, step.sizes, step.past)
            if step.renewal is not None:
                accounts.renew(step.renewal)
            if step.terms is not None:
                accounts.admit(step.terms)
        return accounts.users[str(user)]

    def _settle(self, user: int, totals: list[list[int]]) -> None:
        """Correct the books of a user, and totals of the slots that a step has let in, which are
        the last ones."""
        account, cells = self.replayed(user).account, len(self.layout)
        step = self._steps[-1]
        terms = step.terms or (step.renewal.terms if step.renewal else None)
        assert terms is not None
        first = terms.slot if step.terms is not None else 1
        for place in self._places_of(user, first + len(totals) - 1):
            slot, cell = int(self._index.slot[place]), int(self._index.cell[place])
            if slot >= first:
                multiplier = terms.multiplier_of(cell)
                now = account.moved.get((slot, cell), 0)
                totals[slot - first][cell] += (now - int(self._moved[place])) // multiplier
                self._moved[place] = now
        self._spent[user], self._fixed[user] = account.spent[0], account.fixed[0]
        for number, tier in enumerate(terms.cuts, start=1):
            column = self._cut[number - 1]
            (here,) = column.places(np.array([user]))
            for row, slot in zip(totals, range(first, first + len(totals)), strict=True):
                now = account.moved.get((slot, cells + number - 1), 0)
                row[cells + number - 1] += (now - int(column.moved[slot - 1, here])) // (
                    tier.multiplier
                )
                column.moved[slot - 1, here] = now
            column.spent[here] = account.spent[number]
            column.fixed[here] = account.fixed[number]

    def _places_of(self, user: int, last_slot: int) -> Integers:
        index = self._index
        places = index.by_user[index.first_of_user[user] : index.first_of_user[user + 1]]
        return places[index.slot[places] <= last_slot]

    def _slice(self, slot: int) -> slice:
        return slice(int(self._index.starts[slot - 1]), int(self._index.starts[slot]))


def fitting(square: Reals, cross: Reals, room: Reals) -> Reals:
    """How many parts fit, no whole number yet, and more than PARTS if there is room for more."""
    inside = np.maximum(room, 0)
    root = cross + np.sqrt(cross**2 + square * inside)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = PARTS * inside / root
    return np.where(square > 0, np.where(room > 0, found, 0.0), 2.0 * PARTS)


def _paced(
    found: Reals, square: Reals, cross: Reals, limit: int, spent: Reals, pace: Pace, growth: Reals
) -> Reals:
    """The same with a pace, where so much more is expected of everybody."""
    after = spent + square + 2 * cross
    until_the_end = np.minimum(square + 2 * cross + growth, float(LARGEST_COST))
    paced = fitting(until_the_end, np.zeros_like(square), limit - spent)
    paced = np.maximum(paced, fitting(square, cross, pace.free - spent))
    return np.where(after <= pace.free, found, np.minimum(found, paced))


def whole_parts(found: Reals) -> tuple[Integers, Flags]:
    near = np.abs(found - np.rint(found)) < _UNSURE_PARTS
    return np.minimum(np.floor(found), PARTS).astype(np.int64), near & (found < PARTS + 1)


def whole_sums(places: Integers, values: Integers, size: int) -> Integers:
    """Sums of whole numbers, which floats would round."""
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, places, values)
    return found
