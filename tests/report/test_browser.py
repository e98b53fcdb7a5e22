"""The page in a real browser: it draws, stays quiet, fits, and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from adsbpc import Campaign
from adsbpc.report import Report
from tests.campaign.measured import write_shop
from tests.report.browsing import ARTEFACTS, faults_of, launched
from tests.report.releases import MadeUp
from tests.report.test_page import HOSTILE

pytestmark = pytest.mark.browser

_DESKTOP, _PHONE, _NARROWEST = (1200, 900), (390, 844), (360, 640)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


@dataclass
class Opened:
    """A page and everything that it did without being asked to."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reader:
    browser: Browser
    folder: Path

    def open(
        self,
        report: Report,
        size: tuple[int, int] = _DESKTOP,
        scheme: Literal["light", "dark"] = "light",
    ) -> Opened:
        target = self.folder / "report.html"
        report.write(target, "html")
        width, height = size
        page = self.browser.new_page(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        opened = Opened(page)
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(target.as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached", timeout=20_000)
        return opened


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    yield Reader(browser, tmp_path)
    for context in browser.contexts:
        context.close()


def _assert_well_behaved(opened: Opened) -> None:
    page = opened.page
    assert opened.complaints == []
    assert opened.requests == [page.url]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # Nothing hangs below the end of the page.
    assert page.evaluate(
        """() => {
            const footer = document.querySelector("footer").getBoundingClientRect();
            const end = Math.max(window.innerHeight, footer.bottom + window.scrollY);
            return document.documentElement.scrollHeight - end < 80;
        }"""
    )


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
    [
        (_DESKTOP, "light", "report-light.png"),
        (_DESKTOP, "dark", "report-dark.png"),
        (_PHONE, "light", "report-phone.png"),
    ],
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
    _assert_well_behaved(opened)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [_DESKTOP, _NARROWEST], ids=["wide", "narrow"])
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
    _assert_well_behaved(opened)


@pytest.mark.parametrize("size", [_DESKTOP, _NARROWEST], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    "made",
    [
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
        MadeUp(
            HOSTILE, name="</title><script>alert(0)</script>", model="shapley_ordered", fit_slot=1
        ),
        MadeUp(volume=0.1, scale=20),
        MadeUp(tuple(f"p{k}" for k in range(60)), volume=1, scale=20),
        MadeUp(metric="value", value_cap=500.0, volume=9e6, scale=9e5),
        MadeUp(slot="1h", slots=72, released=60),
        MadeUp(mechanism="personal-budget", allowances=(8.0, 11.3137)),
    ],
    ids=[
        "first",
        "only",
        "many",
        "long names",
        "hostile",
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
    _assert_well_behaved(opened)


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
    _assert_well_behaved(opened)


def test_a_publisher_is_brought_forward_with_the_keyboard(reader: Reader) -> None:
    opened = reader.open(MadeUp(HOSTILE).report())
    chips = opened.page.locator(".chip")
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
    _assert_well_behaved(opened)


@pytest.mark.parametrize("size", [_DESKTOP, _PHONE], ids=["desktop", "phone"])
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
    report = MadeUp(HOSTILE, mechanism="personal-budget").report()
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
    assert cell.high - cell.estimate > 2 * (cell.estimate - cell.low)
    assert f"{cell.low:,.0f} to {cell.high:,.0f}" in text
    _assert_well_behaved(opened)


def test_cells_can_be_downloaded(reader: Reader, tmp_path: Path) -> None:
    report = MadeUp(HOSTILE).report()
    opened = reader.open(report)
    with opened.page.expect_download() as download:
        opened.page.click("#download")
    assert download.value.suggested_filename == "spring-shoes-day-31.csv"
    download.value.save_as(tmp_path / "cells.csv")
    assert (tmp_path / "cells.csv").read_text(encoding="utf-8-sig") == report.to_csv()
    assert opened.complaints == []


@pytest.mark.parametrize(
    ("size", "scheme"), [(_DESKTOP, "light"), (_PHONE, "dark")], ids=["desktop", "phone"]
)
def test_a_page_of_measures(
    reader: Reader, tmp_path: Path, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """Figures on top, levels that open, from a campaign that was released."""
    shop = write_shop(tmp_path / "shop", people=200)
    (tmp_path / "shop" / "spend.csv").write_text("publisher_id,day,amount\nP-1,2026-03-01,900\n")
    shop.file.write_text(shop.file.read_text() + '\n[spend]\nfile = "spend.csv"\n')
    campaign = Campaign.load(shop.file)
    campaign.release()
    opened = reader.open(campaign.report(), size, scheme)
    _assert_well_behaved(opened)
    page = opened.page
    labels = page.locator(".figures dt").all_inner_texts()
    assert [label.lower() for label in labels] == [
        "conversions", "revenue, eur", "cost per conversion", "return on spend",
        "value per conversion",
    ]  # fmt: skip
    assert page.locator("details table").first.is_visible()
    assert not page.locator("details table").nth(1).is_visible()
    page.locator("summary").nth(1).click()
    assert page.locator("details table").nth(1).is_visible()
    assert faults_of(page) == []
    page.screenshot(path=ARTEFACTS / f"measures-{scheme}.png", full_page=True)
