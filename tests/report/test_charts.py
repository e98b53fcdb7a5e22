"""Charts are valid Vega-Lite, and their axes tell the dates of the campaign."""

from __future__ import annotations

from datetime import date

import altair
import pytest

from adsbpc.model import SlotGrid
from adsbpc.model.slots import SlotLength
from adsbpc.report import charts
from adsbpc.report.palette import DARK, LIGHT, variable, variables
from adsbpc.report.timeline import Timeline
from tests.report.releases import MadeUp


def _luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_read(palette: dict[str, str]) -> None:
    assert palette.keys() == LIGHT.keys()
    for ground in ("paper", "card"):
        for text in ("ink", "quiet", "accent"):
            assert _contrast(palette[text], palette[ground]) >= 4.5
    for name in palette:
        if name.startswith("series"):
            assert _contrast(palette[name], palette["card"]) >= 2.5, name
    assert "--ink: #" in variables(palette)


@pytest.mark.parametrize(
    "made",
    [
        MadeUp(),
        MadeUp(released=1),
        MadeUp(slots=1, released=1),
        MadeUp(volume=0.1, scale=20),
        MadeUp(slot="1h", slots=60, released=60),
        MadeUp(mechanism="personal-budget"),
    ],
    ids=["month", "first day", "only day", "noise", "hours", "budgets"],
)
def test_specifications_are_valid(made: MadeUp) -> None:
    report = made.report()
    cells = [
        c for c in report.slot_totals(charts.slots_with_bars(report)) if c.publisher == "(all)"
    ]
    for spec in (
        charts.trend(report, variable),
        charts.bars(report, cells, "quiet", variable),
    ):
        altair.LayerChart.from_dict(spec | {"config": charts.config(variable)})


def test_a_trend_starts_at_nothing_and_ends_at_the_newest_slot() -> None:
    rows = charts.trend(MadeUp(slot="1h", slots=1000, released=999).report(), variable)
    boundaries = sorted({row["boundary"] for row in rows["data"]["values"]})
    assert boundaries[0] == 0
    assert boundaries[-1] == 999
    assert len(boundaries) <= 401


def test_the_largest_eight_are_drawn_and_other_is_grey() -> None:
    drawn = charts.drawn_publishers(MadeUp(tuple(f"p{k}" for k in range(200))).report())
    assert len(drawn) == len({each.colour for each in drawn}) == 8
    few = charts.drawn_publishers(MadeUp().report())
    assert few[-1] == charts.PublisherLine("other", "series-other")


def _ticks(
    start: date = date(2026, 3, 1), count: int = 31, length: SlotLength = "1d"
) -> dict[int, str]:
    return Timeline(SlotGrid(start, count, length, "Europe/Berlin")).ticks(0, count)


def test_ticks_of_days() -> None:
    assert list(_ticks().values()) == ["1 Mar", "8 Mar", "15 Mar", "22 Mar", "29 Mar"]
    assert list(_ticks(count=2).values()) == ["1 Mar", "2 Mar", "3 Mar"]
    assert len(_ticks(count=366)) <= 9


def test_ticks_of_hours_stay_on_the_clock_when_it_changes() -> None:
    spring = _ticks(start=date(2026, 3, 28), count=47, length="1h")
    one_day = ["06:00", "12:00", "18:00"]
    assert list(spring.values()) == ["28 Mar", *one_day, "29 Mar", *one_day, "30 Mar"]
    week = _ticks(start=date(2026, 3, 28), count=167, length="1h")
    assert list(week.values())[:3] == ["28 Mar", "29 Mar", "30 Mar"]


def test_ticks_of_weeks_and_months() -> None:
    weeks = _ticks(start=date(2026, 3, 2), count=12, length="1w")
    assert list(weeks.values())[:3] == ["2 Mar", "16 Mar", "30 Mar"]
    years = _ticks(start=date(2026, 3, 2), count=104, length="1w")
    assert list(years.values())[:2] == ["2 Mar 2026", "1 Jun 2026"]
    months = _ticks(count=24, length="1mo")
    assert list(months.values())[:2] == ["Mar 2026", "Jun 2026"]
    for length in ("1w", "1mo"):
        assert all(2 <= len(_ticks(count=count, length=length)) <= 9 for count in range(1, 450))


def test_weeks_and_months_have_names() -> None:
    weeks = Timeline(SlotGrid(date(2026, 3, 23), 5, "1w", "Europe/Berlin"))
    assert (weeks.word, weeks.rhythm) == ("week", "weekly")
    assert weeks.name(1) == "23 to 29 March 2026"
    assert weeks.name(2) == "30 March 2026 to 5 April 2026"
    assert weeks.end(2) == "Sun 5 April 2026"
    assert weeks.period(1) == weeks.name(1)
    assert weeks.period(2) == "23 March 2026 to 5 April 2026"
    months = Timeline(SlotGrid(date(2026, 3, 1), 5, "1mo", "Europe/Berlin"))
    assert (months.word, months.rhythm) == ("month", "monthly")
    assert (months.name(2), months.end(2)) == ("April 2026", "April 2026")
    assert months.period(1) == "1 to 31 March 2026"
    assert months.period(2) == "1 March 2026 to 30 April 2026"


def test_slots_and_periods_have_names() -> None:
    days = Timeline(SlotGrid(date(2026, 2, 27), 9, "1d", "UTC"))
    assert days.name(1) == "Fri 27 February 2026"
    assert days.period(1) == "27 February 2026"
    assert days.period(2) == "27 to 28 February 2026"
    assert days.period(3) == "27 February 2026 to 1 March 2026"
    hours = Timeline(SlotGrid(date(2026, 10, 25), 25, "1h", "Europe/Berlin"))
    assert [hours.name(slot).partition(", ")[2] for slot in (2, 3, 4)] == [
        "01:00 to 02:00 CEST",
        "02:00 CEST to 02:00 CET",
        "02:00 to 03:00 CET",
    ]
    assert hours.period(25) == "25 October 2026, 00:00 to 26 October 2026, 00:00"
