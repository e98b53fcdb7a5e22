"""Every page in a real browser: it draws, stays quiet, fits, and everybody can read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from tests.effort import EVERYTHING, first
from tests.report.browsing import ARTEFACTS, launched
from tests.service.dashboard.stage import HOSTILE_NAME, Stage
from tests.service.dashboard.watched import (
    DESKTOP,
    NARROWEST,
    PHONE,
    Scheme,
    Size,
    Watched,
    watched,
)

pytestmark = pytest.mark.browser


@dataclass(frozen=True)
class Look:
    """Who looks, and which of axe's rules matter to them: all if none is named."""

    name: str
    size: Size
    scheme: Scheme
    rules: tuple[str, ...] | None = None


LOOKS = (
    Look("light", DESKTOP, "light", rules=()),
    Look("dark", DESKTOP, "dark", rules=("color-contrast",)),
    Look("phone", PHONE, "light"),
    Look("", NARROWEST, "dark"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


def _path(path: str) -> Callable[[Watched, Stage], None]:
    return lambda seen, _: seen.open(path)


def _campaign(name: str) -> Callable[[Watched, Stage], None]:
    return lambda seen, stage: seen.open(f"/campaigns/{stage.campaigns[name]}")


def _steered(seen: Watched, stage: Stage) -> None:
    """Asked whether to close it, which nobody does here."""
    seen.open(f"/campaigns/{stage.campaigns['spring']}")
    seen.page.locator("details.ask summary").first.click()
    seen.page.get_by_role("button", name="Close for good").wait_for()


def _refused_campaign(seen: Watched, _: Stage) -> None:
    seen.open("/campaigns/new")
    seen.page.get_by_label("Name").fill("spring")
    seen.page.get_by_label("Time zone").fill("Mars/Crater")
    seen.page.get_by_label("Advertiser").fill("Ad-1")
    seen.page.get_by_label("Privacy budget (rho)", exact=True).fill("-1")
    _answer(seen, 422, lambda: seen.page.get_by_role("button", name="Create campaign").click())
    seen.page.get_by_text("It was not created").wait_for()


def _weekly_campaign(seen: Watched, _: Stage) -> None:
    seen.open("/campaigns/new")
    assert not seen.page.get_by_label("Weeks start on").is_visible()
    seen.page.get_by_label("One release every").select_option("week")
    seen.page.get_by_text("Is a Tuesday, and with week_starts").wait_for()
    seen.page.get_by_label("Weeks start on").select_option("Tuesday")
    seen.page.get_by_text("Expected after week 31").wait_for()


def _new_key(seen: Watched, stage: Stage) -> None:
    seen.open("/operations/keys")
    seen.page.get_by_label("Speaks for").fill("a publisher with a name that is rather long")
    seen.page.get_by_label("Label").fill("whoever " * 12)
    seen.page.get_by_role("button", name="Make key").click()
    seen.page.get_by_text("It is shown only once").wait_for()
    seen.page.locator("details.ask summary").first.click()


def _verified(seen: Watched, _: Stage) -> None:
    seen.open("/operations")
    seen.page.get_by_role("button", name="Verify now").click()
    seen.page.get_by_text("as they were written").first.wait_for()
    seen.wait_until_drawn()


def _wrong_key(seen: Watched, stage: Stage) -> None:
    seen.open("/sign-in")
    seen.type_key("adsbpc_wrong")
    _answer(seen, 401, lambda: seen.page.get_by_role("button", name="Sign in").click())
    seen.page.get_by_role("alert").wait_for()
    stage.server.backend.throttle.record_success("127.0.0.1")


def _missing(seen: Watched, _: Stage) -> None:
    _answer(seen, 404, lambda: seen.page.goto(f"{seen.url}/{'nowhere/' * 20}"))


def _answer(seen: Watched, status: int, act: Callable[[], object]) -> None:
    """Browsers complain about errors that are answered: this one is wanted."""
    with seen.page.expect_response(lambda answer: answer.status == status):
        act()
    seen.page.wait_for_load_state()
    wanted = f"the server responded with a status of {status}"
    seen.complaints[:] = [each for each in seen.complaints if wanted not in each]


@dataclass(frozen=True)
class Shot:
    """A page that is looked at, by whom."""

    name: str
    show: Callable[[Watched, Stage], None]
    role: str = "operator"
    subject: str = ""
    whole: bool = True


SHOTS = [
    Shot("sign-in", _path("/sign-in"), role=""),
    Shot("sign-in-wrong", _wrong_key, role=""),
    Shot("campaigns", _path("/campaigns")),
    Shot("campaigns-none", _path("/campaigns"), "advertiser", "somebody-without-campaigns"),
    Shot("campaign", _campaign("spring"), "advertiser", "Ad-1"),
    Shot("campaigns-searched", _path("/campaigns?q=r&sort=name"), "reader"),
    Shot("campaign-steered", _steered),
    Shot("deliveries", _path("/deliveries"), "publisher", "search"),
    Shot("deliveries-quarantined", _path("/deliveries"), "advertiser", "Ad-1"),
    Shot("deliveries-none", _path("/deliveries"), "publisher", "somebody-who-sends-nothing"),
    Shot("operations-filtered", _path("/operations?who=operator&decision=allowed")),
    Shot("campaign-hostile", _campaign(HOSTILE_NAME)),
    Shot("campaign-waiting", _campaign("later")),
    Shot("new-campaign", _path("/campaigns/new")),
    Shot("new-campaign-refused", _refused_campaign),
    Shot("new-campaign-weeks", _weekly_campaign),
    Shot("operations", _verified),
    Shot("keys", _new_key),
    Shot("reference", _path("/docs"), role="", whole=False),
    Shot("missing", _missing),
]


@pytest.mark.parametrize("shot", first(10, SHOTS), ids=[shot.name for shot in SHOTS])
def test_a_page_draws_fits_and_can_be_read_by_all(
    browser: Browser, stage: Stage, shot: Shot
) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    visitor = stage.visitor(shot.role, shot.subject)
    with watched(browser, stage.server.url, visitor=visitor) as seen:
        shot.show(seen, stage)
        for look in LOOKS if EVERYTHING else LOOKS[:1]:
            seen.appear(look.size, look.scheme)
            seen.assert_drawn()
            seen.assert_well_behaved()
            if look.rules is not None:
                assert seen.faults(look.rules) == []
            if look.name:
                target = ARTEFACTS / f"{shot.name}-{look.name}.png"
                seen.page.screenshot(path=target, full_page=shot.whole)


def test_the_content_is_one_key_away(browser: Browser, stage: Stage) -> None:
    with watched(browser, stage.server.url, visitor=stage.visitor("operator")) as seen:
        seen.open("/operations")
        seen.page.keyboard.press("Tab")
        focused = seen.page.locator(":focus")
        assert focused.inner_text() == "Skip to content"
        box = focused.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        seen.page.keyboard.press("Enter")
        assert seen.page.evaluate("document.activeElement.id") == "main"


def test_pages_work_without_scripts(browser: Browser, stage: Stage) -> None:
    with watched(browser, stage.server.url, java_script_enabled=False) as seen:
        seen.sign_in(stage.server.key("operator"))
        seen.page.goto(f"{seen.url}/campaigns/{stage.campaigns['spring']}")
        assert seen.page.get_by_role("row").count() == 1 + 4 + 1
        assert "Every number is in the files" in seen.page.inner_text("main")
        seen.page.goto(f"{seen.url}/campaigns/new")
        before = seen.page.inner_text("#figures")
        seen.page.get_by_label("Privacy budget (rho)", exact=True).fill("0.1")
        seen.page.get_by_role("button", name="Plan again").click()
        seen.page.wait_for_load_state()
        assert seen.page.inner_text("#figures") != before
        assert seen.page.get_by_label("Privacy budget (rho)", exact=True).input_value() == "0.1"
