"""Takes the picture of the demo's report that the README shows: `make picture`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 820}, device_scale_factor=1.25)
        page.goto((ROOT / "demo" / "report.html").as_uri())
        page.wait_for_selector("html[data-drawn=yes]")
        page.screenshot(path=ROOT / "docs" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
