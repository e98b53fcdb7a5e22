"""Books on disks that are full or read-only: nothing is released, and the next run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adsbpc import Campaign
from tests.campaign.book_files import committed, kept, rows_of
from tests.campaign.files import FIXED, published, stored, write_campaign
from tests.effort import first
from tests.small_world import fill_and_free, in_a_small_world, read_only, small


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path, privacy=FIXED)


def in_shell(file: Path, mount: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the campaign's folder, with `adsbpc` as the program."""
    program = f"adsbpc() {{ '{sys.executable}' -m adsbpc \"$@\"; }}; cd '{file.parent}'\n"
    return in_a_small_world(mount, "sh", "-c", program + script)


@pytest.mark.parametrize("released", first(1, [4, 0]))
def test_read_only_books(released: int, file: Path) -> None:
    """Before the first slot, and when there is something to sweep."""
    books = file.parent / "adsbpc-books"
    books.mkdir()
    for slot in range(1, released + 1):
        Campaign.load(file).release(slot)
    done = in_shell(file, read_only(books), "adsbpc release spring.toml")
    assert done.returncode == 1
    assert f"slot={released + 1:04d}" in done.stderr
    assert "cannot be written (Read-only file system). Free space or give rights" in done.stderr
    assert len(published(file.parent)) == released
    assert len(Campaign.load(file).release()) == 5
    assert Campaign.load(file).verify().problem is None


@pytest.mark.slow
def test_old_books_that_cannot_be_swept(file: Path) -> None:
    """They are in nobody's way."""
    for slot in range(1, 5):
        Campaign.load(file).release(slot)
    first = committed(file.parent)[0]
    done = in_shell(file, read_only(first.parent), "adsbpc release spring.toml")
    assert done.returncode == 0, done.stderr
    assert (first / "users.parquet").exists()
    assert len(published(file.parent)) == 5
    assert Campaign.load(file).verify().problem is None


@pytest.mark.parametrize(
    "room", [4, *(pytest.param(room, marks=pytest.mark.slow) for room in (0, 8, 12))]
)
def test_a_disk_that_is_full_of_books(room: int, file: Path) -> None:
    """It has room for so many kilobytes of new books: each of the four files of a slot takes four.
    What a failed attempt leaves would fill it further, so it goes."""
    Campaign.load(file).release(through="2026-03-03")
    before = stored(file.parent / "ledger.sqlite")
    books, spare = file.parent / "adsbpc-books", file.parent / "spare"
    spare.mkdir()
    mount = f"cp -r '{books}/.' '{spare}' && {small(books, 1024)} && cp -r '{spare}/.' '{books}'"
    script = f"""
free=$(df --output=avail adsbpc-books | tail -n 1)
head -c $(( (free - {room}) * 1024 )) /dev/zero > adsbpc-books/ballast
adsbpc release spring.toml --slot 4 2> first
adsbpc release spring.toml --slot 4 2> second
find adsbpc-books -path '*slot=0004/*'
"""
    done = in_shell(file, mount, script)
    assert (done.returncode, done.stdout) == (0, "")
    for name in ("first", "second"):
        message = (file.parent / name).read_text()
        assert "slot=0004/attempt=" in message
        assert "No space left on device" in message
        assert "Free space or give rights, and run the same command again" in message
        assert "Traceback" not in message
        assert "SELECT" not in message
    assert stored(file.parent / "ledger.sqlite") == published(file.parent) == before
    assert len(Campaign.load(file).release()) == 5
    assert Campaign.load(file).verify().problem is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "room", [100, *(pytest.param(room, marks=pytest.mark.slow) for room in (8, 120))]
)
def test_a_full_disk_loses_nothing(
    room: int, file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ledger, books and releases share a disk. However far a release comes before it is full, the
    next one goes on from there, with the books that an undisturbed campaign has."""
    undisturbed = write_campaign(tmp_path_factory.mktemp("undisturbed"), privacy=FIXED)
    Campaign.load(undisturbed).release()
    disk, out = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("out")
    mount = f"{small(disk, 1024)} && cp -r '{file.parent}/.' '{disk}'"
    script = f"{fill_and_free(room, out)}; cp -r . '{out}/disk'"
    done = in_shell(disk / file.name, mount, script)
    assert done.stdout == "1 0\n", done.stderr
    assert "Free" in done.stderr
    assert "Traceback" not in done.stderr
    first, second = (
        [json.loads(line) for line in (out / name).read_text().splitlines()]
        for name in ("first", "second")
    )
    assert len(first) < len(second) == 5
    for before, after in zip(first, second, strict=False):
        assert {**before, "replayed": True} == after
    status = json.loads((out / "status").read_text())
    assert (status["released"], status["verified"]) == (5, True)
    found, expected = out / "disk", undisturbed.parent
    assert kept(found) == kept(expected)
    assert rows_of(committed(found)[-1]) == rows_of(committed(expected)[-1])
