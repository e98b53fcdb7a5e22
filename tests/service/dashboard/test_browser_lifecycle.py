"""A campaign is paused, resumed, closed, continued and withdrawn by clicks in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect

from tests.effort import EVERYTHING
from tests.report.browsing import ARTEFACTS, launched
from tests.service.dashboard.stage import START, Stage
from tests.service.dashboard.test_browser_pages import LOOKS
from tests.service.dashboard.watched import Watched, watched
from tests.service.running import content

pytestmark = pytest.mark.browser
PUBLISHERS = ["search", "social", "video"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


def shoot(seen: Watched, name: str) -> None:
    """As it is looked at by everybody, and without anything that axe-core finds."""
    ARTEFACTS.mkdir(exist_ok=True)
    seen.wait_until_drawn()
    for look in LOOKS if EVERYTHING else LOOKS[:1]:
        seen.appear(look.size, look.scheme)
        seen.assert_drawn()
        seen.assert_well_behaved()
        if look.rules is not None:
            assert seen.faults(look.rules) == []
        if look.name:
            seen.page.screenshot(path=ARTEFACTS / f"{name}-{look.name}.png", full_page=True)
    seen.appear(LOOKS[0].size, LOOKS[0].scheme)


def click(seen: Watched, name: str) -> None:
    """A button that sends a form, after which there is another page."""
    with seen.page.expect_navigation():
        seen.page.get_by_role("button", name=name, exact=True).click()
    seen.wait_until_drawn()


def ask(seen: Watched, name: str) -> None:
    """What cannot be undone is asked first."""
    seen.page.locator("details.ask summary", has_text=name).click()


def test_a_campaign_is_steered_from_its_first_day_to_one_that_continues(
    browser: Browser, steered: Stage
) -> None:
    wanted = content(name="spring", slots=5, publishers=PUBLISHERS) | {
        "privacy": {"rho": 1.0, "mechanism": "personal-budget"}
    }
    campaign = steered.server.client("operator").create_campaign(wanted)["id"]
    steered.release_day(1)
    with watched(browser, steered.server.url, visitor=steered.visitor("operator")) as seen:
        page = seen.page
        seen.open(f"/campaigns/{campaign}")
        click(seen, "Pause")
        expect(page.get_by_text("Paused since")).to_be_visible()
        shoot(seen, "campaign-paused")
        click(seen, "Resume")
        expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
        ask(seen, "Close")
        click(seen, "Close for good")
        expect(page.get_by_role("heading", name="Pause or end it")).to_have_count(0)
        assert steered.server.client("operator").campaign(campaign)["state"] == "closed"
        shoot(seen, "campaign-closed")

        page.get_by_role("link", name="Continue", exact=True).click()
        expect(page.get_by_label("Name")).to_have_value("spring-2")
        expect(page.get_by_label("Continues")).to_have_value(campaign)
        seen.wait_until_drawn()
        shoot(seen, "campaign-continued")
        click(seen, "Create campaign")
        expect(page.get_by_role("heading", name="spring-2")).to_be_visible()

        ask(seen, "Withdraw")
        click(seen, "Withdraw for good")
        expect(page.get_by_role("link", name="spring", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="spring-2", exact=True)).to_have_count(0)
        seen.assert_well_behaved()


def test_a_publisher_is_told_what_came_late_and_what_is_spelt_wrong(
    browser: Browser, steered: Stage
) -> None:
    """One row may still be credited, one came too late for that, and one is nobody's."""
    wanted = content(publishers=PUBLISHERS) | {
        "events": {"settle": "1h", "wait": "1d"},
        "privacy": {"rho": 1.0, "mechanism": "personal-budget"},
        "measure": [{"name": each, "metric": each} for each in ("conversions", "impressions")],
    }
    steered.server.client("operator").create_campaign(wanted)
    steered.clock.moment = START + timedelta(days=2, hours=2)
    row = {"user_id": "u", "advertiser_id": "Ad-1", "kind": "view"}
    happened = [START + timedelta(hours=hours) for hours in (30, 1)]
    rows = [{**row, "timestamp": each} for each in happened]
    rows.append({**row, "advertiser_id": "Ad-l", "timestamp": steered.clock.moment})
    answer = steered.server.client("publisher", "search").push_impressions(rows, "late")
    assert (answer["after_count"], answer["after_release"]) == (1, 1)
    visitor = steered.visitor("publisher", "search")
    with watched(browser, steered.server.url, visitor=visitor) as seen:
        seen.open("/deliveries")
        expect(seen.page.get_by_text("Did you mean")).to_be_visible()
        expect(seen.page.get_by_text("too late for impressions, clicks and reach")).to_be_visible()
        shoot(seen, "deliveries-late")
