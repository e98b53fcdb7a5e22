"""Chromium for tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

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
