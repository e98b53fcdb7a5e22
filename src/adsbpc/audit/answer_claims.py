"""The claim that published answers follow from the noisy values beside them, and nothing else.

Noise is in the values: an answer that was put together from anything else would have none. Under
personal budgets row t is y_t = sum of B_ts m_s X_s over slots s <= t, with noise; it is solved for
X slot after slot. Under AdsBPC values are the estimates of X. X has a column for every sum of a
view; the cells that fit them best are added up again. Answers are sums of those. Where people are
counted once, each column is what it says, and nothing is added up over cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from adsbpc.audit.claims import Claim, claim, require
from adsbpc.audit.promised_plan import CONVERSION, PromisedPlan
from adsbpc.audit.record import Record, Slot

# Room for rounding: of the answer's standard error, and of the answer.
_OF_THE_ERROR, _OF_THE_VALUE = 1e-6, 1e-9


def answers(record: Record, plan: PromisedPlan) -> Claim:
    def check() -> str:
        slots = record.in_order()
        first_list = next(iter(plan.lists.values()))
        names = {name: place for place, name in enumerate(first_list)}
        views = [_summed(sums, plan) for sums in zip(*_estimates(slots, plan), strict=True)]
        # By dimensions told apart, place and slot.
        running = [
            [
                [0.0, *accumulate(column)]
                for column in zip(*(view[d] for view in views), strict=True)
            ]
            for d in range(len(plan.lists) + 1)
        ]
        count = others = 0
        for number, slot in enumerate(slots, start=1):
            (own,) = slot.answers.values()
            for depth, key, span, value, error in own:
                place = names.get(key, -1) if isinstance(key, str) else key
                require(
                    depth < len(running) and 0 <= place < len(running[depth]),
                    f"slot {number} answers for {key!r} of {depth} dimensions",
                )
                if span is None:
                    others += 1
                    continue
                first, last = span
                require(1 <= first <= last <= number, f"slot {number} answers for slots {span}")
                sums = running[depth][place]
                expected = sums[last] - sums[first - 1]
                room = _OF_THE_ERROR * abs(error) + _OF_THE_VALUE * (abs(sums[last]) + abs(value))
                require(
                    abs(value - expected) <= room,
                    f"slot {number} says {value} for slots {first} to {last} of sum {key!r} of "
                    f"{depth} dimensions, and the noisy values say {expected}",
                )
                count += 1
        return f"{count:,} answers" + (
            f"; {others:,} are no sums, and NOT CHECKED" if others else ""
        )

    return claim("answers", "published sums over slots against the noisy values", check)


def _summed(columns: Sequence[float], plan: PromisedPlan) -> list[list[float]]:
    """A slot's noisy columns as sums of the cells that fit them best, by dimensions told apart."""
    cells = [cell * plan.worth / CONVERSION for cell in plan.columns.solve(columns)]
    return plan.columns.views_of(cells)


def _estimates(slots: Sequence[Slot], plan: PromisedPlan) -> list[list[float]]:
    """By column and slot, in grid units."""
    if not plan.is_personal:
        return [
            [float(slot.release["values"][place]) for slot in slots]
            for place in range(plan.columns.count)
        ]
    columns, multipliers = [], [slot.multipliers[0] for slot in slots]
    for place in range(plan.columns.count):
        moved: list[float] = []
        for row, slot in zip(plan.rows, slots, strict=False):
            earlier = sum(entry * move for entry, move in zip(row, moved, strict=False))
            moved.append((slot.release["values"][place] - earlier) / row[-1])
        columns.append(
            [move / multiplier for move, multiplier in zip(moved, multipliers, strict=True)]
        )
    return columns
