"""A store of its own for each test, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.ledger.database import Database
from adsbpc.service.store import open_store


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return open_store("service.sqlite", tmp_path)
    return open_store(str(request.getfixturevalue("postgresql_database")), tmp_path)
