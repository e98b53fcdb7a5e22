"""What a killed process leaves among the temporary files, and who removes it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adsbpc.engines import open_engine
from adsbpc.engines.session_folder import SessionFolder, remove_abandoned

# Copies a CSV file of events, as a release does, and waits.
HOLDER = """
import sys
from adsbpc.engines import open_engine
from adsbpc.engines.csv_dialect import CsvDialect
engine = open_engine("duckdb")
engine.read_files("events", CsvDialect(), [sys.argv[1]], None, ["user_id"])
print("copied", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def start(temporary: Path, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    events = tmp_path / "events.csv"
    events.write_text("user_id\nann\nbob\n")
    started = []

    def one() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(events)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "copied\n"
        return process

    yield one
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_process_copied_goes_with_the_next_session(
    temporary: Path, start: Callable[[], subprocess.Popen[str]]
) -> None:
    killed = start()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (left,) = temporary.iterdir()
    assert [file for file in left.rglob("*") if file.name != "in-use"]
    open_engine("duckdb").close()
    assert not list(temporary.iterdir())


def test_a_folder_stays_while_its_process_lives(
    temporary: Path, start: Callable[[], subprocess.Popen[str]]
) -> None:
    start()
    (theirs,) = temporary.iterdir()
    with SessionFolder("frames") as ours:
        open_engine("duckdb").close()
        remove_abandoned(temporary)
        assert sorted(temporary.iterdir()) == sorted([theirs, ours])
        assert [file for file in theirs.rglob("*") if file.name != "in-use"]
    assert list(temporary.iterdir()) == [theirs]


def test_nothing_else_is_removed(temporary: Path, tmp_path: Path) -> None:
    """Neither what has no mark, as folders of earlier versions and those just being made, nor what
    a link leads to, nor what is not ours."""
    elsewhere = tmp_path / "elsewhere"
    for folder in (temporary / "adsbpc-duckdb-unmarked", temporary / "other", elsewhere):
        folder.mkdir()
    for folder in (temporary / "other", elsewhere):
        (folder / "in-use").touch()
    (temporary / "adsbpc-link").symlink_to(elsewhere)
    (temporary / "adsbpc-file").touch()
    before = sorted(temporary.iterdir())
    remove_abandoned(temporary)
    assert sorted(temporary.iterdir()) == before
    assert (elsewhere / "in-use").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_folders_of_others_are_left_alone(temporary: Path) -> None:
    theirs = temporary / "adsbpc-duckdb-theirs"
    theirs.mkdir()
    (theirs / "in-use").touch()
    os.chown(theirs, 65_534, 65_534)
    remove_abandoned(temporary)
    assert theirs.exists()
    os.chown(theirs, os.geteuid(), os.getegid())
    remove_abandoned(temporary)
    assert not theirs.exists()


def test_without_locks_a_folder_is_nobodys_to_remove(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refused)
        folder = SessionFolder("frames")
    remove_abandoned(temporary)
    assert folder.path.exists()
    folder.cleanup()
    assert not list(temporary.iterdir())


def test_a_folder_of_temporary_files_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "missing")
