"""Any range of slots, in a browser: the numbers of `report.between`, a view that can be sent."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from adsbpc import Campaign
from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import Report, explorer
from adsbpc.report.numbers import amount, interval
from adsbpc.report.ranges import Span
from tests.campaign.files import ADSBPC, PERSONAL
from tests.campaign.measured import write_shop
from tests.effort import first
from tests.report.browsing import (
    ARTEFACTS,
    DESKTOP,
    PHONE,
    Reader,
    assert_well_behaved,
    faults_of,
)
from tests.report.outline import Outline
from tests.report.releases import MadeUp

pytestmark = pytest.mark.browser

# Every cell of a measure in a range, and what changed since another, as the page's script has it.
_NUMBERS = """([place, after, before]) => {
    const { explorer } = JSON.parse(document.getElementById("report-data").textContent);
    const measure = explorer.measures[place];
    const own = rangesOf(measure, explorer.boundaries, reachOf(explorer));
    return measure.totals.map((cells, depth) => cells.map((_, index) => {
        const { estimate, error, low, high, cut, noisy } = own.cell(depth, index, after);
        const changed = own.change(depth, index, after, before);
        return { cell: [estimate, error, low, high, cut], noisy,
                 change: [changed.difference, changed.low, changed.high],
                 ratio: changed.ratio && ["value", "low", "high"].map((k) => changed.ratio[k]) };
    }));
}"""

# One measure by another in a range, publishers first and then everything; null where not told.
_QUOTIENTS = """([above, below, span]) => {
    const { explorer } = JSON.parse(document.getElementById("report-data").textContent);
    const reach = reachOf(explorer);
    const [over, under] = [above, below].map((place) =>
        rangesOf(explorer.measures[place], explorer.boundaries, reach));
    return [1, 0].flatMap((depth) => explorer.measures[above].totals[depth].map((_, index) => {
        const found = ratioOf(over.cell(depth, index, span), under.cell(depth, index, span), reach);
        return found.told ? [found.value, found.low, found.high] : null;
    }));
}"""


@pytest.fixture(
    scope="module", params=first(1, [PERSONAL, ADSBPC]), ids=["personal-budget", "adsbpc"]
)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Three days, two measures by two dimensions each, and spend."""
    folder = tmp_path_factory.mktemp("shop")
    found = write_shop(folder, people=150, privacy=request.param)
    (folder / "spend.csv").write_text(
        "publisher_id,day,amount,country\nP-1,2026-03-01,900,DE\nP-2,2026-03-02,300,FR\n"
        "P-1,2026-03-03,100,FR\n"
    )
    spend = '\n[spend]\nfile = "spend.csv"\nby = ["country"]\n'
    found.file.write_text(found.file.read_text() + spend)
    campaign = Campaign.load(found.file)
    campaign.release()
    return campaign


def _spans(last: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(1, last + 1) for b in range(a, last + 1)]


def _assert_same(page: Page, report: Report, after: Span, before: Span) -> None:
    """Every number of every measure, as Python has it."""
    for place, measure in enumerate(report.spec.measures):
        own, layout = replace(report, measure_name=measure.name), measure.layout
        spans = [[first - 1, last] for first, last in (after, before)]
        found = page.evaluate(_NUMBERS, [place, *spans])
        by_keys: dict[tuple[str, ...], dict[str, Any]] = {
            keys: found[depth][index]
            for depth in range(len(layout.dimensions) + 1)
            for index, keys in enumerate(layout.names(depth))
        }
        cells, changes = own.between(*after), own.changes(after, before)
        assert len(by_keys) == len(cells) == len(changes)
        for cell, change in zip(cells, changes, strict=True):
            got = by_keys[cell.keys]
            numbers = (cell.estimate, cell.standard_error, cell.low, cell.high, cell.cut)
            assert got["cell"] == pytest.approx(numbers, rel=1e-7, abs=1e-6)
            assert got["noisy"] == cell.noisy
            differences = (change.difference, change.low, change.high)
            assert got["change"] == pytest.approx(differences, rel=1e-6, abs=1e-5)
            assert (got["ratio"] is None) == (change.ratio is None)
            if change.ratio is not None:
                ratios = (change.ratio, change.ratio_low, change.ratio_high)
                assert got["ratio"] == pytest.approx(ratios, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("adjusted", [False, True], ids=["released", "adjusted"])
def test_every_range_has_the_numbers_of_the_report(
    reader: Reader, shop: Campaign, adjusted: bool
) -> None:
    report = shop.report(adjusted=adjusted)
    page = reader.open(report).page
    spans = _spans(3)
    for after, before in [*zip(spans, reversed(spans), strict=True), ((2, 3), (1, 2))]:
        _assert_same(page, report, after, before)


def test_ratios_of_every_range_are_those_of_the_report(reader: Reader, shop: Campaign) -> None:
    report = shop.report()
    page = reader.open(report).page
    names = [measure.name for measure in report.spec.measures]
    places, told = [names.index(name) for name in ("revenue", "conversions")], 0
    for first_slot, last in _spans(3):
        got = page.evaluate(_QUOTIENTS, [*places, [first_slot - 1, last]])
        by_publisher = {
            each.publisher: each
            for each in report.ratios_between(first_slot, last)
            if each.name == "value per conversion" and not each.keys
        }
        publishers = [name for (name,) in report.spec.measures[0].layout.names(1)]
        for name, ends in zip([*publishers, ALL_PUBLISHERS], got, strict=True):
            ratio = by_publisher[name]
            wanted = None if ratio.value is None else (ratio.value, ratio.low, ratio.high)
            assert ends == (wanted and pytest.approx(wanted, rel=1e-6))
        told += sum(ends is not None for ends in got)
    assert told
    assert any(cell.cut > 0 for cell in report.between(1, 3))


def test_ranges_of_a_long_campaign(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """They start and end at every so many slots, counted from the newest back."""
    monkeypatch.setattr(explorer, "_MOST_BOUNDARIES", 10)
    report = MadeUp(mechanism="personal-budget").report()
    page = reader.open(report).page
    data = json.loads(page.locator("#report-data").inner_text())["explorer"]
    assert data["boundaries"] == [0, 3, 7, 11, 15, 19, 23, 27, 31]
    (cells,) = [page.evaluate(_NUMBERS, [0, [2, 5], [1, 2]])]
    for got, cell in zip(cells[1], report.between(8, 19), strict=False):
        assert got["cell"][2:4] == pytest.approx((cell.low, cell.high), rel=1e-7, abs=1e-6)


def _texts(within: Page | Locator, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in within.locator(selector).all_inner_texts()]


def test_what_is_shown_first_is_what_a_page_without_script_has(
    reader: Reader, shop: Campaign
) -> None:
    """Figures and rows are made again by the script, to the last digit."""
    report = shop.report()
    plain = Outline(report.to_html()).words
    page = reader.open(report).page
    for row in page.locator("#breakdown tbody tr, #breakdown tfoot tr").all():
        assert " ".join(_texts(row, "th, td")[:5]).strip() in plain
    for figure in page.locator("#figures > div").all():
        label, value, within = _texts(figure, "dt, dd, dd small:first-of-type")
        shown = f"{label} {value.partition(within)[0]}{within}"
        assert shown.lower() in plain.lower()


def test_what_was_paid_stands_beside_every_row_that_it_is_known_of(
    reader: Reader, shop: Campaign
) -> None:
    report = shop.report()
    page = reader.open(report).page
    table = page.locator("#breakdown")
    assert "Cost per conversion" in _texts(table, "thead th")
    table.get_by_role("button", name="P-1").click()
    shown = {
        _texts(row, "th")[0]: _texts(row, "td.ratio")[0] for row in table.locator("tbody tr").all()
    }
    costs = {
        list(each.keys.values())[-1] if each.keys else each.publisher: each
        for each in report.ratios
        if each.name == "cost per conversion" and (not each.keys or each.publisher == "P-1")
    }
    assert set(costs) == {"(all)", "P-1", "P-2", "DE", "FR"}
    # Nothing was paid for others: of publishers, of countries.
    assert {name for name, text in shown.items() if not text} == {"other"}
    for name, text in shown.items():
        if (ratio := costs.get(name)) is not None and ratio.value is not None:
            assert ratio.low is not None
            assert ratio.high is not None
            told = interval(ratio.low, ratio.high, 2)
            assert text == f"{amount(ratio.value, 2)} ({told})"
    page.get_by_label("of", exact=True).select_option("revenue, EUR")
    assert "Return on spend" in _texts(table, "thead th")


def test_a_view_can_be_sent(reader: Reader, shop: Campaign) -> None:
    """What was chosen stands in the address, and whoever opens it sees the same."""
    report = shop.report()
    page = reader.open(report).page
    page.get_by_label("Range, first day").select_option("1 Mar 2026")
    page.get_by_label("Range, last day").select_option("2 Mar 2026")
    page.get_by_label("against").select_option("another period")
    page.get_by_label("Period to compare with, first day").select_option("3 Mar 2026")
    page.locator("#breakdown").get_by_role("button", name="P-1").click()
    page.get_by_role("button", name="Change").click()
    page.get_by_label("Search").fill("p-")
    # The address follows in the browser's own time.
    page.wait_for_url(lambda url: "search=" in url)
    assert page.url.partition("#")[2] == (
        "range=1-2&compare=3-3&sort=change&search=p-&open=%5B%22P-1%22%5D"
    )
    shown = [_texts(page, part) for part in ("#breakdown tr", "#figures > div", "#headline-title")]
    other = reader.open(report, view="#" + page.url.partition("#")[2])
    again = [
        _texts(other.page, part) for part in ("#breakdown tr", "#figures > div", "#headline-title")
    ]
    assert again == shown
    assert shown[2] == ["1 Mar 2026 to 2 Mar 2026"]
    # The range of the first two days, of everything.
    total = report.between(1, 2)[-1]
    assert f"{amount(total.estimate, 0)} {interval(total.low, total.high, 0)}" in shown[1][0]
    change = report.changes((1, 2), (3, 3))[-1]
    assert change.ratio is not None
    assert f"{100 * (change.ratio - 1):+,.0f}%" in shown[1][0].replace("\N{MINUS SIGN}", "-")
    paid, revenue = 1200, replace(report, measure_name="revenue").between(1, 2)[-1]
    assert f"return on spend {revenue.estimate / paid:,.2f}" in shown[1][3].lower()
    # Noise is real: now and then so few people cannot be told from zero.
    cost = f"{paid / total.estimate:,.2f}" if total.low > 0 else "cannot be told yet"
    assert f"cost per conversion {cost}" in shown[1][2].lower()
    # Three publishers, of which two are named so, and the countries of one.
    assert len(shown[0]) == 1 + 2 + 3 + 1
    page.goto(page.url.partition("#")[0] + "#range=9-2&compare=x&sort=y&open=nothing&measure=z")
    expect(page.locator("#headline-title")).to_have_text("So far")
    assert_well_behaved(other)


@pytest.mark.parametrize(
    ("size", "scheme"), first(1, [(PHONE, "dark"), (DESKTOP, "light")]), ids=["phone", "desktop"]
)
def test_a_page_of_measures(
    reader: Reader, shop: Campaign, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """Figures on top, the chart in the first screen, levels that open with the keyboard."""
    opened = reader.open(shop.report(), size, scheme)
    page = opened.page
    assert [label.lower() for label in _texts(page, ".figures dt")] == [
        "conversions", "revenue, eur", "cost per conversion", "return on spend",
        "value per conversion",
    ]  # fmt: skip
    chart = page.locator("#chart-trend").bounding_box()
    assert chart is not None
    if size == DESKTOP:
        assert chart["y"] + chart["height"] <= DESKTOP[1]
    before = page.locator("#breakdown tbody tr").count()
    toggle = page.locator("#breakdown").get_by_role("button", name="P-1")
    toggle.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#breakdown tbody tr")).to_have_count(before + 3)
    assert page.evaluate("document.activeElement.textContent") == "P-1"
    page.get_by_label("of", exact=True).select_option("revenue, EUR")
    expect(page.locator("#breakdown tbody tr")).to_have_count(before)
    assert page.locator("details.prose p").first.is_hidden()
    page.locator("details.prose summary").click()
    assert page.locator("details.prose p").first.is_visible()
    assert faults_of(page) == []
    assert_well_behaved(opened)
    page.screenshot(path=ARTEFACTS / f"measures-{scheme}.png", full_page=True)


def test_levels_beyond_what_a_page_holds(
    reader: Reader, shop: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "_MOST_VALUES", 20)
    opened = reader.open(shop.report())
    assert opened.page.locator("#breakdown .toggle").count() == 0
    expect(opened.page.locator("#table-when")).to_contain_text("country is in the files")
    assert_well_behaved(opened)
