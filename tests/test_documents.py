"""Recipes, decisions and examples stay true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = (ROOT / "CONTRIBUTING.md").read_text().split("## Recipes")[1].split("## Style")[0]
# A step may name a file that is to be made only by its folder.
STEPS = {
    part.splitlines()[0]: re.findall(r"^- (?:[^`\n]*`([^`]+)`)?", part, re.MULTILINE)
    for part in RECIPES.split("\n### ")[1:]
}
# Changes that must stay small.
SMALL = ("A mechanism", "An engine", "A breakdown dimension", "A derived metric", "An event type")


def test_there_are_twelve_recipes() -> None:
    assert len(STEPS) == 12
    for name in SMALL:
        assert any(title.startswith(name) for title in STEPS), name


@pytest.mark.parametrize("title", STEPS)
def test_a_recipe_has_few_steps_and_names_what_exists(title: str) -> None:
    steps = STEPS[title]
    assert 3 <= len(steps) <= 8
    assert [named for named in steps if named and not (ROOT / named).exists()] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((\d\d-[a-z-]+\.md)\)", (folder / "README.md").read_text())
    assert sorted(listed) == sorted(file.name for file in folder.glob("[0-9]*.md"))
    for name in listed:
        text = (folder / name).read_text()
        assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences"))


@pytest.mark.slow
def test_examples_run(tmp_path: Path) -> None:
    """With few people, but as they stand there; tests/documents looks at the notebook."""
    examples = set((ROOT / "examples").glob("*.py")) - {ROOT / "examples" / "notebook.py"}
    assert len(examples) >= 2
    for example in examples:
        done = subprocess.run(
            [sys.executable, example, tmp_path / example.stem, "500"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "all held: True" in done.stdout
