"""The claim that multipliers follow from what is public, and that the mechanism used no others.

An allowance of a conversions means the multiplier m under which a person with a norm of a costs the
budget for what is let in, m a 2^10 720720 = sqrt(its share of 2^88), or less by the root of what
one unit moves in all views. In a long campaign 1 is 2^13 in the strategy, not 2^10.
"""

from __future__ import annotations

from math import isqrt, sqrt
from typing import Any

from adsbpc.audit.claims import Claim, claim, require
from adsbpc.audit.promised_plan import CONVERSION, LIMIT, PromisedPlan
from adsbpc.audit.record import Record, Slot
from adsbpc.audit.stretches import released_rows

LARGEST_MULTIPLIER = 2**20
# More cells than this are all of one size.
MOST_SIZED = 4096
# Of an allowance, room for rounding.
_ROUNDING = 1e-9


def multipliers(record: Record, plan: PromisedPlan) -> Claim:
    def check() -> str:
        return (_by_rows if plan.by_rows else _by_slots)(record, plan)

    return claim("multipliers", f"{len(record.slots):,} slots against public allowances", check)


def allowance_of_one(plan: PromisedPlan) -> float:
    """The allowance, in conversions, of a multiplier of 1."""
    return sqrt(LIMIT * plan.shares[0] / plan.columns.unit) / (plan.one * CONVERSION)


def _by_slots(record: Record, plan: PromisedPlan) -> str:
    seen, unit = set(), plan.columns.squared(1, substitution=False)
    for slot, row in zip(record.in_order(), released_rows(record, plan), strict=True):
        allowance = float(slot.release["allowance"])
        public = round(allowance_of_one(plan) / allowance)
        # What was cut has one column, and no weight.
        cut = max(1, min(isqrt(public**2 * unit), LARGEST_MULTIPLIER) // plan.cut_ratio)
        used = (row.multipliers[0], row.multipliers[-1])
        require(
            used == (public, cut),
            f"slot {row.slot} used {used}, of which the second is for what was cut; the public "
            f"allowance of {allowance:.6g} means {(public, cut)}",
        )
        told = [key for key in ("multipliers", "sizes", "is_renewal") if slot.release[key]]
        require(not told, f"slot {row.slot} tells {told}, and the campaign is not by rows")
        seen.add(public)
    return f"from {min(seen)} to {max(seen)}"


def _by_rows(record: Record, plan: PromisedPlan) -> str:
    """Those of cells follow from the allowance, and from sizes that are public too; those of what
    was cut from figures that were released. Only a renewal changes any."""
    seen, before = set(), None
    for number, slot in enumerate(record.in_order(), start=1):
        used = _used(slot, number)
        alike, *cuts = used["multipliers"]
        require(
            len(cuts) == plan.cuts
            and all(
                type(each) is int and 1 <= each <= LARGEST_MULTIPLIER for each in (alike, *cuts)
            ),
            f"slot {number} has multipliers {used['multipliers']}: expected {1 + plan.cuts} whole "
            f"numbers from 1 to {LARGEST_MULTIPLIER}",
        )
        _check_sizes(used["sizes"], number, plan)
        allowance = float(slot.release["allowance"])
        require(
            abs(allowance * alike / allowance_of_one(plan) - 1) <= _ROUNDING,
            f"slot {number} used a multiplier of {alike}, which means an allowance of "
            f"{allowance_of_one(plan) / alike:.6g}; that of {allowance:.6g} is public",
        )
        terms = (used["multipliers"], used["sizes"])
        require(
            used["is_renewal"] in ((True, False) if number > 1 else (False,)),
            f"slot {number} says {used['is_renewal']!r} of a renewal",
        )
        require(
            before is None or used["is_renewal"] or terms == before,
            f"slot {number} has other multipliers or sizes than the one before, and renews nothing",
        )
        before = terms
        seen.add(alike)
    return f"from {min(seen)} to {max(seen)}"


def _used(slot: Slot, number: int) -> dict[str, Any]:
    """What the mechanism has used, which is what was published."""
    kept = {"multipliers": "multipliers", "sizes": "sizes", "is_renewal": "renewal"}
    used = {told: slot.step[name] for told, name in kept.items()}
    for told, own in used.items():
        require(
            slot.release[told] == own and type(slot.release[told]) is type(own),
            f"slot {number} used {told} = {own}, and its release says {slot.release[told]}",
        )
    require(
        float.fromhex(slot.step["allowance"]) == slot.release["allowance"],
        f"slot {number}: the allowance that was published is not what the mechanism used",
    )
    return used


def _check_sizes(sizes: list[Any], number: int, plan: PromisedPlan) -> None:
    cells = plan.columns.cells
    require(
        bool(sizes) or not plan.columns.apart,
        f"slot {number} has no sizes, and sums are cells of their own, each of its size",
    )
    require(
        not sizes or (len(plan.columns.views) == 1 and cells <= MOST_SIZED),
        f"slot {number} has sizes of cells, which views sum or which are too many",
    )
    require(
        not sizes
        or (len(sizes) == cells and all(type(size) is int and size >= 1 for size in sizes)),
        f"slot {number} has sizes {sizes}: expected {cells} whole numbers above 0",
    )
