"""The documentation site builds without a warning, has no broken link, and reads well."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.documents.pages import DOCS
from tests.documents.site import Links, build, served
from tests.effort import EVERYTHING
from tests.report.browsing import ARTEFACTS, DESKTOP, PHONE, faults_of, launched

# Sphinx takes long to build it.
pytestmark = pytest.mark.slow

_PAGES = (
    "index", "five-minutes", "concepts/rho", "reference/campaign-keys", "tutorials/first-campaign",
    "tutorials/reading-a-report", "tutorials/lift", "report", "how-to", "reference/python",
    "reference/http", "proof", "example", "reference/commands",
)  # fmt: skip
_LOOKS = {"light": (DESKTOP, "light"), "dark": (DESKTOP, "dark"), "phone": (PHONE, "light")}
# What every change looks at: plain pages, a picture, the widest table.
_FIRST = {
    "light": ("index", "five-minutes"),
    "dark": ("tutorials/lift",),
    "phone": ("reference/campaign-keys",),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation") / "site"
    build(folder)
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


def test_every_page_is_there_and_no_link_is_broken(site: Path) -> None:
    links = cache(Links)
    pages = sorted(site.rglob("*.html"))
    assert {file.relative_to(DOCS).with_suffix("") for file in DOCS.rglob("*.md")} <= {
        file.relative_to(site).with_suffix("") for file in pages
    }
    broken, followed = [], 0
    for page in pages:
        for target in links(page).targets:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "data", "mailto"):
                continue
            followed += 1
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            name = unquote(parts.fragment)
            found = file.is_file() and (
                not name or file.suffix != ".html" or name in links(file).names
            )
            if not found:
                broken.append(f"{page.relative_to(site)}: {target}")
    assert broken == []
    assert followed > 1_000, "hardly any link was followed: this tests nothing"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Links may lead elsewhere; scripts, styles, fonts and pictures may not come from there."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for sign in ('src="http', "src='http", '<link rel="stylesheet" href="http', "@import"):
            assert sign not in text, f"{page.name}: {sign}"
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8"), style.name


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    yield lambda name: importlib.import_module(f"generators.{name}")
    for name in [each for each in sys.modules if each.partition(".")[0] == "generators"]:
        del sys.modules[name]


def test_the_reference_has_every_key_command_and_path(site: Path, generators: Any) -> None:
    texts = {
        name: (site / "reference" / f"{name}.html").read_text(encoding="utf-8")
        for name in ("campaign-keys", "commands", "http")
    }
    keys = list(generators("campaign_keys").keys())
    assert len(keys) > 90
    for key in keys:
        assert f'<span class="pre">{key.name}</span>' in texts["campaign-keys"], key
    commands = [name for name, _ in generators("commands").commands()]
    assert "adsbpc release" in commands
    assert "adsbpc keys create" in commands
    for command in commands:
        assert f"{command}<a" in texts["commands"]
    for path in generators("http_api").openapi()["paths"]:
        assert path in texts["http"]


@pytest.mark.parametrize("change", ["a key without a meaning", "a meaning without a key"])
def test_a_reference_that_is_not_whole_stops_the_build(
    change: str, generators: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = generators("campaign_keys")
    text = module.MEANINGS.read_text(encoding="utf-8")
    if change == "a key without a meaning":
        changed = "".join(line for line in text.splitlines(True) if not line.startswith("slots ="))
    else:
        changed = text.replace("[campaign]\n", '[campaign]\ncolour = "Of the ads."\n')
    assert changed != text
    (tmp_path / "meanings.toml").write_text(changed, encoding="utf-8")
    monkeypatch.setattr(module, "MEANINGS", tmp_path / "meanings.toml")
    with pytest.raises(ValueError, match="Correct that file"):
        module.page()


def _failed(request: Request) -> list[str]:
    """What nobody waits for any more, because another page was opened, has not failed."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"failed: {request.url}"]


def _open(browser: Browser, url: str, look: str) -> tuple[Page, list[str]]:
    """A page, and whatever it complains about or asks others for."""
    (width, height), scheme = _LOOKS[look]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    noticed: list[str] = []
    origin = urlsplit(url).netloc
    page.on("console", lambda message: noticed.append(message.text))
    page.on("pageerror", lambda error: noticed.append(str(error)))
    page.on("requestfailed", lambda request: noticed.extend(_failed(request)))
    page.on(
        "request",
        lambda request: (
            None
            if urlsplit(request.url).netloc == origin or request.url.startswith("data:")
            else noticed.append(f"outside: {request.url}")
        ),
    )
    page.goto(url)
    return page, noticed


@pytest.mark.browser
@pytest.mark.parametrize("look", _LOOKS)
def test_pages_read_well_in_a_browser(browser: Browser, address: str, look: str) -> None:
    """For everybody, on every screen: no finding of axe-core, nothing wider than the page."""
    for name in _PAGES if EVERYTHING else _FIRST[look]:
        page, noticed = _open(browser, f"{address}/{name}.html", look)
        ARTEFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTEFACTS / f"site-{name.replace('/', '-')}-{look}.png")
        assert noticed == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(255, 255, 255)") == (look != "dark"), name
        assert faults_of(page) == [], name
        page.close()


@pytest.mark.browser
@pytest.mark.parametrize("opened_as", [pytest.param("a server", marks=pytest.mark.slow), "files"])
def test_search_finds_pages_without_the_network(
    browser: Browser, address: str, site: Path, opened_as: str
) -> None:
    start = f"{address}/index.html" if opened_as == "a server" else (site / "index.html").as_uri()
    page, noticed = _open(browser, start, "light")
    page.get_by_role("search").get_by_placeholder("Search").fill("quarantine")
    page.keyboard.press("Enter")
    results = page.locator("#search-results ul.search li")
    expect(results.nth(3)).to_be_visible()  # they come one by one
    page.get_by_role("link", name="The campaign file", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("The campaign file")
    assert noticed == []
    page.close()
