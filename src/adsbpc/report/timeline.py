"""Dates of slots as people read them, in the campaign's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from adsbpc.model import SlotGrid

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TICKS = 9
_DAYS_BETWEEN_TICKS = (1, 2, 7, 14, 28, 56)
_HOURS_BETWEEN_TICKS = (1, 3, 6, 12)


@dataclass(frozen=True)
class Timeline:
    """Moments between slots: number 0 is where slot 1 starts, number k where slot k ends."""

    grid: SlotGrid

    @property
    def word(self) -> Literal["day", "hour"]:
        return "day" if self.grid.length == "1d" else "hour"

    @property
    def rhythm(self) -> Literal["daily", "hourly"]:
        return "daily" if self.word == "day" else "hourly"

    def moment(self, boundary: int) -> datetime:
        instant = _EPOCH + timedelta(microseconds=self.grid.boundaries[boundary])
        return instant.astimezone(ZoneInfo(self.grid.timezone))

    def name(self, slot: int) -> str:
        """A slot for a tooltip; an hour that the clock shows twice is told apart by its zone."""
        starts, ends = self.moment(slot - 1), self.moment(slot)
        if self.word == "day":
            return f"{starts:%a} {_day(starts)}"
        zone = "" if starts.tzname() == ends.tzname() else f" {starts:%Z}"
        return f"{starts:%a} {_day(starts)}, {starts:%H:%M}{zone} to {ends:%H:%M %Z}"

    def period(self, slots: int) -> str:
        """What the first slots cover, for example '1 to 31 March 2026'."""
        starts, ends = self.moment(0), self.moment(slots)
        if self.word == "hour":
            return f"{_day(starts)}, {starts:%H:%M} to {_day(ends)}, {ends:%H:%M}"
        last = self.moment(slots - 1)
        if slots == 1:
            return _day(last)
        if (starts.year, starts.month) == (last.year, last.month):
            return f"{starts.day} to {_day(last)}"
        return f"{_day(starts)} to {_day(last)}"

    def ticks(self, first: int, last: int) -> dict[int, str]:
        """Few boundaries between two others, each with the label of the slot that starts there."""
        boundaries = [b for b in range(first, last + 1) if b < len(self.grid.boundaries)]
        if self.word == "day":
            step = _step(len(boundaries), _DAYS_BETWEEN_TICKS)
            return {b: _short_day(self.moment(b)) for b in boundaries[::step]}
        hours = _step(len(boundaries), _HOURS_BETWEEN_TICKS)
        if len(boundaries) <= hours * _MOST_TICKS:
            moments = {b: self.moment(b) for b in boundaries}
            return {b: _clock(at) for b, at in moments.items() if at.hour % hours == 0}
        midnights = [b for b in boundaries if self.moment(b).hour == 0]
        step = _step(len(midnights), _DAYS_BETWEEN_TICKS)
        return {b: _short_day(self.moment(b)) for b in midnights[::step]}


def _step(count: int, choices: tuple[int, ...]) -> int:
    return next((step for step in choices if count <= step * _MOST_TICKS), choices[-1])


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _short_day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"


def _clock(moment: datetime) -> str:
    return _short_day(moment) if moment.hour == 0 else f"{moment:%H:%M}"
