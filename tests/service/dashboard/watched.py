"""A browser that is watched: what its pages complain about, ask for, and keep from some readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.report.browsing import faults_of
from tests.service.dashboard.stage import Visitor

Size = tuple[int, int]
Scheme = Literal["light", "dark"]
DESKTOP, PHONE, NARROWEST = (1200, 900), (390, 844), (360, 640)


@dataclass
class Watched:
    """A page, and everything that it did without being asked to."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")
        self.wait_until_drawn()

    def wait_until_drawn(self) -> None:
        if self.page.locator(".chart").count():
            self.page.wait_for_selector("html[data-drawn]", state="attached", timeout=20_000)

    def sign_in(self, key: str) -> None:
        self.page.goto(f"{self.url}/sign-in")
        self.type_key(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/sign-in" not in url)

    def type_key(self, key: str) -> None:
        box = self.page.get_by_label("Key")
        # Chromium complains about who is faster than the page, which puts the cursor there.
        expect(box).to_be_focused()
        box.fill(key)

    def assert_well_behaved(self) -> None:
        """Quiet, from this server only, and not wider than the screen."""
        assert self.complaints == [], self.complaints
        assert [each for each in self.requests if not _is_own(each, self.url)] == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    def assert_drawn(self) -> None:
        charts = self.page.locator(".chart")
        assert charts.count() == self.page.locator(".chart svg").count()
        for chart in charts.all():
            assert chart.locator(".role-mark path").count() > 0

    def appear(self, size: Size, scheme: Scheme) -> None:
        """On a screen of another size or scheme, to which the page adapts by itself."""
        width, height = size
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=scheme)
        self.page.wait_for_function(
            """() => [...document.querySelectorAll(".chart svg")].every(
                (svg) => Math.abs(svg.clientWidth - svg.closest(".chart").clientWidth) < 2)"""
        )

    def faults(self, rules: tuple[str, ...] = ()) -> list[str]:
        """What axe-core finds wrong for who reads with a screen reader, a keyboard, weak eyes."""
        return faults_of(self.page, rules)


def _is_own(address: str, url: str) -> bool:
    return address.startswith((f"{url}/", "data:", "blob:"))


@contextmanager
def watched(
    browser: Browser,
    url: str,
    size: Size = DESKTOP,
    scheme: Scheme = "light",
    visitor: Visitor | None = None,
    **options: Any,
) -> Iterator[Watched]:
    """Signed in as a visitor is, if there is one."""
    width, height = size
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, **options
    )
    for name, value in visitor.http.cookies.items() if visitor else ():
        context.add_cookies([{"name": name, "value": value, "url": url}])
    try:
        yield Watched(context.new_page(), url)
    finally:
        context.close()
