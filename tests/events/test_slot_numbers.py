"""Slots that engines number, against Python's calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.engines import Engine
from adsbpc.events.moments import slot_number
from adsbpc.model import SlotGrid
from adsbpc.model.slots import SlotLength
from tests.conftest import open_test_engine

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
         "Africa/Cairo", "America/Havana", "Asia/Kolkata")  # fmt: skip


def numbered(engine: Engine, grid: SlotGrid, moments: list[int]) -> list[int | None]:
    rows = ", ".join(f"({place}, CAST({moment} AS BIGINT))" for place, moment in enumerate(moments))
    found = engine.rows(
        "number slots",
        f"SELECT place, {slot_number('moment', grid)} FROM (VALUES {rows}) AS v(place, moment)"
        " ORDER BY place",
    )
    return [slot for _, slot in found]


def by_the_calendar(grid: SlotGrid, moment: int) -> int | None:
    """The slot of an instant, by counting local days from the first."""
    instant = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)
    day = instant.astimezone(ZoneInfo(grid.timezone)).date()
    if grid.length == "1mo":
        slot = 12 * (day.year - grid.start.year) + day.month - grid.start.month + 1
    else:
        slot = (day - grid.start).days // (7 if grid.length == "1w" else 1) + 1
    return slot if 1 <= slot <= grid.count else None


def beside(grid: SlotGrid) -> list[int]:
    """On and beside every boundary."""
    return [edge + shift for edge in grid.boundaries for shift in (-1, 0, 1)]


@cache
def duckdb() -> Engine:
    return open_test_engine("duckdb")


@given(
    st.dates(date(2000, 1, 1), date(2028, 1, 1)),
    st.sampled_from(["1d", "1w", "1mo"]),
    st.integers(1, 40),
    st.sampled_from(ZONES),
    st.lists(st.floats(-0.1, 1.1), max_size=30),
)
def test_every_moment_is_in_the_slot_of_its_local_day(
    start: date, length: SlotLength, count: int, zone: str, places: list[float]
) -> None:
    grid = SlotGrid(start.replace(day=1) if length == "1mo" else start, count, length, zone)
    span = grid.ends_at - grid.starts_at
    moments = [*beside(grid), *(grid.starts_at + int(place * span) for place in places)]
    expected = [by_the_calendar(grid, moment) for moment in moments]
    assert numbered(duckdb(), grid, moments) == expected
    assert [grid.slot_of(moment) for moment in moments] == expected


@pytest.mark.parametrize(
    "grid",
    [
        SlotGrid(date(2026, 3, 1), 120, "1mo", "Europe/Berlin"),
        SlotGrid(date(2026, 3, 2), 521, "1w", "America/New_York"),
    ],
    ids=["months", "weeks"],
)
def test_ten_years_on_each_engine(grid: SlotGrid, engine: Engine) -> None:
    moments = beside(grid)
    assert len(grid.runs) > 20
    assert numbered(engine, grid, moments) == [by_the_calendar(grid, m) for m in moments]


@pytest.mark.parametrize(
    "grid",
    [
        SlotGrid(date(1980, 1, 1), 2640, "1mo", "Europe/Berlin"),
        SlotGrid(date(2026, 3, 2), 8784, "1w", "Europe/Berlin"),
    ],
    ids=["months", "weeks"],
)
def test_the_longest_campaigns(grid: SlotGrid, duckdb_engine: Engine) -> None:
    """All that a campaign file may say: no branch is too many, and nothing overflows."""
    moments = beside(grid)[::7]
    assert numbered(duckdb_engine, grid, moments) == [by_the_calendar(grid, m) for m in moments]
