"""How hard the tests try: on every change (`make test`), with all that there is (`make test-all`),
or as on every change, but without looking for the smallest example (`make mutants`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

EVERYTHING = os.environ.get("TEST_EFFORT") == "all"
MUTANT = os.environ.get("TEST_EFFORT") == "mutant"


def examples(on_every_change: int, of_everything: int) -> int:
    """How many examples Hypothesis tries."""
    return of_everything if EVERYTHING else on_every_change


def first(count: int, cases: Sequence[Any]) -> list[Any]:
    """So many of the cases of a parameter on every change, the others in `make test-all` only."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*value, marks=[pytest.mark.slow] if place >= count else [])
        for place, value in enumerate(values)
    ]
