"""What a mechanism gives out for one slot."""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.model.guarantee import Charge
from adsbpc.model.release import Estimate


@dataclass(frozen=True)
class SlotRelease:
    """Everything about a slot that may be published, and what it cost.

    `values` are noisy totals per publisher in grid units: integers before any scaling. `answers`
    are to the workload; the totals of this slot, and from the first slot to this one, are there
    whatever the workload.
    """

    slot: int
    bound: int
    values: tuple[int, ...]
    scale: float
    randomness: str
    charges: tuple[Charge, ...]
    answers: tuple[Estimate, ...]
    slot_totals: tuple[Estimate, ...]
    running_totals: tuple[Estimate, ...]
