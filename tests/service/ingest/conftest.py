"""Intakes for tests, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.intake import Intake
from tests.service.clocks import SetClock
from tests.service.pushed import PATIENT, Opener, files_in


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def files(store: Database, tmp_path: Path, clock: SetClock) -> EventFiles:
    return files_in(store, tmp_path, clock)


@pytest.fixture
def opened(store: Database, files: EventFiles, clock: SetClock) -> Iterator[Opener]:
    """Opens intakes, each as a server of its own would, and closes them."""
    intakes = []

    def open_one(clock: Clock = clock, waiting: int = 64, *, start: bool = True) -> Intake:
        intakes.append(Intake(store, files, clock, waiting, PATIENT))
        if start:
            intakes[-1].start()
        return intakes[-1]

    yield open_one
    for intake in intakes:
        intake.close()


@pytest.fixture
def intake(opened: Opener) -> Intake:
    return opened()
