"""Moments that are read as `[events] timestamp_format` declares them, on every engine."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adsbpc.engines import Engine
from adsbpc.events import Reason
from adsbpc.model.clock_format import ClockFormat
from tests.events.files import CONVERSION, IMPRESSION, counts, spec_of, write, write_both

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)

WRITTEN = [
    ("%d.%m.%Y %H:%M", "02.03.2026 12:00", NOON),
    ("%d.%m.%Y %H:%M", "2.3.2026 12:00", NOON),
    ("%m/%d/%Y", "3/2/2026", MIDNIGHT),
    ("%Y%m%d", "20260302", MIDNIGHT),
    ("%Y%m%d", 20260302, MIDNIGHT),
    ("%d %b %Y %I:%M %p", "2 Mar 2026 12:00 pm", NOON),
    ("%m/%d/%y %I:%M:%S %p", "03/02/26 12:00:00 AM", MIDNIGHT),
    ("%Y-%m-%dT%H:%M:%S.%f%z", "2026-03-02T14:00:00.000000+02:00", NOON),
    ("%Y-%m-%d %H:%M:%S (%z)", "2026-03-02 12:00:00 (Z)", NOON),
]
UNREADABLE = [
    ("%d.%m.%Y", "31.02.2026"),
    ("%d.%m.%Y", "02.13.2026"),
    ("%d.%m.%Y", "02.03.2026 12:00"),
    ("%d.%m.%Y", "2026-03-02"),
    ("%m/%d/%Y %H:%M", "03/02/2026 24:00"),
    ("%m/%d/%Y %H:%M", "03/02/2026 12:60"),
    ("%d %b %Y", "2 Foo 2026"),
    ("%Y%m%d", "noon"),
]


def micros(engine: Engine, directory: Path, value: Any, **events: Any) -> list[tuple[int]]:
    write(directory / "impressions.parquet", [{**IMPRESSION, "timestamp": value}])
    write(directory / "conversions.parquet", [CONVERSION])
    # Conversions have typed timestamps, which the type settles.
    read, _, good = counts(engine, spec_of(directory, **events))
    assert good == 1
    return engine.rows("moments", f"SELECT time_us FROM {read.impressions}")


@pytest.mark.parametrize(("clock", "text", "moment"), WRITTEN)
def test_what_a_format_reads(
    clock: str, text: Any, moment: datetime, engine: Engine, tmp_path: Path
) -> None:
    found = micros(engine, tmp_path, text, timestamp_format=clock)
    assert found == [(int(moment.timestamp() * 1e6),)]


@pytest.mark.parametrize(("clock", "text"), UNREADABLE)
def test_what_a_format_does_not_read(
    clock: str, text: str, duckdb_engine: Engine, tmp_path: Path
) -> None:
    write_both(tmp_path, impressions=[{**IMPRESSION, "timestamp": text}])
    events, good, _ = counts(duckdb_engine, spec_of(tmp_path, timestamp_format=clock))
    assert (good, events.quarantined()) == (0, {("impressions", Reason.BAD_TIMESTAMP): 1})


def test_clocks_without_a_zone_are_of_the_declared_one(engine: Engine, tmp_path: Path) -> None:
    zone = {"timezone": "America/New_York", "timestamp_format": "%d.%m.%Y %H:%M"}
    found = micros(engine, tmp_path, "02.03.2026 07:00", **zone)
    assert found == [(int(NOON.timestamp() * 1e6),)]


@pytest.mark.parametrize("value", ["2026-03-02", date(2026, 3, 2)])
def test_a_day_is_its_first_moment(value: Any, engine: Engine, tmp_path: Path) -> None:
    assert micros(engine, tmp_path, value) == [(int(MIDNIGHT.timestamp() * 1e6),)]


@pytest.mark.parametrize(
    ("clock", "rule"),
    [
        ("%Q", "%Q is none of %Y"),
        ("%Y-%m-%d %", "% is none of"),
        ("%Y-%m", "expected %d once"),
        ("%Y-%y-%m-%d", "expected %Y or %y once"),
        ("%Y-%m-%d %H:%M %I", "%I together with %p"),
        ("%Y-%m-%d %M", "%M needs %H or %I"),
        ("%Y-%m-%d %H:%H", "%H stands there twice"),
        ("%Y'%m'%d", "cannot stand between parts"),
    ],
)
def test_formats_that_say_no_moment(clock: str, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rule.replace("%", "%")):
        ClockFormat(clock)
    with pytest.raises(ValidationError):
        spec_of(tmp_path, timestamp_format=clock)


def test_two_ways_to_read_moments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="remove one of them"):
        spec_of(tmp_path, timestamp_format="%Y%m%d", timestamps="epoch_seconds")
