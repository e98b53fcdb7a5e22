"""Chromium for tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from adsbpc.report import Report

DESKTOP, PHONE, NARROWEST = (1200, 900), (390, 844), (360, 640)
ARTEFACTS = Path(__file__).parent.parent.parent / "test-artefacts"
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A page may take long beside other tests; what never appears is waited for once.
expect.set_options(timeout=30_000)


@contextmanager
def launched() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on the PATH: the page is NOT TESTED in a browser. Install it")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield opened
        opened.close()


def faults_of(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe-core finds wrong for who reads with a screen reader, a keyboard, weak eyes."""
    # Run by the browser itself, so that the page's policy stays as it is.
    page.evaluate(_axe())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: list[dict[str, Any]] = page.evaluate(
        "async (options) => (await axe.run(document, options)).violations", options
    )
    return [
        f"{each['impact']}: {each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]


@cache
def _axe() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")


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
        size: tuple[int, int] = DESKTOP,
        scheme: Literal["light", "dark"] = "light",
        view: str = "",
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
        page.on("request", lambda request: opened.requests.append(request.url.partition("#")[0]))
        page.goto(target.as_uri() + view)
        page.wait_for_selector("html[data-drawn]", state="attached", timeout=20_000)
        return opened


def assert_well_behaved(opened: Opened) -> None:
    page = opened.page
    assert opened.complaints == []
    assert opened.requests == [page.url.partition("#")[0]]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # Nothing hangs below the end of the page.
    assert page.evaluate(
        """() => {
            const footer = document.querySelector("footer").getBoundingClientRect();
            const end = Math.max(window.innerHeight, footer.bottom + window.scrollY);
            return document.documentElement.scrollHeight - end < 80;
        }"""
    )
