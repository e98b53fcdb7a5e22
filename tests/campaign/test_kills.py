"""Kill -9 at every step: what was committed stays byte for byte, nothing is charged twice.

On every change a process dies once in each state of the disk that a release goes through: what it
leaves is the same at every line in between. `make test-all` kills at every line."""

from __future__ import annotations

import inspect
import multiprocessing
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.campaign import release_slot
from tests.campaign.book_files import FILES, Rows, committed, kept, rows_of, slot_folder
from tests.campaign.files import FIXED, PERSONAL, write_campaign
from tests.campaign.onlooker import Onlooker
from tests.campaign.victims import (
    Point,
    die_after_writing,
    die_at,
    first_in_each_state,
    release_everything,
    release_one,
    trace_of,
    trace_release,
    victim,
)

SLOTS = 700


def location_of(database: str, request: pytest.FixtureRequest) -> str:
    if database == "sqlite":
        return "ledger.sqlite"
    return str(request.getfixturevalue("postgresql_database"))


def lines_of(file: Path, slot: int) -> list[Point]:
    """The lines of `campaign/` and `ledger/` that the release of a slot runs, in order."""
    return [point for point, _ in trace_of(trace_release, file, slot)]


def states_of(file: Path, slot: int) -> list[Point]:
    """A line for each state of the disk that the release of a slot goes through."""
    return first_in_each_state(trace_of(trace_release, file, slot))


WITNESS = "elsewhere/witness.json"


def kill_releases(file: Path, points: list[Point]) -> list[Point]:
    """At each line a process dies, and the next one goes on from what it left; the lines that
    were not run."""
    onlooker = Onlooker(file, "ledger.sqlite")
    not_run = []
    for point in points:
        slot = onlooker.look() + 1
        process = victim(die_at, file, slot, point)
        process.join()
        assert process.exitcode in (-signal.SIGKILL, 0), point
        if process.exitcode == 0:
            not_run.append(point)
    onlooker.finish(onlooker.look() + 1)
    return not_run


def kill_first_releases(directory: Path, points: list[Point]) -> None:
    """A fresh folder for each."""
    for number, point in enumerate(points):
        file = write_campaign(directory / str(number), 3, witness=WITNESS, conversions_per_slot=2)
        process = victim(die_at, file, 1, point)
        process.join()
        assert process.exitcode == -signal.SIGKILL, point
        onlooker = Onlooker(file, "ledger.sqlite")
        onlooker.look()
        onlooker.finish(1)


def test_killed_in_every_state_of_a_release(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, SLOTS, "1h", witness=WITNESS, conversions_per_slot=2)
    at_first, later = states_of(file, 1), states_of(file, 2)
    # Also between the commit and the witness, and between the witness and the file.
    for points in (at_first, later):
        files = {Path(name).name for name, _ in points}
        assert files >= {"ledger.py", "durable.py", "release_folder.py"}
        assert len(points) > 8
    assert kill_releases(file, later) == []
    kill_first_releases(tmp_path, at_first)


@pytest.mark.slow
def test_killed_at_every_line_of_a_release(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, SLOTS, "1h", witness=WITNESS, conversions_per_slot=2)
    points = lines_of(file, 1)
    assert {Path(name).name for name, _ in points} >= {"ledger.py", "marks.py", "release_folder.py"}
    assert len(points) > 150
    only_at_first = kill_releases(file, points)
    assert len(only_at_first) > 20
    kill_first_releases(tmp_path, only_at_first)


class WithBooks:
    """A campaign under personal budgets whose processes die, each in a copy of its own, beside one
    that nobody disturbs: what they keep and what their books say must be the same."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        undisturbed = write_campaign(directory / "undisturbed", 6, privacy=FIXED)
        self.expected: list[Rows] = []
        for slot in range(1, 7):
            Campaign.load(undisturbed).release(slot)
            self.expected.append(rows_of(committed(undisturbed.parent)[-1]))
        self.kept = kept(undisturbed.parent)
        self.started = write_campaign(directory / "started", 6, privacy=FIXED)
        for slot in range(1, 5):
            Campaign.load(self.started).release(slot)
        # Somebody died before: once long ago, which is swept now, and once at this very slot.
        for slot, source in ((1, 1), (5, 4)):
            left_over = slot_folder(self.started.parent, slot) / f"attempt={'0' * 32}"
            shutil.copytree(committed(self.started.parent)[source - 1], left_over)

    def copy(self, started: bool, name: str) -> Path:
        """The campaign after four slots, or before the first."""
        if not started:
            return write_campaign(self.directory / name, 6, privacy=FIXED)
        shutil.copytree(self.started.parent, self.directory / name)
        return self.directory / name / self.started.name

    def kill(self, started: bool, name: str, target: Any, where: Any) -> int:
        """Let a process die, look, go on; how many slots it had committed."""
        file = self.copy(started, name)
        onlooker = Onlooker(file, "ledger.sqlite")
        before = onlooker.look()
        process = victim(target, file, before + 1, where)
        process.join()
        assert process.exitcode == -signal.SIGKILL, where
        found = onlooker.look()
        onlooker.finish(found + 1)
        assert kept(file.parent) == self.kept[: found + 1], where
        folders = committed(file.parent)
        assert rows_of(folders[-1]) == self.expected[found], where
        for folder, rows in zip(folders, self.expected, strict=False):
            assert rows_of(folder, FILES[:-1]) == {file: rows[file] for file in FILES[:-1]}, where
        shutil.rmtree(file.parent)
        return found - before


@pytest.mark.slow
def test_personal_budgets_killed_in_every_state(tmp_path: Path) -> None:
    """An attempt that was not committed changes nothing that comes later."""
    campaigns = WithBooks(tmp_path)
    for started in (True, False):
        points = states_of(campaigns.copy(started, f"traced {started}"), 5 if started else 1)
        assert any(path.endswith("books.py") for path, _ in points)
        advanced = [
            campaigns.kill(started, f"{started} {number}", die_at, point)
            for number, point in enumerate(points)
        ]
        # Some died after the commit, and some before.
        assert 0 < sum(advanced) < len(points)


@pytest.mark.slow
def test_personal_budgets_killed_at_every_line_of_their_own(tmp_path: Path) -> None:
    """Every line that AdsBPC does not run, and the six steps themselves. An attempt that was not
    committed changes nothing that comes later."""
    adsbpc = write_campaign(tmp_path / "adsbpc")
    common = {*lines_of(adsbpc, 1), *lines_of(adsbpc, 2)}
    steps, first = inspect.getsourcelines(release_slot)
    six_steps = {(inspect.getfile(release_slot), first + k) for k in range(len(steps))}
    campaigns = WithBooks(tmp_path)
    found: set[Point] = set()
    advanced = 0
    for started in (True, False):
        traced = lines_of(campaigns.copy(started, f"traced {started}"), 5 if started else 1)
        points = [each for each in traced if each in six_steps or each not in common]
        points = [each for each in points if each not in found]
        for number, point in enumerate(points):
            advanced += campaigns.kill(started, f"{started} {number}", die_at, point)
        found |= set(points)
    assert len({line for path, line in found if path.endswith("books.py")}) > 30
    # Some died after the commit, and most before.
    assert 0 < advanced < len(found) / 4


@pytest.mark.slow
def test_personal_budgets_killed_between_their_books(tmp_path: Path) -> None:
    campaigns = WithBooks(tmp_path)
    for started in (True, False):
        for name in FILES:
            assert campaigns.kill(started, name, die_after_writing, name) == 0


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


@pytest.mark.parametrize(
    ("database", "kills", "privacy"),
    [
        ("sqlite", 5, ""),
        pytest.param("sqlite", 200, "", marks=pytest.mark.slow),
        pytest.param("postgresql", 40, "", marks=pytest.mark.slow),
        pytest.param("sqlite", 40, PERSONAL, marks=pytest.mark.slow),
    ],
    ids=["sqlite, some", "sqlite", "postgresql", "sqlite with books"],
)
def test_killed_at_random_times(
    database: str, kills: int, privacy: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = location_of(database, request)
    file = write_campaign(
        tmp_path,
        # A strategy has the square of the number of slots.
        200 if privacy else SLOTS,
        "1h",
        location=location,
        privacy=privacy,
        conversions_per_slot=2,
    )
    onlooker, chance = Onlooker(file, location), random.Random(database)
    advanced, died = 0, 0
    # Kills spread over about two releases, however fast the machine is.
    reach = measured = 2 * seconds_of_a_release(file)
    for _ in range(kills):
        before = onlooker.look()
        ready = multiprocessing.get_context("forkserver").Event()
        process = victim(release_everything, file, ready)
        assert ready.wait(60)
        time.sleep(chance.uniform(0, reach))
        process.kill()
        process.join()
        died += process.exitcode == -signal.SIGKILL
        grown = onlooker.look() > before
        advanced += grown
        # However busy the machine is by now, one kill in three comes after a commit.
        reach = min(10 * measured, reach * (0.7 if grown else 1.2))
    assert died == kills
    # The kills hit releases at work, not only processes that were starting.
    assert kills // 10 < advanced
    onlooker.finish(onlooker.look() + 1)
