"""Slots: hours, days, weeks or months of a campaign in its time zone, as instants in UTC
microseconds.

Everything downstream compares integers. The rules of the time zone are applied here, once, in
Python, so that every engine sees the same daylight-saving days.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Literal, get_args
from zoneinfo import ZoneInfo

from adsbpc.model.durations import MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR

SlotLength = Literal["1h", "1d", "1w", "1mo"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = {"1d": 1, "1w": 7}
_WEEKDAYS: tuple[str, ...] = get_args(Weekday)


def to_microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970 of a datetime that carries a zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_moment(microseconds: int) -> datetime:
    """The other way round, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


def wall_microseconds(moment: datetime) -> int:
    """Microseconds of the wall clock, read as if it stood in UTC."""
    return to_microseconds(moment.replace(tzinfo=UTC))


@dataclass(frozen=True)
class SlotRun:
    """Neighbouring slots of one length: the numbers first_slot .. first_slot + count - 1."""

    first_slot: int
    starts_at: int
    length: int
    count: int


@dataclass(frozen=True)
class SlotGrid:
    """The slots 1..count of a campaign; slot k covers [boundaries[k-1], boundaries[k])."""

    start: date
    count: int
    length: SlotLength
    timezone: str

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        if self.length == "1h":
            first = self._midnight(self.start)
            return tuple(first + k * MICROSECONDS_PER_HOUR for k in range(self.count + 1))
        return tuple(self._midnight(self.day_after(k)) for k in range(self.count + 1))

    def day_after(self, slots: int) -> date:
        """The day after the first slots, which starts the next one; not for hours."""
        if self.length == "1mo":
            return _month(self.start, slots)
        return self.start + timedelta(days=slots * _DAYS[self.length])

    def _midnight(self, day: date) -> int:
        zone = ZoneInfo(self.timezone)
        return to_microseconds(datetime(day.year, day.month, day.day, tzinfo=zone))

    @property
    def starts_at(self) -> int:
        return self.boundaries[0]

    @property
    def ends_at(self) -> int:
        return self.boundaries[-1]

    def slot_of(self, moment: int) -> int | None:
        """Number of the slot that holds an instant, or None outside the campaign."""
        if not self.starts_at <= moment < self.ends_at:
            return None
        return bisect_right(self.boundaries, moment)

    def last_ended(self, moment: int) -> int:
        """Number of the last slot that is over at an instant; 0 before the first one ends."""
        return max(0, bisect_right(self.boundaries, moment) - 1)

    def bounds_text(self, slot: int) -> tuple[str, str]:
        """Start and end of a slot in ISO 8601, in the campaign's time zone."""
        zone = ZoneInfo(self.timezone)
        start, end = (
            to_moment(edge).astimezone(zone).isoformat()
            for edge in self.boundaries[slot - 1 : slot + 1]
        )
        return start, end

    @cached_property
    def runs(self) -> tuple[SlotRun, ...]:
        """The slots grouped by length: a year of days has one run per daylight-saving change,
        a year of months about ten."""
        edges = self.boundaries
        lengths = [(edges[k + 1] - edges[k], k) for k in range(self.count)]
        runs = []
        for length, group in groupby(lengths, key=lambda pair: pair[0]):
            indices = [k for _, k in group]
            runs.append(SlotRun(indices[0] + 1, edges[indices[0]], length, len(indices)))
        return tuple(runs)


@lru_cache(64)
def grid_of(start: date, count: int, length: SlotLength, timezone: str) -> SlotGrid:
    """The same grid for whoever asks again: where its slots begin is worked out once."""
    return SlotGrid(start, count, length, timezone)


def starts_around(day: date, length: SlotLength, week_starts: Weekday) -> tuple[date, date]:
    """The latest day, up to this one, on which a slot may start, and the next such day."""
    if length == "1mo":
        return _month(day, 0), _month(day, 1)
    days = _DAYS.get(length, 1)
    first = day - timedelta(days=(day.weekday() - _WEEKDAYS.index(week_starts)) % days)
    return first, first + timedelta(days=days)


def _month(day: date, later: int) -> date:
    """The first of a day's month, or of one so many months later."""
    years, month = divmod(day.month - 1 + later, 12)
    return date(day.year + years, month + 1, 1)


@dataclass(frozen=True)
class ZoneOffset:
    """From this wall-clock reading on, UTC = wall clock - offset."""

    wall_from: int
    offset: int


def zone_offsets(timezone: str, first: int, last: int) -> tuple[ZoneOffset, ...]:
    """How wall clocks of a zone map to UTC between two instants.

    A reading that exists twice means its first occurrence; one that was skipped is read with the
    offset before the change: Python's fold=0.
    """
    zone = ZoneInfo(timezone)

    def offset_at(moment: int) -> int:
        there = (_EPOCH + timedelta(microseconds=moment)).astimezone(zone)
        return wall_microseconds(there) - moment

    offsets = [ZoneOffset(first + offset_at(first), offset_at(first))]
    for day_start in range(first, last, MICROSECONDS_PER_DAY):
        low, high = day_start, day_start + MICROSECONDS_PER_DAY
        before, after = offset_at(low), offset_at(high)
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_at(middle) == before else (low, middle)
        offsets.append(ZoneOffset(high + max(before, after), after))
    return tuple(offsets)
