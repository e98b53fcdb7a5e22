"""Carries a database to another place, whole: from SQLite to PostgreSQL, or back."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import MetaData, func, insert, select

from adsbpc.errors import LedgerError
from adsbpc.ledger.database import Database
from adsbpc.ledger.entries import entries, metadata
from adsbpc.ledger.ledger import Ledger

# Rows of some tables have half a megabyte.
_AT_ONCE = 100


def copy_tables(source: Database, target: Database, tables: MetaData) -> int:
    """How many rows were copied. All of them or none, into tables that are empty."""
    source.bring_up_to_date()
    target.bring_up_to_date()
    copied = 0
    # Nobody writes to the source meanwhile, or what they write would be left behind.
    with source.writing("move") as old, target.writing("move") as new:
        for table in tables.sorted_tables:
            if new.execute(select(func.count()).select_from(table)).scalar_one():
                raise LedgerError(
                    f"{target.where}: its table {table.name} holds rows already, which might be "
                    "lost. Give an empty database"
                )
            rows = old.execute(select(table).order_by(*table.primary_key)).mappings()
            for some in rows.partitions(_AT_ONCE):
                new.execute(insert(table), [dict(row) for row in some])
                copied += len(some)
    return copied


def copy_ledger(location: str, to: str, directory: Path) -> int:
    """The same for a ledger, whose every scope verifies afterwards and ends where the old one
    ends."""
    source, target = Database(location, directory), Database(to, directory)
    copied = copy_tables(source, target, metadata)
    with source.reading() as connection:
        scopes = list(connection.execute(select(entries.c.scope).distinct()).scalars())
    old, new = Ledger(location, directory), Ledger(to, directory)
    for scope in scopes:
        problem = new.verify(scope).problem
        if problem is None and new.head(scope) != old.head(scope):
            problem = "it does not end as the old one does"
        if problem is not None:
            raise LedgerError(
                f"{target.where}: the copy of scope {scope!r} does not verify ({problem}). Keep "
                "the old ledger, and empty the new database"
            )
    return copied
