"""Eight processes release the same slot at once: one charge, one release, on both databases."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from adsbpc.ledger import Ledger
from tests.campaign.files import published, write_campaign
from tests.campaign.victims import release_together, victim

RACERS = 8


def race(file: Path, slot: int) -> list[tuple[str, bool]]:
    context = multiprocessing.get_context("forkserver")
    barrier, answers = context.Barrier(RACERS), context.Queue()
    racers = [victim(release_together, file, slot, barrier, answers) for _ in range(RACERS)]
    found = [answers.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    return found


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_eight_processes_on_one_slot(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The first slot also races for creating the ledger, its schema, scope and campaign."""
    location = "ledger.sqlite"
    if database == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
    file = write_campaign(tmp_path, location=location)
    ledger = Ledger(location, tmp_path)
    for slot in (1, 2, 3):
        found = race(file, slot)
        texts, replays = {text for text, _ in found}, [replayed for _, replayed in found]
        assert len(texts) == 1
        assert replays.count(False) == 1
        assert ledger.releases("acme", "spring")[slot - 1 :] == list(texts)
        assert published(tmp_path)[slot] == texts.pop()
    assert ledger.verify("acme").problem is None
    # scope, campaign, and for each slot two charges, a state, a release
    assert ledger.verify("acme").entries == 2 + 3 * 4
