"""Results in a notebook, looked at in a browser: the example that writes them to a page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.documents.pages import ROOT
from tests.report.browsing import ARTEFACTS, launched

pytestmark = pytest.mark.browser


@pytest.fixture
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


@pytest.mark.slow
def test_a_notebook_shows_plans_and_reports_and_lets_people_choose(
    browser: Browser, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "notebook.py", tmp_path, "500", "9"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    noticed: list[str] = []
    page.on("console", lambda message: noticed.append(message.text))
    page.on("pageerror", lambda error: noticed.append(str(error)))
    page.on("request", lambda request: noticed.append(request.url))
    start = (tmp_path / "notebook.html").as_uri()
    page.goto(start)
    plan, released, report, framed, status = page.locator("section").all()
    expect(plan.locator("svg").first).to_be_visible()
    expect(plan).to_contain_text("revenue by publisher")
    expect(released.locator("table")).to_be_visible()
    # Totals, and what the campaign caused: buyers and purchases of three pairs of arms.
    expect(report.locator("svg")).to_have_count(7)
    expect(report).to_contain_text("buyers by the campaign: treatment against control")
    expect(status.locator("table")).to_be_visible()
    inside = framed.frame_locator("iframe")
    expect(inside.locator("#chart-trend svg")).to_be_visible()
    table = inside.locator("section[aria-labelledby=table-title] tbody")
    before = table.inner_text()
    inside.get_by_role("button", name="Last 7 days").first.click()
    expect(table).not_to_have_text(before)
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / "notebook.png", full_page=True)
    assert [each for each in noticed if each not in (start, "about:srcdoc")] == []
