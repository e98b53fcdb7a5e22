"""Kill -9 at every step: what was committed stays byte for byte, nothing is charged twice."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.ledger import Ledger
from tests.campaign.files import published, write_campaign
from tests.campaign.victims import (
    die_at,
    release_everything,
    release_one,
    trace_release,
    victim,
)

RANDOM_KILLS = 200
SLOTS = 700


class Witness:
    """Looks at a campaign after every kill and remembers what it has seen."""

    def __init__(self, file: Path, location: str) -> None:
        self.directory = file.parent
        self.ledger = Ledger(location, file.parent)
        self.campaign = Campaign.load(file)
        self.seen: list[str] = []

    def look(self) -> int:
        """Check what a killed process left behind; how many slots are committed."""
        if not self.ledger.exists() or self.ledger.campaign("acme", "spring") is None:
            assert published(self.directory) == {}
            return 0
        committed = self.ledger.releases("acme", "spring")
        assert committed[: len(self.seen)] == self.seen, "a committed release changed"
        self.seen = committed
        for slot, text in published(self.directory).items():
            assert committed[slot - 1] == text, "something published is not in the ledger"
        assert len(self.ledger.steps("acme", "spring")) == len(committed)
        charged = (
            sum(
                charge.pico_rho
                for release in self.campaign.report().releases
                for charge in release.charges
            )
            if committed
            else 0
        )
        budget, scope = self.ledger.budgets("acme", "spring")
        assert budget.spent_pico_rho == scope.spent_pico_rho == charged, "charged twice, or lost"
        return len(committed)

    def finish(self, through: int) -> None:
        """A run that nobody kills repairs what is missing and changes nothing that was there."""
        before = list(self.seen)
        for slot in range(1, through + 1):
            self.campaign.release(slot)
        assert self.look() >= through
        assert self.seen[: len(before)] == before
        assert [published(self.directory)[slot] for slot in range(1, through + 1)] == self.seen[
            :through
        ]
        assert self.campaign.verify().problem is None


def location_of(database: str, request: pytest.FixtureRequest) -> str:
    if database == "sqlite":
        return "ledger.sqlite"
    return str(request.getfixturevalue("postgresql_database"))


def test_killed_at_every_line_of_a_release(tmp_path: Path) -> None:
    """Enumerates the lines of `campaign/` and `ledger/` that a release runs; at each one a
    process dies, and the next one goes on from what it left."""
    file = write_campaign(tmp_path, SLOTS, "1h", conversions_per_slot=2)
    seen = multiprocessing.get_context("forkserver").Queue()
    process = victim(trace_release, file, 1, seen)
    points = seen.get(timeout=60)
    process.join()
    witness = Witness(file, "ledger.sqlite")
    assert witness.look() == 1
    assert len(points) > 150
    only_at_first = []
    for point in points:
        slot = witness.look() + 1
        process = victim(die_at, file, slot, point)
        process.join()
        assert process.exitcode in (-signal.SIGKILL, 0), point
        if process.exitcode == 0:
            only_at_first.append(point)
    witness.finish(witness.look() + 1)
    # Lines that only the first release of a campaign runs: a fresh folder for each.
    assert len(only_at_first) > 20
    for number, point in enumerate(only_at_first):
        first = write_campaign(tmp_path / str(number), 3, conversions_per_slot=2)
        process = victim(die_at, first, 1, point)
        process.join()
        assert process.exitcode == -signal.SIGKILL, point
        witness = Witness(first, "ledger.sqlite")
        witness.look()
        witness.finish(1)


def seconds_of_a_release(file: Path) -> float:
    """Of the next slot, in a process like those that will be killed."""
    found = []
    for _ in range(3):
        slot = Campaign.load(file).status().released + 1
        ready = multiprocessing.get_context("forkserver").Event()
        process = victim(release_one, file, slot, ready)
        assert ready.wait(60)
        began = time.monotonic()
        process.join()
        found.append(time.monotonic() - began)
    return min(found)


@pytest.mark.parametrize(("database", "kills"), [("sqlite", RANDOM_KILLS), ("postgresql", 40)])
def test_killed_at_random_times(
    database: str, kills: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = location_of(database, request)
    file = write_campaign(tmp_path, SLOTS, "1h", location=location, conversions_per_slot=2)
    witness, chance = Witness(file, location), random.Random(database)
    advanced, died = 0, 0
    # Kills spread over about two releases, however fast the machine is.
    reach = 2 * seconds_of_a_release(file)
    for _ in range(kills):
        before = witness.look()
        ready = multiprocessing.get_context("forkserver").Event()
        process = victim(release_everything, file, ready)
        assert ready.wait(60)
        time.sleep(chance.uniform(0, reach))
        process.kill()
        process.join()
        died += process.exitcode == -signal.SIGKILL
        advanced += witness.look() > before
    assert died == kills
    # The kills hit releases at work, not only processes that were starting.
    assert kills // 10 < advanced
    witness.finish(witness.look() + 1)
