"""The page in a real browser: it draws, stays quiet, fits, and asks for nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.effort import first
from tests.report.browsing import ARTEFACTS, DESKTOP, NARROWEST, PHONE, Reader, assert_well_behaved
from tests.report.releases import MadeUp
from tests.report.test_page import HOSTILE

pytestmark = pytest.mark.browser


def _assert_drawn(page: Page, charts: int) -> None:
    assert page.locator(".chart").count() == page.locator(".chart svg").count() == charts
    for chart in page.locator(".chart").all():
        box = chart.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] > 150
        assert box["height"] > 100
        assert chart.locator(".role-mark path").count() > 0


@pytest.mark.parametrize(
    ("size", "scheme", "name"),
    first(
        1,
        [
            (DESKTOP, "light", "report-light.png"),
            (DESKTOP, "dark", "report-dark.png"),
            (PHONE, "light", "report-phone.png"),
        ],
    ),
    ids=["light", "dark", "phone"],
)
def test_the_page_draws_and_fits(
    reader: Reader, size: tuple[int, int], scheme: Literal["light", "dark"], name: str
) -> None:
    opened = reader.open(MadeUp().report(), size, scheme)
    _assert_drawn(opened.page, charts=1 + 7)
    assert opened.page.locator("#chart-trend .mark-line path").count() == 6
    ARTEFACTS.mkdir(exist_ok=True)
    opened.page.screenshot(path=ARTEFACTS / name, full_page=True)
    assert_well_behaved(opened)


@pytest.mark.parametrize("scheme", first(1, ["light", "dark"]))
@pytest.mark.parametrize("size", [DESKTOP, NARROWEST], ids=["wide", "narrow"])
def test_models_are_compared(
    reader: Reader, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    opened = reader.open(MadeUp(model="shapley", fit_slot=7).report(), size, scheme)
    section = opened.page.locator("section[aria-labelledby=models-title]")
    assert section.locator("figure").count() == 6
    for figure in section.locator("figure").all():
        rows = figure.locator("li:not(.axis)")
        assert rows.count() == 5
        assert rows.locator(".dot").count() == 5
        # The line goes through the dot of the model in use.
        dot, line = (
            figure.locator(f".used .{part}").bounding_box() for part in ("dot", "used-line")
        )
        assert dot is not None
        assert line is not None
        assert abs(dot["x"] + dot["width"] / 2 - line["x"] - line["width"] / 2) < 1
        labels = [label.bounding_box() for label in figure.locator(".scale span:visible").all()]
        for left, right in pairwise(box for box in labels if box is not None):
            assert left["x"] + left["width"] <= right["x"]
    assert_well_behaved(opened)


@pytest.mark.parametrize("size", first(1, [(NARROWEST,), (DESKTOP,)]), ids=["narrow", "wide"])
@pytest.mark.parametrize(
    "made",
    first(
        3,
        [
            MadeUp(
                HOSTILE,
                name="</title><script>alert(0)</script>",
                model="shapley_ordered",
                fit_slot=1,
            ),
            MadeUp(released=1),
            MadeUp(slots=1, released=1),
            MadeUp(tuple(f"publisher-{k:03d}" for k in range(199))),
            MadeUp(
                tuple(f"{k} {'network' * 11}"[:80] for k in range(5)),
                name="campaign" * 20,
                model="shapley",
                fit_slot=30,
                share_error=0.2,
            ),
            MadeUp(volume=0.1, scale=20),
            MadeUp(tuple(f"p{k}" for k in range(60)), volume=1, scale=20),
            MadeUp(metric="value", value_cap=500.0, volume=9e6, scale=9e5),
            MadeUp(slot="1h", slots=72, released=60),
            MadeUp(mechanism="personal-budget", allowances=(8.0, 11.3137)),
        ],
    ),
    ids=[
        "hostile",
        "first",
        "only",
        "many",
        "long names",
        "noise",
        "much noise",
        "money",
        "hours",
        "budgets",
    ],
)
def test_unusual_reports_draw_and_fit(reader: Reader, made: MadeUp, size: tuple[int, int]) -> None:
    opened = reader.open(made.report(), size)
    _assert_drawn(opened.page, charts=2 + min(8, len(made.publishers) + 1))
    assert_well_behaved(opened)


def test_colours_follow_the_scheme_without_drawing_again(reader: Reader) -> None:
    opened = reader.open(MadeUp().report())
    colour = """() => {
        const line = document.querySelector("#chart-trend .mark-line path");
        return [getComputedStyle(line).stroke, getComputedStyle(document.body).backgroundColor];
    }"""
    light = opened.page.evaluate(colour)
    opened.page.emulate_media(color_scheme="dark")
    dark = opened.page.evaluate(colour)
    assert light == ["rgb(0, 103, 168)", "rgb(246, 247, 248)"]
    assert dark == ["rgb(76, 155, 232)", "rgb(18, 22, 27)"]
    # Paper is white whatever the screen is.
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.evaluate(colour)[0] == light[0]
    assert_well_behaved(opened)


def test_a_publisher_is_brought_forward_with_the_keyboard(reader: Reader) -> None:
    opened = reader.open(MadeUp(HOSTILE).report())
    chips = opened.page.locator("#lines .chip")
    strengths = """() => [...document.querySelectorAll("#chart-trend .mark-line path")].map(
        (line) => Number(getComputedStyle(line).opacity))"""
    assert opened.page.evaluate(strengths) == [1.0] * 8
    chips.nth(1).focus()
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_function(f"({strengths})().filter((each) => each === 1).length === 1")
    assert chips.nth(1).get_attribute("aria-pressed") == "true"
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_function(f"({strengths})().every((each) => each === 1)")
    assert chips.nth(1).get_attribute("aria-pressed") == "false"
    assert_well_behaved(opened)


@pytest.mark.parametrize("size", first(1, [(PHONE,), (DESKTOP,)]), ids=["phone", "desktop"])
def test_the_name_of_an_hour_stays_inside_its_tooltip(
    reader: Reader, size: tuple[int, int]
) -> None:
    """It is the longest that there is: "Fri 13 March 2026, 11:00 to 12:00 CET"."""
    page = reader.open(MadeUp(slot="1h", slots=400, released=300).report(), size).page
    bars = page.locator("#chart-bars-0 .role-mark path").last
    bars.scroll_into_view_if_needed()
    bars.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert " to " in tooltip.inner_text()
    assert tooltip.evaluate("each => each.scrollWidth <= each.clientWidth")
    box = tooltip.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size[0]


def test_pointing_at_a_line_tells_its_number(reader: Reader) -> None:
    report = MadeUp(HOSTILE, mechanism="personal-budget").report(band=True)
    opened = reader.open(report)
    # Eight lines; the first one is the largest, and far from the others on day 21.
    point = opened.page.locator("#chart-trend path[aria-roledescription=point]").nth(20 * 8)
    box = point.bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tooltip = opened.page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    text = tooltip.inner_text()
    assert HOSTILE[0] in text
    assert "Sat 21 March 2026" in text
    cell = report.running_totals([21])[0]
    assert cell.high - cell.estimate > cell.estimate - cell.low
    assert f"{cell.low:,.0f} to {cell.high:,.0f}" in text
    assert f"{cell.band_low:,.0f} to {cell.band_high:,.0f}" in text
    # Of another range there is no band, and nothing is said of one.
    opened.page.get_by_role("button", name="Last 7 days").click()
    opened.page.wait_for_selector("#chart-trend path[aria-roledescription=point]")
    assert_well_behaved(opened)


def test_cells_can_be_downloaded(reader: Reader, tmp_path: Path) -> None:
    report = MadeUp(HOSTILE).report()
    opened = reader.open(report)
    with opened.page.expect_download() as download:
        opened.page.click("#download")
    assert download.value.suggested_filename == "spring-shoes-day-31.csv"
    download.value.save_as(tmp_path / "cells.csv")
    assert (tmp_path / "cells.csv").read_text(encoding="utf-8-sig") == report.to_csv()
    assert opened.complaints == []
