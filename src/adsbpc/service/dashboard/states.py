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


@dataclass(frozen=True)
class State:
    """`word` for a small mark, `next` is one sentence about the slot to come, if any is."""

    word: str
    tone: Tone
    next: str


def state_of(backend: Backend, registered: Registered, visible: int) -> State:
    """Of a campaign whose newest visible slot this is."""
    grid, slots = registered.spec.grid, registered.spec.campaign.slots
    timeline, now = Timeline(grid), now_us(backend.clock)
    if visible >= slots:
        return State("Complete", "done", "")
    wait = backend.publication.publish_after_us
    each = span(wait / MICROSECONDS_PER_SECOND)
    if backend.publication.due_slot(registered) > visible:
        due = grid.boundaries[visible + 1] + wait
        late = span((now - due) / MICROSECONDS_PER_SECOND)
        slot = _slot(timeline, visible + 1)
        return State(
            "Late", "bad", f"{slot} has been due for {late}. New ones appear every {each}."
        )
    ends = _moment(timeline.moment(visible + 1), timeline.word)
    soon = f"{_slot(timeline, visible + 1)} is over on {ends} and is published {each} later."
    if now < grid.starts_at:
        return State("Not begun", "calm", soon)
    return State("Running" if visible else "Collecting", "good", soon)


def _slot(timeline: Timeline, slot: int) -> str:
    return f"{timeline.word.capitalize()} {slot}"


def _moment(moment: datetime, word: str) -> str:
    """With the zone: readers may be anywhere."""
    return f"{moment.day} {moment:%B, %H:%M} {moment.tzname()}"
