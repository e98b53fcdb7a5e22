"""How a campaign is, in a few words: not begun, running, late, complete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.report.timeline import Timeline
from adsbpc.service.backend import Backend
from adsbpc.service.campaigns import Registered
from adsbpc.service.clock import now_us
from adsbpc.service.dashboard.writing import span

Tone = Literal["good", "calm", "done", "bad"]

# A release takes a while: nobody calls that late.
_LATE_SECONDS = 15 * 60


@dataclass(frozen=True)
class State:
    """`word` for a small mark, `next` is one sentence about the slot to come, if any is."""

    word: str
    tone: Tone
    next: str


def state_of(backend: Backend, registered: Registered, released: int) -> State:
    grid, slots = registered.spec.grid, registered.spec.campaign.slots
    timeline, now = Timeline(grid), now_us(backend.clock)
    if registered.problem:
        return State("Delayed", "bad", "")
    if released >= slots:
        return State("Complete", "done", "")
    grace = backend.settings.scheduler.grace
    due = grid.boundaries[released + 1] + grace
    if now > due + _LATE_SECONDS * MICROSECONDS_PER_SECOND:
        late = span((now - due) / MICROSECONDS_PER_SECOND)
        return State("Late", "bad", f"{_slot(timeline, released + 1)} has been due for {late}.")
    ends = _moment(timeline.moment(released + 1), timeline.word)
    after = span(grace / MICROSECONDS_PER_SECOND)
    soon = f"{_slot(timeline, released + 1)} is over on {ends} and is released {after} later."
    if now < grid.starts_at:
        return State("Not begun", "calm", soon)
    return State("Running" if released else "Collecting", "good", soon)


def _slot(timeline: Timeline, slot: int) -> str:
    return f"{timeline.word.capitalize()} {slot}"


def _moment(moment: datetime, word: str) -> str:
    """With the zone: readers may be anywhere."""
    return f"{moment.day} {moment:%B, %H:%M} {moment.tzname()}"
