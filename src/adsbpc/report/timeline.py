"""Dates of slots as people read them, in the campaign's time zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from adsbpc.model import SlotGrid
from adsbpc.model.slots import SlotLength

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TICKS = 9
_DAYS_BETWEEN_TICKS = (1, 2, 7, 14, 28, 56)
_HOURS_BETWEEN_TICKS = (1, 3, 6, 12)
_WEEKS_BETWEEN_TICKS = (1, 2, 4, 8, 13, 26, 52, 260)
_WEEKS_OF_A_YEAR = 52
_MONTHS_BETWEEN_TICKS = (1, 2, 3, 6, 12, 24, 60, 120)

Word = Literal["hour", "day", "week", "month"]
_WORDS: dict[SlotLength, Word] = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}
_RHYTHMS = {"hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly"}


@dataclass(frozen=True)
class Timeline:
    """Moments between slots: number 0 is where slot 1 starts, number k where slot k ends."""

    grid: SlotGrid

    @property
    def word(self) -> Word:
        return _WORDS[self.grid.length]

    @property
    def rhythm(self) -> str:
        return _RHYTHMS[self.word]

    def moment(self, boundary: int) -> datetime:
        instant = _EPOCH + timedelta(microseconds=self.grid.boundaries[boundary])
        return instant.astimezone(ZoneInfo(self.grid.timezone))

    def name(self, slot: int) -> str:
        """A slot for a tooltip; an hour that the clock shows twice is told apart by its zone."""
        starts, ends = self.moment(slot - 1), self.moment(slot)
        if self.word == "month":
            return f"{starts:%B %Y}"
        if self.word == "week":
            return self._days(slot - 1, slot)
        if self.word == "day":
            return _weekday(starts)
        zone = "" if starts.tzname() == ends.tzname() else f" {starts:%Z}"
        return f"{_weekday(starts)}, {starts:%H:%M}{zone} to {ends:%H:%M %Z}"

    def choice(self, slot: int, ends: bool) -> str:
        """A slot in a list of slots that something may start or end with."""
        starts = self.moment(slot - 1)
        if self.word == "month":
            return f"{starts:%b %Y}"
        if self.word == "hour":
            return f"{_short_day(starts)}, {starts:%H:%M}"
        return _short_day_and_year(self._last_day(slot) if ends else self.grid.day_after(slot - 1))

    def end(self, slot: int) -> str:
        """What ends with a slot, for a sentence: of a week its last day."""
        return _weekday(self._last_day(slot)) if self.word == "week" else self.name(slot)

    def period(self, slots: int) -> str:
        """What the first slots cover, for example '1 to 31 March 2026'."""
        if self.word == "hour":
            starts, ends = self.moment(0), self.moment(slots)
            return f"{_day(starts)}, {starts:%H:%M} to {_day(ends)}, {ends:%H:%M}"
        return self._days(0, slots)

    def _days(self, first: int, last: int) -> str:
        """The days between two boundaries."""
        starts, ends = self.grid.day_after(first), self._last_day(last)
        if starts == ends:
            return _day(ends)
        if (starts.year, starts.month) == (ends.year, ends.month):
            return f"{starts.day} to {_day(ends)}"
        return f"{_day(starts)} to {_day(ends)}"

    def _last_day(self, slot: int) -> date:
        return self.grid.day_after(slot) - timedelta(days=1)

    def ticks(self, first: int, last: int) -> dict[int, str]:
        """Few boundaries between two others, each with the label of the slot that starts there."""
        boundaries = [b for b in range(first, last + 1) if b < len(self.grid.boundaries)]
        if self.word == "day":
            step = _step(len(boundaries), _DAYS_BETWEEN_TICKS)
            return {b: _short_day(self.moment(b)) for b in boundaries[::step]}
        if self.word == "week":
            step = _step(len(boundaries), _WEEKS_BETWEEN_TICKS)
            # Within a year no day comes twice.
            label = _short_day if len(boundaries) <= _WEEKS_OF_A_YEAR else _short_day_and_year
            return {b: label(self.grid.day_after(b)) for b in boundaries[::step]}
        if self.word == "month":
            step = _step(len(boundaries), _MONTHS_BETWEEN_TICKS)
            return {b: f"{self.grid.day_after(b):%b %Y}" for b in boundaries[::step]}
        hours = _step(len(boundaries), _HOURS_BETWEEN_TICKS)
        if len(boundaries) <= hours * _MOST_TICKS:
            moments = {b: self.moment(b) for b in boundaries}
            return {b: _clock(at) for b, at in moments.items() if at.hour % hours == 0}
        midnights = [b for b in boundaries if self.moment(b).hour == 0]
        step = _step(len(midnights), _DAYS_BETWEEN_TICKS)
        return {b: _short_day(self.moment(b)) for b in midnights[::step]}


def _step(count: int, choices: tuple[int, ...]) -> int:
    return next((step for step in choices if count <= step * _MOST_TICKS), choices[-1])


def _day(moment: date) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _weekday(moment: date) -> str:
    return f"{moment:%a} {_day(moment)}"


def _short_day(moment: date) -> str:
    return f"{moment.day} {moment:%b}"


def _short_day_and_year(moment: date) -> str:
    return f"{_short_day(moment)} {moment:%Y}"


def _clock(moment: datetime) -> str:
    return _short_day(moment) if moment.hour == 0 else f"{moment:%H:%M}"
