"""A trial in a real browser: planned with several measures and a control, and read in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from adsbpc.model.arms import KeyedArms
from tests.report.browsing import ARTEFACTS, launched
from tests.service.clocks import SetClock
from tests.service.dashboard.stage import START, Stage
from tests.service.dashboard.watched import (
    DESKTOP,
    NARROWEST,
    PHONE,
    Scheme,
    Size,
    Watched,
    watched,
)
from tests.service.running import running, settings_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Stage]:
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        yield Stage(server, clock)


def release_day(stage: Stage, campaign: str, arms: KeyedArms, day: int) -> None:
    """Of 600 people everybody buys who sees ads, and a third of the others."""
    stage.clock.moment = START + timedelta(days=day - 1, hours=20)
    at = stage.clock.moment - timedelta(hours=1)
    people = [f"u{day}-{number}" for number in range(600)]
    treated = [user for user in people if arms.arm_of(user) == "treatment"]
    seen = [
        {"user_id": user, "advertiser_id": "Ad-1", "timestamp": at, "kind": "click"}
        for user in treated
    ]
    stage.server.client("publisher", "search").push_impressions(seen)
    others = [user for user in people if arms.arm_of(user) == "control"][::3]
    bought = [
        {"user_id": user, "timestamp": at + timedelta(minutes=30), "value": 20, "country": "DE"}
        for user in treated + others
    ]
    stage.server.client("advertiser", "Ad-1").push_conversions(bought)
    stage.clock.moment = START + timedelta(days=day, minutes=2)
    stage.wait_for_releases()
    stage.server.show(campaign)


def look_everywhere(seen: Watched, name: str) -> None:
    """Light, dark and on phones: it fits, and everybody can read it."""
    looks: tuple[tuple[Size, Scheme, str], ...] = (
        (DESKTOP, "light", "light"), (DESKTOP, "dark", "dark"), (PHONE, "light", "phone"),
        (NARROWEST, "dark", ""),
    )  # fmt: skip
    for size, scheme, shown in looks:
        seen.appear(size, scheme)
        seen.assert_well_behaved()
        assert seen.faults() == []
        if shown:
            seen.page.screenshot(path=ARTEFACTS / f"{name}-{shown}.png", full_page=True)
    seen.appear(DESKTOP, "light")


@pytest.mark.slow
def test_a_trial_with_several_measures(browser: Browser, fresh: Stage) -> None:
    with watched(browser, fresh.server.url, accept_downloads=True) as seen:
        page = seen.page
        seen.sign_in(fresh.server.key("operator"))
        seen.open("/campaigns/new")
        # Of five rows one is there, and another comes with each that is filled.
        rows = page.locator(".measure:visible")
        expect(rows).to_have_count(2)
        page.get_by_label("And", exact=True).first.select_option("value")
        expect(rows).to_have_count(3)
        second = page.get_by_role("group", name="Measure 2")
        second.get_by_label("Most per conversion").fill("50")
        second.get_by_label("Told apart by").select_option("country")
        page.get_by_label("What is told apart by country").fill("DE\nFR")
        expect(page.get_by_label("What is told apart by device")).to_be_hidden()
        page.get_by_label("People who see no ads").fill("0.5")
        for row, (share, volume) in {1: ("0.3", "9000"), 2: ("0.3", "180000")}.items():
            measure = page.get_by_role("group", name=f"Measure {row}")
            measure.get_by_label("Share of the budget").fill(share)
            measure.get_by_label("Expected in all").fill(volume)
        page.get_by_label("The trial's share of the budget").fill("0.4")
        page.get_by_label("Number of hours, days, weeks or months", exact=True).fill("3")
        page.get_by_label("Privacy budget (rho)", exact=True).fill("100")
        sums = page.locator("table.sums tbody tr:visible")
        expect(sums).to_have_count(2 + 3 + 2)
        expect(sums.nth(4)).to_contain_text("one publisher and country")
        expect(sums.nth(4)).to_contain_text("%")
        page.get_by_label("Publishers", exact=True).fill("search\nsocial")
        page.get_by_label("Name").fill("spring")
        page.get_by_label("Advertiser").fill("Ad-1")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        look_everywhere(seen, "new-trial")
        page.get_by_role("button", name="Create campaign").click()

        expect(page.locator(".summary")).to_contain_text("Nothing is published yet.")
        campaign = page.url.rpartition("/")[2]
        with page.expect_download() as download:
            page.get_by_role("link", name="The key (JSON)").click()
        told = json.loads(Path(download.value.path()).read_text())
        arms = KeyedArms(told["key"], tuple((arm, end) for arm, end in told["limits"]))
        for day in (1, 2):
            release_day(fresh, campaign, arms, day)
        seen.open(f"/campaigns/{campaign}")
        expect(page.get_by_role("heading", name="What the campaign caused")).to_be_visible()
        card = page.locator("section", has=page.locator("#lift-title"))
        expect(card).to_contain_text("treatment")
        seen.assert_drawn()
        look_everywhere(seen, "trial")

    # Who only reads figures is not told that there is a key.
    with watched(browser, fresh.server.url) as seen:
        seen.sign_in(fresh.server.key("reader"))
        seen.open(f"/campaigns/{campaign}")
        expect(seen.page.get_by_role("heading", name="What the campaign caused")).to_be_visible()
        assert seen.page.get_by_role("heading", name="Who sees ads").count() == 0
        seen.assert_well_behaved()
