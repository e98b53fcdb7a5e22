"""A store of its own for each test, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adsbpc.ledger.database import Database
from adsbpc.service.store import open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    location = "service.sqlite"
    if request.param == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
    opened = open_store(location, tmp_path)
    yield opened
    opened.close()
