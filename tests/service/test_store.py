"""The migrations make the tables that the code has."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from adsbpc.ledger.database import Database
from adsbpc.service.store import SERVICE, metadata


def test_migrations_and_tables_agree(store: Database) -> None:
    options = {"version_table": SERVICE.version_table}
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
