"""The dashboard in a real browser: sign in, plan, create, watch, download, sign out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.report.browsing import ARTEFACTS, launched
from tests.service.clocks import SetClock
from tests.service.dashboard.stage import START, Stage
from tests.service.dashboard.watched import watched
from tests.service.running import running, settings_in

pytestmark = pytest.mark.browser

_SEEN = """(seen) => {
    Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Stage]:
    """A server without any campaign."""
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        yield Stage(server, clock)


def test_the_story(browser: Browser, fresh: Stage, tmp_path: Path) -> None:
    with watched(browser, fresh.server.url, accept_downloads=True) as seen:
        page = seen.page
        seen.sign_in(fresh.server.key("operator"))
        page.get_by_role("link", name="Plan the first campaign").click()

        # The planner answers while one slides, and nothing is spent.
        seen.wait_until_drawn()
        figures = page.locator("#figures")
        expect(figures).to_contain_text("7.77")
        slider = page.get_by_label("Privacy budget (rho), slider")
        slider.focus()
        for _ in range(10):
            page.keyboard.press("ArrowLeft")
        expect(page.get_by_label("Privacy budget (rho)", exact=True)).to_have_value("0.79")
        expect(figures).not_to_contain_text("7.77")
        expect(page.locator("#said")).to_contain_text("Expected: one publisher ±")
        page.get_by_label("Number of hours, days, weeks or months", exact=True).fill("3")
        page.get_by_label("Mechanism").select_option("personal-budget")
        expect(page.locator("#expected")).to_contain_text("one user's budget")
        assert page.get_by_label("Conversions of a heavy user in one slot", exact=True).is_hidden()
        page.get_by_label("Publishers", exact=True).fill("search\nsocial\nvideo")
        expect(page.get_by_label("Number of publishers, to plan with", exact=True)).to_have_value(
            "3"
        )
        page.get_by_label("Name").fill("spring")
        page.get_by_label("Advertiser").fill("Ad-1")
        page.get_by_role("button", name="Create campaign").click()

        # Before the first release there is a friendly word, and the page waits by itself.
        expect(page.get_by_role("heading", level=1)).to_have_text("spring")
        expect(page.locator(".summary")).to_contain_text("Nothing is published yet.")
        expect(page.locator("#live")).to_have_text("Live")
        page.evaluate("window.stillHere = true")

        fresh.release_day(1)
        expect(page.locator("#said")).to_have_text(
            re.compile(r"New figures: [\d,]+ .* attributed conversions so far"), timeout=10_000
        )
        expect(page.locator("#chart-trend svg")).to_be_visible()
        assert page.evaluate("window.stillHere")
        page.get_by_role("button", name="social").click()

        # A page that nobody sees waits until somebody does.
        page.evaluate(_SEEN, False)
        fresh.release_day(2)
        assert "day 1 of 3" in page.inner_text(".facts")
        page.evaluate(_SEEN, True)
        expect(page.locator(".facts")).to_contain_text("day 2 of 3", timeout=10_000)
        # What was picked stays picked.
        expect(page.get_by_role("button", name="social")).to_have_attribute("aria-pressed", "true")
        assert page.evaluate("window.stillHere")
        page.wait_for_timeout(300)
        page.screenshot(path=ARTEFACTS / "campaign-live.png", full_page=True)

        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        download.value.save_as(tmp_path / "cells.csv")
        assert download.value.suggested_filename == "spring.csv"
        campaign = fresh.server.backend.campaigns.all()[0].campaign
        assert (tmp_path / "cells.csv").read_text(encoding="utf-8") == campaign.report().to_csv()

        # After the last slot there is nothing more to wait for.
        fresh.release_day(3)
        expect(page.locator(".facts")).to_contain_text("day 3 of 3", timeout=10_000)
        assert page.locator("#live").count() == 0

        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/sign-in")
        page.goto(f"{seen.url}/campaigns")
        page.wait_for_url("**/sign-in**")
        seen.assert_well_behaved()


def test_keys_are_made_copied_and_revoked(browser: Browser, fresh: Stage) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with watched(browser, fresh.server.url, permissions=permissions) as seen:
        page = seen.page
        seen.sign_in(fresh.server.key("operator"))
        seen.open("/operations/keys")
        page.get_by_label("Speaks for").fill("search")
        page.get_by_label("Label").fill("Search network")
        page.get_by_role("button", name="Make key").click()
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#said")).to_have_text("The key was copied.")
        key = page.evaluate("navigator.clipboard.readText()")
        assert fresh.server.backend.keys.authenticate(key) is not None
        # It asks first.
        row = page.get_by_role("row").filter(has_text="Search network")
        assert row.get_by_role("button").count() == 0 or row.get_by_role("button").is_hidden()
        row.get_by_text("Revoke", exact=True).click()
        row.get_by_role("button", name="Revoke for good: Search network").click()
        expect(row).to_contain_text("revoked")
        assert fresh.server.backend.keys.authenticate(key) is None
        seen.assert_well_behaved()


def test_a_session_that_is_over_leads_to_sign_in(browser: Browser, fresh: Stage) -> None:
    fresh.create("spring")
    with watched(browser, fresh.server.url) as seen:
        seen.sign_in(fresh.server.key("operator"))
        seen.open(f"/campaigns/{fresh.campaigns['spring']}")
        expect(seen.page.locator("#live")).to_have_text("Live")
        for record in fresh.server.backend.keys.list():
            fresh.server.backend.sessions.close_all(record.key_id)
        fresh.release_day(1)
        seen.page.wait_for_url("**/sign-in**", timeout=10_000)
