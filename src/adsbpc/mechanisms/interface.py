"""What a mechanism gives out for one slot."""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.model.guarantee import Charge


@dataclass(frozen=True)
class Answer:
    """A query's noisy answer for one publisher, in the campaign's metric."""

    query: str
    publisher: str
    value: float
    standard_error: float


@dataclass(frozen=True)
class SlotRelease:
    """Everything about a slot that may be published, and what it cost.

    `values` are noisy totals per publisher in grid units: integers before any scaling.
    """

    slot: int
    bound: int
    values: tuple[int, ...]
    scale: float
    randomness: str
    charges: tuple[Charge, ...]
    answers: tuple[Answer, ...]
