"""Kill -9 and races with a store: what was committed stays byte for byte, nothing is charged twice,
and no mark goes back; also where the store lists late or fails."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.ledger import Ledger
from adsbpc.storage import RemotePath
from tests.campaign.book_files import FILES, kept
from tests.campaign.files import ADSBPC, FIXED, write_campaign
from tests.campaign.victims import (
    Point,
    die_after_writing,
    die_at,
    first_in_each_state,
    release_everything,
    release_together,
    trace_release,
    victim,
)
from tests.storage.campaigns import StoreOnlooker, committed, in_store, marks, rows_of, write_stored
from tests.storage.s3 import S3Server

SLOTS = 40
RACERS = 4
BEHAVIOURS = ["plain", "late", "failing"]


def behave(s3: S3Server, behaviour: str) -> None:
    s3.late, s3.failing = behaviour == "late", behaviour == "failing"


def started(s3: S3Server, target: Any, *arguments: Any) -> Any:
    return victim(in_store, s3.variables(), target, *arguments)


def states_of(s3: S3Server, file: Path, slot: int) -> list[Point]:
    """A line for each state of disk and store that the release of a slot goes through."""
    seen = multiprocessing.get_context("forkserver").Queue()
    process = started(s3, trace_release, file, slot, seen)
    points: list[tuple[Point, str]] = seen.get(timeout=300)
    process.join()
    return first_in_each_state(points)


def kill_releases(
    s3: S3Server, file: Path, store: RemotePath, deaths: list[tuple[Any, Any]]
) -> StoreOnlooker:
    """In each way a process dies, and the next one goes on from what it left."""
    onlooker, advanced = StoreOnlooker(file, store), 0
    for target, where in deaths:
        before = onlooker.look()
        process = started(s3, target, file, before + 1, where)
        process.join()
        assert process.exitcode == -signal.SIGKILL, where
        advanced += onlooker.look() > before
    # Some died after the commit, and some before.
    assert 0 < advanced < len(deaths)
    onlooker.finish(onlooker.look() + 1)
    return onlooker


def as_if_nobody_had_died(file: Path, store: RemotePath, undisturbed: Path) -> None:
    slots = len(kept(file.parent))
    local = write_campaign(undisturbed, SLOTS, "1h", privacy=FIXED)
    for slot in range(1, slots + 1):
        Campaign.load(local).release(slot)
    assert kept(file.parent) == kept(undisturbed)
    assert Campaign.load(file).audit().held
    assert len(rows_of(committed(file.parent, store)[-1])[FILES[-1]]) == 12


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_killed_in_every_state(
    behaviour: str, s3: S3Server, store: RemotePath, tmp_path: Path
) -> None:
    file = write_stored(tmp_path / "stored", store, SLOTS, slot="1h")
    states_of(s3, file, 1)
    points = states_of(s3, file, 2)
    names = {Path(name).name for name, _ in points}
    # With new books and before the commit, between that and the mark, and after the mark.
    assert names >= {"release.py", "ledger.py", "marks.py"}, names
    assert len(points) > 6, points
    behave(s3, behaviour)
    deaths: list[tuple[Any, Any]] = [(die_at, point) for point in points]
    # A book that is in the store, and not the next.
    deaths += [(die_after_writing, name) for name in FILES]
    kill_releases(s3, file, store, deaths)
    as_if_nobody_had_died(file, store, tmp_path / "undisturbed")


@pytest.mark.slow
def test_the_first_release_is_killed_in_every_state(
    s3: S3Server, store: RemotePath, tmp_path: Path
) -> None:
    """Also while the first mark is made, and tried."""
    traced = write_stored(tmp_path / "traced", store / "traced", 3, ADSBPC)
    points = states_of(s3, traced, 1)
    assert any(name.endswith("marks.py") for name, _ in points)
    for number, point in enumerate(points):
        own = store / str(number)
        file = write_stored(tmp_path / str(number), own, 3, ADSBPC)
        process = started(s3, die_at, file, 1, point)
        process.join()
        assert process.exitcode == -signal.SIGKILL, point
        onlooker = StoreOnlooker(file, own)
        onlooker.look()
        onlooker.finish(1)


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["plain", "late", "failing"])
def test_killed_at_random_times(
    behaviour: str, s3: S3Server, store: RemotePath, tmp_path: Path
) -> None:
    behave(s3, behaviour)
    file = write_stored(tmp_path / "stored", store, SLOTS, slot="1h")
    onlooker, chance, reach = StoreOnlooker(file, store), random.Random(behaviour), 4.0
    advanced = 0
    for _ in range(15):
        before = onlooker.look()
        ready = multiprocessing.get_context("forkserver").Event()
        process = started(s3, release_everything, file, ready)
        assert ready.wait(60)
        time.sleep(chance.uniform(0, reach))
        process.kill()
        process.join()
        grown = onlooker.look() > before
        advanced += grown
        reach = min(20.0, reach * (0.7 if grown else 1.2))
    assert advanced
    onlooker.finish(onlooker.look() + 1)
    as_if_nobody_had_died(file, store, tmp_path / "undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_processes_on_one_slot(
    behaviour: str, s3: S3Server, store: RemotePath, tmp_path: Path
) -> None:
    """The first slot also races for the ledger, its scope and the first mark."""
    behave(s3, behaviour)
    file = write_stored(tmp_path, store, 5)
    onlooker, ledger = StoreOnlooker(file, store), Ledger("ledger.sqlite", tmp_path)
    for slot in (1, 2):
        context = multiprocessing.get_context("forkserver")
        barrier, answers = context.Barrier(RACERS), context.Queue()
        racers = [
            started(s3, release_together, file, slot, barrier, answers) for _ in range(RACERS)
        ]
        found = [answers.get(timeout=240) for _ in racers]
        for racer in racers:
            racer.join()
            assert racer.exitcode == 0
        assert len({text for text, _ in found}) == 1
        assert [replayed for _, replayed in found].count(False) == 1
        assert ledger.releases("acme", "spring")[slot - 1 :] == [found[0][0]]
        assert onlooker.look() == slot
    attempts = (store / "adsbpc-books" / "acme" / "spring").glob("slot=*/attempt=*")
    assert behaviour == "late" or len(list(attempts)) > 2, "nobody raced"
    positions = [mark["position"] for mark in marks(store)]
    assert positions == sorted(set(positions))
    onlooker.finish(3)
    assert Campaign.load(file).audit().held
