"""Tables of docs/personal-budgets.md: every one has its place, and the lengths and sizes that the
page speaks of can be computed."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from functools import cache
from typing import Any

import pytest

from adsbpc.lab.baselines.ablation import WITHOUT
from adsbpc.lab.catalogue import REMARKS
from tests.documents.pages import DOCS

EVERYTHING = argparse.Namespace(trials=None, users=None, slots=None)


@cache
def script() -> Any:
    spec = importlib.util.spec_from_file_location("tables", DOCS / "personal_budgets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(DOCS), *sys.path])
        spec.loader.exec_module(module)
    return module


def test_a_table_without_a_place() -> None:
    page = (DOCS / "personal-budgets.md").read_text()
    assert script().runs().keys() == script().TABLES.keys()
    for part in script().TABLES:
        assert page.count(f"<!-- {part}: begin -->") == page.count(f"<!-- {part}: end -->") == 1


def test_an_idea_without_a_name() -> None:
    """The page names each mechanism of the lab that lacks one, and the lab says what it lacks."""
    page = (DOCS / "personal-budgets.md").read_text()
    for name in WITHOUT:
        assert f"| `{name}` |" in page
        assert name in REMARKS


def test_lengths_and_sizes_that_cannot_be_computed() -> None:
    runs = script().runs()
    assert {run.slots for run in runs["lengths"]} == {7, 31, 90, 365}
    people = {run.users for run in runs["sizes"]}
    assert (min(people), max(people)) == (10_000, 1_600_000)


def test_a_small_table_of_sizes() -> None:
    """With fewer trials and people; what was not computed has a dash."""
    few = argparse.Namespace(trials=3, users=100_000, slots=31)
    kept = [run for each in script().runs()["sizes"] if (run := script()._within(each, few))]
    assert {run.trials for run in kept} == {3}
    assert {run.users for run in kept} == {10_000, 100_000}
    assert all(script()._within(run, EVERYTHING) == run for run in kept)
    rows = [
        {"dataset": name, "users": users, "mechanism": mechanism, "wrmse_closed_form": error}
        for name, users in (("zipf", 10_000), ("zipf", 100_000), ("criteo", 10_000))
        for mechanism, error in (("personal-budget", 2.0), ("adsbpc-oracle", 8.0))
    ]
    assert script()._sizes(rows).splitlines() == [
        "| data | 10,000 people | 100,000 people |",
        "|---|---:|---:|",
        "| zipf | 0.250 | 0.250 |",
        "| criteo | 0.250 | - |",
    ]
    assert script()._sizes([]) == ""
