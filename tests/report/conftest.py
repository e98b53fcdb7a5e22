"""Chromium, opened once for a file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.browsing import Reader, launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as opened:
        yield opened


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    yield Reader(browser, tmp_path)
    for context in browser.contexts:
        context.close()
