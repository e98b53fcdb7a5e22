"""The proof page names functions and tests that are there, and counts its files as they are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
PROOF = PAGE[PAGE.index("## The proof") : PAGE.index("## What it assumes")]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("proof", ROOT / "docs" / "proof.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_counted_as_they_are() -> None:
    assert _script().page(PAGE) == PAGE, "run: python docs/proof.py"


def test_the_audited_room_is_on_the_list_and_not_alone() -> None:
    listed = {
        file for patterns in _script().PARTS.values() for file in _script().files_of(patterns)
    }
    room = set((ROOT / "src" / "adsbpc" / "privacy").glob("*.py"))
    assert room < listed


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))))
def test_a_test_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


FUNCTIONS = sorted(set(re.findall(r"`([a-z_]+)\.(\w+)(?:\.(\w+))?`", PROOF)))


@pytest.mark.parametrize(("module", "name", "method"), FUNCTIONS)
def test_a_function_that_is_named_is_there_and_on_the_list(
    module: str, name: str, method: str
) -> None:
    if name in ("md", "py"):
        return
    listed = [
        file for patterns in _script().PARTS.values() for file in _script().files_of(patterns)
    ]
    texts = [file.read_text(encoding="utf-8") for file in listed if file.stem == module]
    assert texts, f"{module}.py is not among the files of the proof"
    for wanted in filter(None, (name, method)):
        defined = re.compile(
            rf"^\s*(?:def|class|async def) {wanted}\b|^{wanted}\b.* =", re.MULTILINE
        )
        assert any(defined.search(text) for text in texts), f"{module} has no {wanted}"


def test_steps_have_functions_and_tests() -> None:
    steps = re.split(r"\n\*\*\d+\. ", PROOF)[1:]
    assert len(steps) == 9
    for step in steps:
        assert "*Test" in step
        assert re.search(r"`[a-z_]+\.\w+", step), step[:40]


def test_the_mutants_are_counted() -> None:
    from tests.mutants.catalogue import MUTANTS

    assert f"{len(MUTANTS)} changes that drop the user" in PAGE
