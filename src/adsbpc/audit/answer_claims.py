"""The claim that published answers follow from the noisy values beside them, and nothing else.

Noise is in the values: an answer that was put together from anything else would have none. Under
personal budgets row t is y_t = sum of B_ts m_s X_s over slots s <= t, with noise; it is solved for
X slot after slot. Under AdsBPC values are the estimates of X. Answers are sums of those.
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
        places = {name: place for place, name in enumerate(plan.publisher_names)}
        running = [
            [0.0, *accumulate(estimate * plan.worth / CONVERSION for estimate in column)]
            for column in _estimates(slots, plan)
        ]
        count = others = 0
        for number, slot in enumerate(slots, start=1):
            for publisher, span, value, error in slot.answers:
                require(publisher in places, f"slot {number} answers for {publisher!r}")
                if span is None:
                    others += 1
                    continue
                first, last = span
                require(1 <= first <= last <= number, f"slot {number} answers for slots {span}")
                sums = running[places[publisher]]
                expected = sums[last] - sums[first - 1]
                room = _OF_THE_ERROR * abs(error) + _OF_THE_VALUE * (abs(sums[last]) + abs(value))
                require(
                    abs(value - expected) <= room,
                    f"slot {number} says {value} for slots {first} to {last} of {publisher!r}, and "
                    f"the noisy values say {expected}",
                )
                count += 1
        return f"{count:,} answers" + (
            f"; {others:,} are no sums, and NOT CHECKED" if others else ""
        )

    return claim("answers", "published sums over slots against the noisy values", check)


def _estimates(slots: Sequence[Slot], plan: PromisedPlan) -> list[list[float]]:
    """By publisher and slot, in grid units."""
    if not plan.is_personal:
        return [
            [float(slot.release["values"][place]) for slot in slots]
            for place in range(plan.publishers)
        ]
    columns, multipliers = [], [slot.multipliers[0] for slot in slots]
    for place in range(plan.publishers):
        moved: list[float] = []
        for row, slot in zip(plan.rows, slots, strict=False):
            earlier = sum(entry * move for entry, move in zip(row, moved, strict=False))
            moved.append((slot.release["values"][place] - earlier) / row[-1])
        columns.append(
            [move / multiplier for move, multiplier in zip(moved, multipliers, strict=True)]
        )
    return columns
