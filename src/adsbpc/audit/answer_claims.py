"""The claim that published answers follow from the noisy values beside them, and nothing else.

Noise is in the values: an answer that was put together from anything else would have none. Under
personal budgets row t is y_t = sum of B_ts m_s X_s over slots s <= t, with noise, or by rows m_t
times the sum of B_ts X_s as the row holds them; it is solved for X slot after slot. Under AdsBPC
values are the estimates of X. X has a column for every sum of a view; the cells that fit them best
are added up again. Answers are sums of those, and of what is added because it was cut.
Where people are counted once, each column is what it says, and nothing is added up over cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from math import sqrt

from adsbpc.audit.added_cut import AddedCut, precisions_of, solved
from adsbpc.audit.claims import Claim, claim, require
from adsbpc.audit.columns import Columns
from adsbpc.audit.cut_by_bounds import CutByBounds
from adsbpc.audit.promised_plan import CONVERSION, PromisedPlan
from adsbpc.audit.record import Answer, Record, Slot
from adsbpc.audit.stretches import ReleasedRow, released_rows

# Room for rounding: of the answer's standard error, of the answer, and of a cell's part in what was
# cut, where the roots of small differences are taken.
_OF_THE_ERROR, _OF_THE_VALUE, _OF_A_PART = 1e-6, 1e-9, 1e-6

Span = tuple[int, int]


def answers(record: Record, plan: PromisedPlan) -> Claim:
    def check() -> str:
        slots = record.in_order()
        answered = _Answered(record, plan, slots)
        count = others = 0
        for number, slot in enumerate(slots, start=1):
            (own,) = slot.answers.values()
            answered.turn_to(number, slot)
            for answer in own:
                is_sum = answered.check(answer)
                count += is_sum
                others += not is_sum
        return f"{count:,} answers" + (
            f"; {others:,} are no sums, and NOT CHECKED" if others else ""
        )

    return claim("answers", "published sums over slots against the noisy values", check)


class _Answered:
    """What answers must say, slot after slot."""

    def __init__(self, record: Record, plan: PromisedPlan, slots: Sequence[Slot]) -> None:
        first_list = next(iter(plan.lists.values()))
        self._plan, self._number = plan, 0
        self._names = {name: place for place, name in enumerate(first_list)}
        # By slot and cell, in the metric.
        cells = [
            [cell * plan.worth / CONVERSION for cell in own] for own in estimates(record, plan)
        ]
        self._cells_so_far = list(_running_sums(cells))
        # By dimensions told apart, place and slot.
        views = [plan.columns.views_of(each) for each in cells]
        self._running = [
            [
                [0.0, *accumulate(column)]
                for column in zip(*(view[d] for view in views), strict=True)
            ]
            for d in range(len(plan.lists) + 1)
        ]
        # Where everybody is in one arm, once, nobody is cut.
        self._added: AddedCut | CutByBounds | None = None
        if plan.adds_cut:
            self._added = CutByBounds(plan, slots)
        elif plan.by_rows and not plan.one_figure_each:
            values = [slot.release["values"] for slot in slots]
            scale = float(slots[0].release["scale"])
            self._added = AddedCut(plan, released_rows(record, plan), values, scale)

    def turn_to(self, number: int, slot: Slot) -> None:
        """Answers that follow are those of this slot."""
        self._number, told = number, slot.release["spread"] or []
        if self._added is None:
            require(not told, f"slot {number} spreads what was cut, and adds nothing")
            return
        parts = self._added.parts(number, self._cells_so_far[number - 1])
        require(
            len(told) == len(parts)
            and all(abs(a - b) <= _OF_A_PART for a, b in zip(told, parts, strict=True)),
            f"slot {number} spreads what was cut over cells otherwise than what was released of "
            "them says",
        )
        self._parts = self._plan.columns.views_of(parts)
        squared, added = sum(part**2 for part in self._most_harmed(parts)), self._added
        self._total = cache(lambda first, last: added.total(number, first, last, squared))

    def _most_harmed(self, parts: Sequence[float]) -> Sequence[float]:
        """The parts of the sums of the coarsest view with columns, where there are several."""
        columns = self._plan.columns
        if columns.once:
            return parts
        return self._parts[next(d for d, weight in enumerate(columns.weights) if weight)]

    def check(self, answer: Answer) -> bool:
        """Whether it is a sum over slots; broken if it is, and is not what it should be."""
        depth, key, span, value, error, told = answer
        number, running = self._number, self._running
        place = self._names.get(key, -1) if isinstance(key, str) else key
        require(
            depth < len(running) and 0 <= place < len(running[depth]),
            f"slot {number} answers for {key!r} of {depth} dimensions",
        )
        added = self._added_to(span)
        require(
            abs(told - added) <= _OF_THE_ERROR * abs(error) + _OF_THE_VALUE * abs(added),
            f"slot {number} adds {told} for slots {span} because it was cut, and the noisy counts "
            f"of that say {added}",
        )
        if span is None:
            return False
        first, last = span
        sums = running[depth][place]
        part = self._parts[depth][place] if added else 0.0
        expected = sums[last] - sums[first - 1] + added * part
        room = _OF_THE_ERROR * abs(error) + _OF_THE_VALUE * (abs(sums[last]) + abs(value))
        require(
            abs(value - expected) <= room,
            f"slot {number} says {value} for slots {first} to {last} of sum {key!r} of "
            f"{depth} dimensions, and the noisy values say {expected}",
        )
        return True

    def _added_to(self, span: Span | None) -> float:
        if span is None:
            return 0.0
        first, last = span
        require(1 <= first <= last <= self._number, f"slot {self._number} answers for slots {span}")
        return 0.0 if self._added is None else self._total(first, last)


def _running_sums(cells: Sequence[Sequence[float]]) -> list[list[float]]:
    """After every slot, by cell."""
    by_cell = [list(accumulate(own)) for own in zip(*cells, strict=True)]
    return [list(each) for each in zip(*by_cell, strict=True)]


def estimates(record: Record, plan: PromisedPlan) -> list[list[float]]:
    """By slot and cell, in grid units."""
    columns = plan.columns
    noisy = [
        [float(value) for value in slot.release["values"][: columns.count]]
        for slot in record.in_order()
    ]
    if not plan.is_personal:
        return [columns.solve(values) for values in noisy]
    rows = released_rows(record, plan)
    if not plan.by_rows:
        by_slot = zip(
            *(solved(plan.rows, column) for column in zip(*noisy, strict=True)), strict=True
        )
        return [
            columns.solve([value / row.multipliers[0] for value in values])
            for values, row in zip(by_slot, rows, strict=True)
        ]
    # Rows measure sums as finely as they do, and are solved for cells first.
    cells = [_cells_of(values, row, columns) for values, row in zip(noisy, rows, strict=True)]
    by_cell = [solved(plan.rows, column) for column in zip(*cells, strict=True)]
    return [list(each) for each in zip(*by_cell, strict=True)]


def _cells_of(values: Sequence[float], row: ReleasedRow, columns: Columns) -> list[float]:
    roots = [sqrt(each) for each in precisions_of(row, columns)]
    said = [value / root for value, root in zip(values, roots, strict=True)]
    return columns.solve(said, [root**2 for root in roots])
