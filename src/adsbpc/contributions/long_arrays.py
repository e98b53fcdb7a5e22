"""Personal budgets of long campaigns on arrays, for experiments.

Running sums are whole numbers. Floating point decides about parts wherever it cannot be wrong;
users for whom rounding might matter are gone through again by `contributions.reference`, in
Python's integers, so that the result is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adsbpc.contributions.array_accounts import UNSURE, Flags, fitting, whole_parts, whole_sums
from adsbpc.contributions.array_index import CellIndex, Reals
from adsbpc.contributions.interface import (
    LARGEST_NEED,
    Costs,
    Integers,
    check_edges,
    crossing_of,
    largest_needed,
)
from adsbpc.contributions.reference import LongReferenceAccounts, LongReferenceUser, Row
from adsbpc.errors import ContributionError
from adsbpc.model.layout import View
from adsbpc.privacy.decays import BITS, Crossing
from adsbpc.privacy.filter import PARTS, Gram, Growth, Renewal, Terms

# Running sums are below 2^50, and are multiplied in two halves, the lower of so many bits.
_HALF = 24


class _Sums:
    """Running sums of many places, each with the slot that they are of."""

    def __init__(self, places: int) -> None:
        self._slot = np.zeros(places, dtype=np.int64)
        self._sums: Integers = np.zeros((0, places), dtype=np.int64)

    def _decayed(self, crossing: Crossing, places: Integers) -> Integers:
        if not len(self._sums):
            shape = len(crossing.factors), len(self._slot)
            self._sums = np.zeros(shape, dtype=np.int64)
        gaps = crossing.slot - self._slot[places]
        return np.array(
            [
                _times_up(sums[places], np.array(powers)[gaps])
                for sums, powers in zip(self._sums, crossing.powers, strict=True)
            ]
        )

    def before(self, crossing: Crossing, places: Integers) -> Reals:
        """What earlier slots add to the costs of places."""
        factors = np.array(crossing.factors, dtype=np.float64)
        return np.asarray(factors @ self._decayed(crossing, places).astype(np.float64))

    def add(self, crossing: Crossing, places: Integers, moved: Integers) -> None:
        """Bring places to the slot, of which each is there once, and add to them."""
        self._sums[:, places] = self._decayed(crossing, places) + moved
        self._slot[places] = crossing.slot


def _times_up(sums: Integers, powers: Integers) -> Integers:
    """Products in parts of 2^BITS, rounded up."""
    high, low = sums >> _HALF, sums & (2**_HALF - 1)
    product, apart = high * powers, BITS - _HALF
    rest = ((product & (2**apart - 1)) << _HALF) + low * powers
    return np.asarray((product >> apart) + ((rest + 2**BITS - 1) >> BITS))


@dataclass
class _Step:
    crossing: Crossing
    terms: Terms | None = None


class LongArrayAccounts:
    """One run through the slots of an index."""

    def __init__(self, index: CellIndex) -> None:
        self.slots, self.layout, self._index = index.slots, index.layout, index
        # Places of running sums: a user's cells side by side.
        key = index.user * len(index.layout) + index.cell
        self._keys, self._place = np.unique(key, return_inverse=True)
        self._first = np.searchsorted(self._keys, np.arange(index.users + 1) * len(index.layout))
        self._moved, self._asked = _Sums(self._keys.size), _Sums(self._keys.size)
        self._cut = _Sums(index.users)
        self._spent, self._cut_spent = np.zeros(index.users), np.zeros(index.users)
        self._own, self._across = np.zeros(index.users), np.zeros(index.users)
        self._steps: list[_Step] = []

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        crossing = crossing_of(costs)
        if crossing.slot == len(self._steps):
            return
        if crossing.slot != len(self._steps) + 1 or sizes or past:
            raise ContributionError(
                f"slot {crossing.slot} of personal budgets: slot {len(self._steps) + 1} of a long "
                "campaign is next, where cells have no sizes"
            )
        self._steps.append(_Step(crossing))
        part = self._slice(crossing.slot)
        if part.start == part.stop:
            return
        present = np.unique(self._index.user[part])
        wished = np.minimum(self._index.asked[part], largest_needed(self.layout))
        square, cross = self._square_and_cross(crossing, present, wished, self._asked)
        self._own[present] += square
        self._across[present] += 2 * cross
        np.minimum(self._own, float(LARGEST_NEED), out=self._own)
        np.minimum(self._across, float(LARGEST_NEED), out=self._across)
        self._asked.add(crossing, self._place[part], wished)

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> Integers:
        check_edges(edges)
        if growth is not None:
            raise ContributionError("needs of long campaigns are not forecast for a user")
        self.open(costs)
        limits, users = np.array(edges, dtype=np.float64), np.flatnonzero(self._own > 0)
        need = self._own[users] + self._across[users]
        bins = np.searchsorted(limits, need, side="left")
        low, high = (np.searchsorted(limits, need * (1 + by)) for by in (-UNSURE, UNSURE))
        for place in np.flatnonzero(low != high):
            exact = self._replayed(int(users[place]))[0].account.need
            bins[place] = sum(edge < exact.own + exact.across for edge in edges)
        return np.bincount(bins, minlength=len(edges) + 1).astype(np.int64)

    def renew(self, renewal: Renewal) -> list[list[int]]:
        raise ContributionError(
            f"slot {renewal.terms.slot}: a long campaign does not measure its past again"
        )

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        self._steps[-1].terms = terms
        index, part, crossing = self._index, self._slice(terms.slot), self._steps[-1].crossing
        user, asked = index.user[part], index.asked[part]
        if not user.size:
            return [0] * (len(self.layout) + 1)
        present, rows = np.unique(user, return_inverse=True)
        moved = asked * terms.multiplier
        square, cross = self._square_and_cross(crossing, present, moved, self._moved)
        room = terms.kept_limit - self._spent[present]
        parts, unsure = whole_parts(fitting(square, cross, room))
        unsure |= np.bincount(rows, asked > terms.cap(terms.multiplier)) > 0
        kept = asked * parts[rows] // PARTS
        cut = np.zeros(present.size, dtype=np.int64)
        np.add.at(cut, rows, asked - kept)
        counted, doubt, charges = self._count_cut(crossing, present, cut, terms)
        square, cross = self._square_and_cross(
            crossing, present, kept * terms.multiplier, self._moved
        )
        self._spent[present] += square + 2 * cross
        self._cut_spent[present] += charges
        for place in np.flatnonzero(unsure | doubt):
            found, totals = self._replayed(int(present[place]))
            mine = rows == place
            kept[mine] = [totals[cell] for cell in index.cell[part][mine]]
            counted[place] = totals[-1]
            self._spent[present[place]], self._cut_spent[present[place]] = found.account.spent[:2]
        some = kept > 0
        self._moved.add(crossing, self._place[part][some], kept[some] * terms.multiplier)
        some = counted > 0
        self._cut.add(crossing, present[some], counted[some] * terms.cut_multiplier)
        cells = whole_sums(index.cell[part], kept, len(self.layout))
        return [*map(int, cells), int(counted.sum())]

    def _count_cut(
        self, crossing: Crossing, users: Integers, cut: Integers, terms: Terms
    ) -> tuple[Integers, Flags, Reals]:
        """What is counted of what was cut, of whom that is not sure, and what it costs."""
        before = self._cut.before(crossing, users)
        wished = (cut * terms.cut_multiplier).astype(np.float64)
        square, cross = terms.own * wished**2, wished * before
        found = fitting(square, cross, terms.cut_limit - self._cut_spent[users])
        parts, doubt = whole_parts(found)
        doubt = (doubt | (cut > terms.cap(terms.cut_multiplier))) & (cut > 0)
        counted = cut * parts // PARTS
        moved = (counted * terms.cut_multiplier).astype(np.float64)
        return counted, doubt, terms.own * moved**2 + 2 * moved * before

    def _square_and_cross(
        self, crossing: Crossing, present: Integers, moved: Integers, sums: _Sums
    ) -> tuple[Reals, Reals]:
        """For the users of a slot, in their order, and what they move in its cells."""
        part, first = self._slice(crossing.slot), self._first
        # All places of those users, one after the other.
        counts = first[present + 1] - first[present]
        skipped = np.repeat(first[present] - np.r_[0, np.cumsum(counts)[:-1]], counts)
        places = np.arange(counts.sum()) + skipped
        before = sums.before(crossing, places)
        square, cross = np.zeros(present.size), np.zeros(present.size)
        for view in self.layout.views:
            keys, now_at = np.unique(
                self._columns(view, self._keys[self._place[part]]), return_inverse=True
            )
            now = np.bincount(now_at, moved.astype(np.float64), keys.size)
            earlier_key = self._columns(view, self._keys[places])
            at = np.minimum(np.searchsorted(keys, earlier_key), keys.size - 1)
            is_asked = keys[at] == earlier_key
            earlier = np.bincount(at[is_asked], before[is_asked], keys.size)
            owner = np.searchsorted(present, keys // view.columns)
            weight = float(view.weight**2)
            square += weight * np.bincount(owner, float(crossing.own) * now**2, present.size)
            cross += weight * np.bincount(owner, now * earlier, present.size)
        return square, cross

    def _columns(self, view: View, keys: Integers) -> Integers:
        user, cell = np.divmod(keys, len(self.layout))
        return np.asarray(user * view.columns + cell // view.stride)

    def _replayed(self, user: int) -> tuple[LongReferenceUser, list[int]]:
        """One user from the first slot to where the steps are, in whole numbers; and what was let
        in of the last."""
        index = self._index
        mine = index.by_user[index.first_of_user[user] : index.first_of_user[user + 1]]
        rows = [
            Row(str(user), int(index.slot[at]), int(index.cell[at]), int(index.asked[at]))
            for at in mine
        ]
        accounts, totals = LongReferenceAccounts(rows, self.slots, self.layout), list[int]()
        for step in self._steps:
            accounts.open(step.crossing)
            totals = accounts.admit(step.terms) if step.terms is not None else []
        return accounts.users[str(user)], totals

    def _slice(self, slot: int) -> slice:
        return slice(int(self._index.starts[slot - 1]), int(self._index.starts[slot]))
