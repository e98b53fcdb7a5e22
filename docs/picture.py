"""Takes the pictures of the demo's report and dashboard that the README shows: `make picture`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent


def take_report(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1100, "height": 820}, device_scale_factor=1.25)
    page.goto((ROOT / "demo" / "report.html").as_uri())
    page.wait_for_selector("html[data-drawn=yes]")
    page.screenshot(path=ROOT / "docs" / "report.png")


def take_dashboard(browser: Browser) -> None:
    command = [
        sys.executable,
        "-m",
        "adsbpc",
        "demo",
        "--serve",
        "--directory",
        "demo",
        "--port",
        "0",
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        said = ""
        while "The month is over" not in said:
            line = process.stdout.readline()
            if not line:
                sys.exit("the demo ended early: run adsbpc demo --serve to see why")
            said += line
        address, key = re.search(r"dashboard: (\S+)", said), re.search(r"operator: (\S+)", said)
        assert address is not None
        assert key is not None
        page = browser.new_page(viewport={"width": 1100, "height": 820}, device_scale_factor=1.25)
        page.goto(address[1])
        page.get_by_label("Key").fill(key[1])
        page.keyboard.press("Enter")
        page.wait_for_url("**/campaigns**")
        page.goto(address[1])
        page.wait_for_selector("html[data-drawn=yes]")
        page.screenshot(path=ROOT / "docs" / "dashboard.png")
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        take_report(browser)
        take_dashboard(browser)
        browser.close()


if __name__ == "__main__":
    main()
