"""Carries a database to another place, whole: from SQLite to PostgreSQL, or back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, MetaData, func, insert, select, text

from adsbpc.errors import LedgerError
from adsbpc.ledger.database import Database
from adsbpc.ledger.entries import entries, metadata
from adsbpc.ledger.ledger import Ledger

# Rows of some tables have half a megabyte.
_AT_ONCE = 100


def copy_tables(
    source: Database,
    target: Database,
    tables: MetaData,
    leave: Callable[[Connection], None] = lambda old: None,
) -> int:
    """How many rows were copied. All of them or none, into tables that are empty. What `leave` does
    to the source is done before anybody else can write to it again."""
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
        leave(old)
    return copied


def copy_ledger(location: str, to: str, directory: Path) -> int:
    """The same for a ledger, whose every scope verifies afterwards and ends where the old one
    ends. A SQLite file takes no further entry: a release that opened it before would spend what the
    new one does not know of."""
    source, target = Database(location, directory), Database(to, directory)
    copied = copy_tables(source, target, metadata, _refuse_entries if source.file else _leave_it)
    with source.reading() as connection:
        scopes = list(connection.execute(select(entries.c.scope).distinct()).scalars())
    old, new = Ledger(location, directory), Ledger(to, directory)
    for scope in scopes:
        problem = new.verify(scope).problem
        if problem is None and new.head(scope) != old.head(scope):
            problem = "it does not end as the old one does"
        if problem is not None:
            with source.writing("move") as connection:
                connection.execute(text("DROP TRIGGER IF EXISTS adsbpc_moved"))
            raise LedgerError(
                f"{target.where}: the copy of scope {scope!r} does not verify ({problem}). Keep "
                "the old ledger, and empty the new database"
            )
    return copied


def _refuse_entries(old: Connection) -> None:
    refusal = "SELECT RAISE(ABORT, 'this ledger was moved to another place')"
    when = f"BEFORE INSERT ON {entries.name}"
    old.execute(text(f"CREATE TRIGGER IF NOT EXISTS adsbpc_moved {when} BEGIN {refusal}; END"))


def _leave_it(_: Connection) -> None:
    """Another server keeps others out by itself."""
