"""Runs the worked example and writes what it printed, and pictures, into docs/example.md."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import between
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent
SCRIPT = DOCS.parent / "examples" / "costs_and_returns.py"
PEOPLE, DAYS = 100_000, 31
# What each picture shows: its size, and the view that the address names.
PICTURES = {
    "report": ((1100, 880), ""),
    "week": ((1100, 880), "#range=25-31"),
    "table": ((1100, 900), "#range=25-31&sort=change&open=%5B%22social%22%5D"),
}


def printed(folder: Path) -> dict[str, str]:
    """What each cell of the script printed, by its name."""
    command = [sys.executable, str(SCRIPT), str(folder), str(PEOPLE), str(DAYS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    parts = done.stdout.split("## ")[1:]
    return {name: text.rstrip() for name, _, text in (part.partition("\n") for part in parts)}


def take_pictures(page_file: Path, chromium: str) -> None:
    (DOCS / "example").mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, ((width, height), view) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(page_file.as_uri() + view)
            page.wait_for_selector("html[data-drawn=yes]", state="attached")
            place = DOCS / "example" / f"{name}.png"
            if name == "table":
                page.locator("section[aria-labelledby=table-title]").screenshot(path=place)
            else:
                page.screenshot(path=place)
        browser.close()


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    text = (DOCS / "example.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, said in printed(Path(folder)).items():
            text = between(text, name, f"```\n{said}\n```")
        take_pictures(Path(folder) / "report.html", chromium)
    (DOCS / "example.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
