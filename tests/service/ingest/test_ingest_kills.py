"""Killed in the middle of ingest, again and again: what was answered is there, once, and what was
not is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.service.clock import SystemClock
from adsbpc.service.ingest.compaction import compact
from adsbpc.service.store import open_store
from tests.service.killed import ROWS, killed, push_for_ever
from tests.service.pushed import files_in, ids


def listed(path: Path) -> dict[str, int]:
    """The keys of batches, and the number of the first row of each."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {key: int(first) for key, first in (line.split() for line in lines)}


@pytest.mark.parametrize(
    ("database", "lives"),
    [
        ("sqlite", 5),
        pytest.param("sqlite", 80, marks=pytest.mark.slow),
        pytest.param("postgresql", 20, marks=pytest.mark.slow),
    ],
)
def test_kills_in_the_middle_of_ingest(
    database: str, lives: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = "service.sqlite"
    if database == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
    store = open_store(location, tmp_path)
    files = files_in(store, tmp_path, SystemClock())
    for life in range(lives):
        with killed(push_for_ever, location, tmp_path, life, after=(0, 0.04)):
            # Another server, which lives, merges what the dead have left.
            compact(files, store, "impressions")
    begun, answered = listed(tmp_path / "begun"), listed(tmp_path / "answered")
    assert answered.keys() <= begun.keys()
    assert len(answered) > lives
    # Some were killed with batches under way, or this has shown nothing.
    assert len(begun) > len(answered) + lives
    found = ids(files)
    store.close()
    assert set(found.values()) == {1}
    halves = 0
    for key, first in begun.items():
        stored = sum(found.pop(f"e{first + row}", 0) for row in range(ROWS))
        assert stored == ROWS or (stored == 0 and key not in answered), key
        halves += stored == ROWS and key not in answered
    assert not found
    # Some were stored and killed before the answer: these are stored whole. Few lives have none.
    assert halves or lives < 20
