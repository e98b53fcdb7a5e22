"""Slots and wall clocks, against Python's own time zones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.model import SlotGrid
from adsbpc.model.durations import parse_duration
from adsbpc.model.slots import (
    SlotLength,
    Weekday,
    starts_around,
    to_microseconds,
    wall_microseconds,
    zone_offsets,
)

HOUR = 3_600_000_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata",
         "Africa/Cairo", "America/Havana", "Pacific/Apia"]  # fmt: skip


def test_days_around_daylight_saving_have_23_and_25_hours() -> None:
    spring = SlotGrid(date(2026, 3, 28), 3, "1d", "Europe/Berlin")
    autumn = SlotGrid(date(2026, 10, 24), 3, "1d", "Europe/Berlin")
    assert [run.length // HOUR for run in spring.runs] == [24, 23, 24]
    assert [run.length // HOUR for run in autumn.runs] == [24, 25, 24]


def test_hours_are_hours_whatever_the_clock_does() -> None:
    grid = SlotGrid(date(2026, 3, 29), 24, "1h", "Europe/Berlin")
    (run,) = grid.runs
    assert (run.length, run.count) == (HOUR, 24)
    # The 23-hour day ends after slot 23; slot 24 is the first hour of the next day.
    assert grid.boundaries[23] == to_microseconds(
        datetime(2026, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    )


@given(
    st.dates(date(2020, 1, 1), date(2029, 1, 1)),
    st.integers(1, 400),
    st.sampled_from(ZONES),
    st.floats(0, 1, exclude_max=True),
)
def test_a_slot_is_a_local_day(start: date, count: int, zone: str, where: float) -> None:
    grid = SlotGrid(start, count, "1d", zone)
    moment = grid.starts_at + int(where * (grid.ends_at - grid.starts_at))
    slot = grid.slot_of(moment)
    there = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)
    assert slot == (there.astimezone(ZoneInfo(zone)).date() - start).days + 1
    assert grid.boundaries[slot - 1] <= moment < grid.boundaries[slot]
    assert sum(run.count for run in grid.runs) == count


def _month_after(month: tuple[int, int]) -> tuple[int, int]:
    year, number = month
    return (year + 1, 1) if number == 12 else (year, number + 1)


@given(
    st.dates(date(2020, 1, 1), date(2029, 1, 1)),
    st.integers(1, 150),
    st.sampled_from(ZONES),
    st.floats(0, 1, exclude_max=True),
)
def test_a_slot_is_a_local_week(start: date, count: int, zone: str, where: float) -> None:
    grid = SlotGrid(start, count, "1w", zone)
    moment = grid.starts_at + int(where * (grid.ends_at - grid.starts_at))
    there = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)
    day = there.astimezone(ZoneInfo(zone)).date()
    slot = grid.slot_of(moment)
    assert slot == (day - start).days // 7 + 1
    assert grid.day_after(slot - 1) <= day < grid.day_after(slot)
    assert grid.day_after(slot).weekday() == start.weekday()


@given(
    st.dates(date(2008, 1, 1), date(2029, 1, 1)),
    st.integers(1, 240),
    st.sampled_from(ZONES),
    st.floats(0, 1, exclude_max=True),
)
def test_a_slot_is_a_local_month(day: date, count: int, zone: str, where: float) -> None:
    grid = SlotGrid(day.replace(day=1), count, "1mo", zone)
    moment = grid.starts_at + int(where * (grid.ends_at - grid.starts_at))
    there = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=moment)).astimezone(
        ZoneInfo(zone)
    )
    month, slot = (day.year, day.month), 1
    while month != (there.year, there.month):
        month, slot = _month_after(month), slot + 1
    assert grid.slot_of(moment) == slot
    assert sum(run.count for run in grid.runs) == count


def test_months_have_their_lengths() -> None:
    months = SlotGrid(date(2027, 12, 1), 4, "1mo", "Europe/Berlin")
    assert [run.length // HOUR for run in months.runs] == [31 * 24, 29 * 24, 31 * 24 - 1]
    assert [run.count for run in months.runs] == [2, 1, 1]
    assert months.bounds_text(4) == ("2028-03-01T00:00:00+01:00", "2028-04-01T00:00:00+02:00")


@given(
    st.dates(date(1980, 1, 1), date(2199, 1, 1)),
    st.sampled_from(get_args(SlotLength)),
    st.sampled_from(get_args(Weekday)),
)
def test_no_start_lies_between_the_two_around_a_day(
    day: date, length: SlotLength, week_starts: Weekday
) -> None:
    def fits(each: date) -> bool:
        wanted = f"{each:%A}".lower() == week_starts if length == "1w" else each.day == 1
        return wanted if length in ("1w", "1mo") else True

    first, following = starts_around(day, length, week_starts)
    assert first <= day < following
    span = [first + timedelta(days=k) for k in range((following - first).days + 1)]
    assert [each for each in span if fits(each)] == [first, following]


def test_outside_the_campaign_there_is_no_slot() -> None:
    grid = SlotGrid(date(2026, 3, 1), 2, "1d", "UTC")
    assert grid.slot_of(grid.starts_at - 1) is None
    assert grid.slot_of(grid.ends_at) is None
    assert [grid.slot_of(edge) for edge in grid.boundaries] == [1, 2, None]


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),
    st.sampled_from([zone for zone in ZONES if zone != "Pacific/Apia"]),
)
def test_wall_clocks_mean_what_python_says(wall: datetime, zone: str) -> None:
    first = to_microseconds(datetime(2023, 12, 1, tzinfo=UTC))
    last = to_microseconds(datetime(2027, 2, 1, tzinfo=UTC))
    reading = wall_microseconds(wall)
    offset = [o.offset for o in zone_offsets(zone, first, last) if o.wall_from <= reading][-1]
    assert reading - offset == to_microseconds(wall.replace(tzinfo=ZoneInfo(zone), fold=0))


@pytest.mark.parametrize("text", ["30", "d", "-1d", "1.5h", "1w", "", 30, None, "1 d", "9999999d"])
def test_bad_durations(text: object) -> None:
    with pytest.raises(ValueError, match="for example"):
        parse_duration(text)
