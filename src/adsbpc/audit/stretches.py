"""Rows that were released, and stretches of them between renewals.

Row t holds the sum over slots s <= t of B_ts z_s, where z_s is what the books say that was moved at
slot s. A renewal changes what rows from then on hold of all slots so far; those before it stay as
they are. So the rows of a campaign are stretches, each with books of its own. A campaign that never
renewed the past, as none by slots has, is one stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from adsbpc.audit.claims import BrokenClaimError, require
from adsbpc.audit.long_strategy import ShiftedRows
from adsbpc.audit.promised_plan import PromisedPlan, Rows
from adsbpc.audit.record import Record

# A cell of this size has the multiplier of cells alike; others in proportion.
ONE_SIZE = 64
# By slot and earlier slot or the same.
Gram = dict[tuple[int, int], int]


@dataclass(frozen=True)
class ReleasedRow:
    """What the ledger keeps of a slot. `multipliers` are by place: of every cell, then of the
    columns that count what was cut. `slots` are those that its books are about; `kept`, SECRET, has
    totals by place for each of them, in grid units."""

    slot: int
    multipliers: tuple[int, ...]
    is_renewal: bool
    kept: Sequence[Sequence[Any]]

    @property
    def slots(self) -> range:
        return range(1 if self.is_renewal else self.slot, self.slot + 1)

    def moved(self) -> list[list[int]]:
        """SECRET: m X by slot and place."""
        totals = [total for own in self.kept for total in own]
        if not all(type(total) is int for total in totals):
            raise BrokenClaimError(f"slot {self.slot}: kept totals that are no whole numbers")
        require(
            [len(own) for own in self.kept] == [len(self.multipliers)] * len(self.slots),
            f"slot {self.slot}: the totals that were kept are not one for each slot and place",
        )
        return [
            [each * total for each, total in zip(self.multipliers, own, strict=True)]
            for own in self.kept
        ]


def released_rows(record: Record, plan: PromisedPlan) -> list[ReleasedRow]:
    """Of the slots so far, in order."""
    return [
        (_by_rows if plan.by_rows else _by_slots)(number, slot.step, plan)
        for number, slot in enumerate(record.in_order(), start=1)
    ]


def _by_slots(slot: int, step: dict[str, Any], plan: PromisedPlan) -> ReleasedRow:
    alike, cut = _checked([step["multiplier"], step["cut_multiplier"]])
    return ReleasedRow(slot, (*[alike] * plan.columns.cells, cut), False, [step["kept"]])


def _by_rows(slot: int, step: dict[str, Any], plan: PromisedPlan) -> ReleasedRow:
    alike, *cuts = _checked(step["multipliers"])
    sizes = _checked(step["sizes"]) or [ONE_SIZE] * plan.columns.cells
    require(
        len(cuts) == plan.cuts and len(sizes) == plan.columns.cells,
        f"slot {slot} has {len(cuts)} multipliers of what was cut and {len(sizes)} sizes: expected "
        f"{plan.cuts} and {plan.columns.cells}",
    )
    of_cells = [max(1, alike * size // ONE_SIZE) for size in sizes]
    return ReleasedRow(slot, (*of_cells, *cuts), step["renewal"] is True, step["kept"])


def _checked(numbers: Sequence[Any]) -> Sequence[int]:
    if not all(type(each) is int and each >= 1 for each in numbers):
        raise BrokenClaimError(f"multipliers of {numbers}: expected whole numbers above 0")
    return numbers


@dataclass(frozen=True)
class Stretch:
    """Rows from `first` on hold what the books of the slots from `first` to `end` say, those of
    slot `first` about all slots before it too. `ended` has sums over the rows to `end` of
    B_ts B_tr, `whole` over all rows from `first` on, those of the future too, as if the past were
    never let in again. `multipliers` are those that the past was let in again with."""

    first: int
    end: int
    ended: Gram
    whole: Gram
    multipliers: tuple[int, ...]

    @property
    def slots(self) -> range:
        return range(self.first, self.end + 1)


def stretches_of(released: Sequence[ReleasedRow], rows: Rows) -> list[Stretch]:
    """In order; the last one goes on."""
    if isinstance(rows, ShiftedRows):
        # A long campaign never renews the past.
        count = len(released)
        ended, whole = (rows.gram(last, count) for last in (count, len(rows)))
        return [Stretch(1, count, ended, whole, released[0].multipliers)]
    firsts = [1, *(row.slot for row in released if row.is_renewal and row.slot > 1)]
    found: list[Stretch] = []
    coming = gram(rows, len(released) + 1, len(rows), len(released))
    for first, after in reversed(list(pairwise([*firsts, len(released) + 1]))):
        ended = gram(rows, first, after - 1, after - 1)
        coming = {pair: entry + coming[pair] for pair, entry in ended.items()}
        found.insert(0, Stretch(first, after - 1, ended, coming, released[first - 1].multipliers))
    return found


def gram(rows: Rows, first: int, last: int, slots: int) -> Gram:
    """Sums over some rows of products of two of their entries, for slots up to a last one.

    >>> gram([[2], [1, 3]], 1, 2, slots=2)
    {(1, 1): 5, (2, 1): 3, (2, 2): 9}
    >>> gram([[2], [1, 3]], 2, 2, slots=1)
    {(1, 1): 1}
    """
    columns = [
        [rows[t][s] for t in range(max(s, first - 1), last)] for s in range(min(slots, last))
    ]
    return {
        (t + 1, s + 1): sum(
            a * b for a, b in zip(late, early[len(early) - len(late) :], strict=True)
        )
        for t, late in enumerate(columns)
        for s, early in enumerate(columns[: t + 1])
    }
