"""Each mutant still changes one place, and the tests that must kill it are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    text = (ROOT / "src" / "adsbpc" / mutant.file).read_text()
    assert text.count(mutant.before) == 1
    assert mutant.before != mutant.after
    assert all((ROOT / test).is_file() for test in mutant.tests)


def test_there_are_mutants_in_every_room_of_the_data_path() -> None:
    assert {mutant.file.partition("/")[0] for mutant in MUTANTS} == {
        "events", "attribution", "contributions", "mechanisms",
    }  # fmt: skip
