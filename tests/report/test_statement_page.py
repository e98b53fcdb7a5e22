"""The page of a statement in a browser: it fits, asks for nothing, and can be read by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from adsbpc import Campaign
from tests.campaign.files import write_campaign
from tests.report.browsing import (
    DESKTOP,
    NARROWEST,
    PHONE,
    Opened,
    assert_well_behaved,
    faults_of,
)


@pytest.mark.browser
def test_the_page_of_a_statement(browser: Browser, tmp_path: Path) -> None:
    campaign = Campaign.load(write_campaign(tmp_path, slots=2))
    campaign.release()
    target = tmp_path / "statement.html"
    campaign.statement(audited=False).write(target, "html")
    screens: tuple[tuple[tuple[int, int], Literal["light", "dark"]], ...] = (
        (DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (NARROWEST, "dark"),
    )  # fmt: skip
    for size, scheme in screens:
        opened = _opened(browser, target, size, scheme)
        assert_well_behaved(opened)
        assert faults_of(opened.page) == []
        opened.page.close()


def _opened(
    browser: Browser, target: Path, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> Opened:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    opened = Opened(page)
    page.on("console", lambda message: opened.complaints.append(message.text))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(target.as_uri())
    return opened
