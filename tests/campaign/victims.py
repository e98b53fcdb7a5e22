"""Processes that release a campaign and die on the way, by signal 9."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import FrameType
from typing import Any

import adsbpc
from adsbpc import Campaign
from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.storage import Place

_PACKAGE = Path(adsbpc.__file__).parent
# The files through which a release goes: what it reads, what it commits, what it publishes.
WATCHED = tuple(str(_PACKAGE / room) for room in ("campaign", "ledger", "storage", "durable.py"))

Point = tuple[str, int]


def victim(target: Any, *arguments: Any) -> ForkServerProcess:
    """A fresh process of a server that has the libraries loaded, but no engine and no database."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["pytest", "tests.campaign.victims", "duckdb", "opendp.prelude", "sqlite3", "psycopg"]
    )
    process = context.Process(target=target, args=arguments)
    process.start()
    return process


def release_everything(file: Path, ready: Any) -> None:
    campaign = Campaign.load(file)
    ready.set()
    for _ in campaign.releasing():
        pass


def release_one(file: Path, slot: int, ready: Any) -> None:
    campaign = Campaign.load(file)
    ready.set()
    campaign.release(slot)


def release_together(file: Path, slot: int, barrier: Any, answers: Any) -> None:
    campaign = Campaign.load(file)
    barrier.wait()
    (released,) = campaign.release(slot)
    answers.put((released.text, released.replayed))


def trace_release(file: Path, slot: int, seen: Any) -> None:
    """Release a slot and tell what was run."""
    seen.put(_traced(file.parent, lambda: Campaign.load(file).release(slot)))


def trace_restore(file: Path, releases: Path, seen: Any) -> None:
    """Hand releases back and tell what was run."""
    seen.put(_traced(file.parent, lambda: Campaign.load(file).restore(releases)))


def trace_of(target: Any, file: Path, what: Any) -> list[tuple[Point, str]]:
    """The lines of the watched files that a process runs, in order, with the state of the disk
    when each ran first."""
    seen = multiprocessing.get_context("forkserver").Queue()
    process = victim(target, file, what, seen)
    points: list[tuple[Point, str]] = seen.get(timeout=300)
    process.join()
    return points


def first_in_each_state(points: list[tuple[Point, str]]) -> list[Point]:
    """One line for each state of the disk."""
    first: dict[str, Point] = {}
    for point, state in points:
        first.setdefault(state, point)
    return list(first.values())


def _traced(directory: Path, act: Callable[[], object]) -> list[tuple[Point, str]]:
    points: dict[Point, str] = {}

    def watch(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        point = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and point not in points:
            points[point] = _on_the_disk(directory)
        return watch

    sys.settrace(watch)
    act()
    sys.settrace(None)
    return list(points.items())


def _on_the_disk(directory: Path) -> str:
    """A hash of everything that a killed process would leave: folders, files, their content."""
    found = sha256()
    for path in sorted(directory.rglob("*")):
        found.update(f"{path} ".encode())
        if path.is_file():
            found.update(sha256(path.read_bytes()).digest())
    return found.hexdigest()


def die_at(file: Path, slot: int, point: Point) -> None:
    """Release a slot and be killed at the first run of a line."""
    _die_once_at(point)
    Campaign.load(file).release(slot)


def die_restoring_at(file: Path, releases: Path, point: Point) -> None:
    """Hand releases back and be killed at the first run of a line."""
    _die_once_at(point)
    Campaign.load(file).restore(releases)


def _die_once_at(point: Point) -> None:
    def watch(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(WATCHED):
            return None
        if event == "line" and (frame.f_code.co_filename, frame.f_lineno) == point:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return watch

    sys.settrace(watch)


def die_after_writing(file: Path, slot: int, name: str) -> None:
    """Release a slot and be killed when one of its books has been written."""
    write = DuckDBEngine.write_parquet

    def write_and_die(self: DuckDBEngine, what: str, sql: str, path: Place) -> None:
        write(self, what, sql, path)
        if path.name == name:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    DuckDBEngine.write_parquet = write_and_die  # type: ignore[method-assign]
    Campaign.load(file).release(slot)
