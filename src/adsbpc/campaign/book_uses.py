"""Which books the next release reads, and which later ones have replaced, by what the ledger says.

`steps` are those of one measure. Slots in answers are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adsbpc.contributions.account_books import GATHERED
from adsbpc.errors import LedgerError

# Of the files of a long campaign, of which only the newest are read again. In format 3 all were
# whole, now every so many slots' are, and the others hold what changed since.
LONG_FORMATS = 3, 4

Steps = Sequence[dict[str, Any]]


def is_long(step: dict[str, Any]) -> bool:
    books = _books_of(step)
    return books.get("format", 1) in LONG_FORMATS or "whole" in books


def last_whole(steps: Steps) -> int:
    """The last slot of a long campaign whose books are whole, 0 if there is none."""
    for slot in range(len(steps), 0, -1):
        books = _books_of(steps[slot - 1])
        if books.get("format") == min(LONG_FORMATS) or books.get("whole"):
            return slot
    return 0


def whole_in_use(steps: Steps, kept: int) -> set[int]:
    """Slots of a long campaign whose books are whole and may be read: the next slot's, or those of
    somebody who is so many slots late."""
    if not steps or not is_long(steps[-1]):
        return set()
    return {last_whole(each) for each in (steps, steps[:-kept])} - {0}


def renewed_last(steps: Steps) -> int:
    """The slot that renewed the past last, 1 if none has."""
    renewed = [slot for slot, step in enumerate(steps, start=1) if step.get("renewal")]
    return renewed[-1] if renewed else 1


def firsts_of(steps: Steps) -> tuple[int, ...]:
    """The first slot of which each one's books have the rows."""
    found = tuple(_books_of(step).get("first", slot) for slot, step in enumerate(steps, start=1))
    for slot, first in enumerate(found, start=1):
        if type(first) is not int or not 1 <= first <= slot:
            raise LedgerError(
                f"slot {slot}: its books have the rows of slots from {first!r} on, the ledger "
                "says. Run adsbpc status --verify"
            )
    return found


def gathered(steps: Steps) -> dict[int, tuple[str, ...]]:
    """Files whose rows a later slot has, by slot. What was let in before the past was renewed stays
    for who audits."""
    found: dict[int, tuple[str, ...]] = {}
    renewed = 0
    for slot, (step, first) in enumerate(zip(steps, firsts_of(steps), strict=True), start=1):
        if step.get("renewal"):
            renewed = slot
        for before in range(first, slot):
            found[before] = GATHERED if before > renewed else GATHERED[:1]
    return found


def _books_of(step: dict[str, Any]) -> dict[str, Any]:
    return step.get("books") or {}
