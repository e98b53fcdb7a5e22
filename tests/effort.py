"""How hard the tests try: on every change (`make test`), with all that there is (`make test-all`),
or as on every change, but without looking for the smallest example (`make mutants`)."""

from __future__ import annotations

import os

EVERYTHING = os.environ.get("TEST_EFFORT") == "all"
MUTANT = os.environ.get("TEST_EFFORT") == "mutant"


def examples(on_every_change: int, of_everything: int) -> int:
    """How many examples Hypothesis tries."""
    return of_everything if EVERYTHING else on_every_change
