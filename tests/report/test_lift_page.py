"""The card of a trial in a real browser."""

from __future__ import annotations

from typing import Literal

import pytest

from adsbpc.report import Report
from tests.effort import first
from tests.report.browsing import (
    ARTEFACTS,
    DESKTOP,
    NARROWEST,
    PHONE,
    Reader,
    assert_well_behaved,
    faults_of,
)
from tests.report.trials import MadeUpTrial

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report() -> Report:
    return MadeUpTrial(released=20, daily_spend=100.0).report()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "scheme", "name"),
    first(
        1,
        [
            (PHONE, "light", "lift-phone.png"),
            (DESKTOP, "light", "lift-light.png"),
            (DESKTOP, "dark", "lift-dark.png"),
            (NARROWEST, "dark", "lift-narrow.png"),
        ],
    ),
    ids=["phone", "light", "dark", "narrow"],
)
def test_the_card_draws_and_fits(
    reader: Reader,
    report: Report,
    size: tuple[int, int],
    scheme: Literal["light", "dark"],
    name: str,
) -> None:
    opened = reader.open(report, size, scheme)
    card = opened.page.locator("section[aria-labelledby=lift-title]")
    figures = card.locator("figure.lift")
    # Three measures, each with three pairs of arms.
    assert figures.count() == 9
    for figure in figures.all():
        box = figure.locator(".chart svg").bounding_box()
        assert box is not None
        assert box["width"] > 150
        assert box["height"] > 100
        # Two bands, the line of no effect, the curve.
        assert figure.locator(".mark-area path").count() == 2
        assert figure.locator(".mark-line path").count() == 1
        assert figure.locator(".mark-rule").count() >= 1
        assert len(figure.locator("p").inner_text()) > 40
    texts = card.inner_text()
    for part in ("than without search", "Attribution beside it", "in balance", "country DE"):
        assert part in texts, part
    ARTEFACTS.mkdir(exist_ok=True)
    card.screenshot(path=ARTEFACTS / name)
    assert faults_of(opened.page) == []
    assert_well_behaved(opened)


def test_pointing_at_the_curve_tells_both_intervals(reader: Reader, report: Report) -> None:
    opened = reader.open(report)
    chart = opened.page.locator("#chart-lift-0")
    chart.scroll_into_view_if_needed()
    point = chart.locator("path[aria-roledescription=point]").last
    point.hover(force=True)
    tooltip = opened.page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    text = tooltip.inner_text()
    found = next(each for each in report.lifts if each.slot == 20)
    assert found.band_low is not None
    assert found.band_high is not None
    for part in ("one look", "all looks", f"{found.low:,.0f} to {found.high:,.0f}"):
        assert part in text
    assert_well_behaved(opened)
