"""What a mechanism gives out for one slot."""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.model.guarantee import Charge
from adsbpc.model.release import Estimate


@dataclass(frozen=True)
class SlotRelease:
    """Everything about a slot that may be published, and what it cost.

    `values` are integers before any scaling: noisy totals per publisher in grid units, or noisy
    rows of a strategy. `bound` is AdsBPC's, `allowance` that of personal budgets, `histogram` what
    they were chosen from, if this slot looked. `answers` are to the workload; the totals of this
    slot, and from the first slot to this one, are there whatever the workload.
    """

    slot: int
    bound: int | None
    allowance: float | None
    histogram: tuple[int, ...]
    values: tuple[int, ...]
    scale: float
    randomness: str
    charges: tuple[Charge, ...]
    answers: tuple[Estimate, ...]
    slot_totals: tuple[Estimate, ...]
    running_totals: tuple[Estimate, ...]
