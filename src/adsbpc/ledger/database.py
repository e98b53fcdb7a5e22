"""A connection to a database: SQLite or PostgreSQL, locked, durable, of one schema.

The ledger's by default; the service keeps its own tables the same way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import sqlalchemy
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from adsbpc.errors import AdsbpcError, LedgerError, SpecError
from adsbpc.model.periods import parts_of

_WAIT_SECONDS = 60
_CONNECT_SECONDS = 10
_AGAIN = "Run the same command again: what was committed is returned as it was, nothing twice"

# What databases say, and what a person can do about it.
_NEXT_STEPS = (
    ("was moved", "Set [ledger] location to that place: nothing was released or charged"),
    ("full", "Free some space and run the same command again: nothing was lost"),
    ("readonly", "Give the user who runs adsbpc the right to write this file and its folder"),
    ("read-only", "Give the user who runs adsbpc the right to write this file and its folder"),
    ("unable to open", "Check that the folder exists and that adsbpc may write there"),
    ("locked", f"Another process has held it for {_WAIT_SECONDS} seconds. {_AGAIN}"),
    ("malformed", "The file is damaged. Restore it from a backup; a fresh one would refund budget"),
    ("instead of wal", "Put the ledger on a local disk; network file systems cannot hold it"),
    ("not a database", "The file is damaged or something else. Restore it from a backup"),
)


@dataclass(frozen=True)
class DatabaseSchema:
    """Tables that belong together, and how they came to be. `versions` are the migrations, oldest
    first; the last one is what this version of the program writes. `noun` and `key` name the
    database in messages, `failure` is what is raised. `pooled` keeps connections open between
    transactions, for servers that have many."""

    noun: str
    key: str
    versions: tuple[str, ...]
    version_table: str
    migrations: Path
    failure: type[AdsbpcError]
    pooled: bool = False


LEDGER = DatabaseSchema(
    noun="ledger",
    key="[ledger] location",
    versions=("0001", "0002", "0003", "0004"),
    version_table="adsbpc_schema",
    migrations=Path(__file__).with_name("migrations"),
    failure=LedgerError,
)


class Database:
    """`location` is a SQLite file, or a URL that starts with postgresql://."""

    def __init__(self, location: str, directory: Path, schema: DatabaseSchema = LEDGER) -> None:
        self._schema = schema
        self._url = _url(location, directory, schema.key)
        self.where = without_password(self._url)
        # The SQLite file, if it is one.
        self.file: Final = _file_of(self._url)
        if self.file is not None:
            self.where = str(self.file)
        try:
            self._engine = sqlalchemy.create_engine(
                self._url,
                poolclass=QueuePool if schema.pooled else NullPool,
                # What is stored must not stand in messages.
                hide_parameters=True,
                # A database that was started anew meanwhile is connected to again.
                **({"pool_pre_ping": True, "max_overflow": 50} if schema.pooled else {}),
                connect_args={} if self.file else {"connect_timeout": _CONNECT_SECONDS},
            )
        except (ModuleNotFoundError, NoSuchModuleError, ArgumentError) as error:
            raise schema.failure(
                f"{schema.key} = {self.where!r}: cannot be used ({error}). PostgreSQL needs "
                "the extra: pip install 'adsbpc[postgresql]'"
            ) from None
        if self.file is not None:
            self._writing = self._engine.execution_options(writing=True)
            event.listen(self._engine, "connect", _prepare_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
        else:
            # Whatever the server's defaults: a snapshot to read, and the newest rows to write on.
            self._writing = self._engine.execution_options(isolation_level="READ COMMITTED")
            self._engine = self._engine.execution_options(isolation_level="REPEATABLE READ")

    def exists(self) -> bool:
        """Whether it stands there already. One of an older schema is brought up to date."""
        with self.standing() as connection:
            return connection is not None

    @property
    def schema_version(self) -> str:
        """What this version of the program writes."""
        return self._schema.versions[-1]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A snapshot."""
        with self.explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def standing(self) -> Iterator[Connection | None]:
        """The same of a database that may not be there yet; None then. One of an older schema is
        brought up to date."""
        if self.file is not None and not self.file.exists():
            yield None
            return
        with self.explained():
            with self._engine.begin() as connection:
                version = self._known(self._version(connection))
                if version in (None, self.schema_version):
                    yield None if version is None else connection
                    return
            self.bring_up_to_date()
        with self.reading() as connection:
            yield connection

    @contextmanager
    def writing(self, scope: str) -> Iterator[Connection]:
        """One transaction at a time per scope, for all periods of one that renews, committed at the
        end or rolled back whole."""
        with self.explained(), self._writing.begin() as connection:
            self._lock(connection, parts_of(scope)[0])
            yield connection

    def _lock(self, connection: Connection, name: str) -> None:
        # SQLite has locked the whole file by now.
        if self.file is None:
            connection.execute(text("SET LOCAL synchronous_commit = on"))
            connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
                {"name": f"adsbpc:{name}"},
            )

    def close(self) -> None:
        """Give back connections that were kept open; the database may be used again."""
        self._engine.dispose()

    def bring_up_to_date(self) -> None:
        """Create the tables, or carry them from an older schema to the newest."""
        with self.explained():
            if self.file is not None and not self.file.exists():
                self._create(self.file)
            with self._engine.begin() as connection:
                if self._version(connection) == self._schema.versions[-1]:
                    return
            with self._writing.begin() as connection:
                self._lock(connection, "schema")
                if self._known(self._version(connection)) != self._schema.versions[-1]:
                    upgrade(connection, self._schema.versions[-1], self._schema)

    def _create(self, file: Path) -> None:
        """An empty file that only its owner may read: it holds secret state."""
        try:
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise self._schema.failure(
                f"{self._schema.noun} {file}: cannot be created ({error.strerror}). Check that the "
                "folder exists and that adsbpc may write there"
            ) from None

    def _known(self, version: str | None) -> str | None:
        versions = self._schema.versions
        if version is not None and version not in versions:
            raise self._schema.failure(
                f"{self._schema.noun} {self.where}: has schema {version}, and this adsbpc knows "
                f"{versions[0]} to {versions[-1]}. Upgrade adsbpc"
            )
        return version

    def _version(self, connection: Connection) -> str | None:
        table = self._schema.version_table
        if not sqlalchemy.inspect(connection).has_table(table):
            return None
        found = connection.execute(text(f"SELECT version_num FROM {table}")).scalar()
        return None if found is None else str(found)

    def damage(self, connection: Connection) -> str | None:
        """What the database itself finds wrong with its file."""
        if self.file is None:
            return None
        try:
            found = connection.execute(text("PRAGMA integrity_check(1)")).scalar_one()
        except DBAPIError as error:
            return _cause(error)
        return None if found == "ok" else str(found)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """What the database says, and what to do about it, in place of SQLAlchemy's errors."""
        try:
            yield
        except SQLAlchemyError as error:
            cause = _cause(error)
            step = next((step for sign, step in _NEXT_STEPS if sign in cause.lower()), _AGAIN)
            raise self._schema.failure(
                f"{self._schema.noun} {self.where}: {cause}. {step}"
            ) from error


def upgrade(connection: Connection, version: str, schema: DatabaseSchema = LEDGER) -> None:
    """Run the migrations up to a version, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection, "version_table": schema.version_table})
    config.set_main_option("script_location", str(schema.migrations))
    command.upgrade(config, version)


def _url(location: str, directory: Path, key: str) -> URL:
    if "://" not in location:
        return URL.create("sqlite", database=str(directory / location))
    try:
        url = make_url(location)
    except ArgumentError:
        raise SpecError(f"{key}: is no URL. Correct it") from None
    if url.get_backend_name() != "postgresql":
        raise SpecError(
            f"{key}: {url.drivername}:// is not supported. Give the name of a SQLite "
            "file, or a URL that starts with postgresql://: it takes transactions, which object "
            "storage does not have. Books and releases may be there: [storage] location"
        )
    return url.set(drivername="postgresql+psycopg")


def _file_of(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite":
        return None
    return Path(str(url.database)).resolve()


def without_password(url: URL) -> str:
    """A URL for messages, wherever in it a password stands."""
    hidden = {name: "***" for name in url.query if is_secret(name)}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def is_secret(name: str) -> bool:
    """Whether an option of this name must not be shown."""
    return any(part in name.lower() for part in ("secret", "password", "token", "key"))


def _cause(error: SQLAlchemyError) -> str:
    cause = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(cause.split())[:300]


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Transactions are ours to begin, and a commit is on the disk when it returns."""
    import sqlite3

    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_WAIT_SECONDS * 1000}")
    connection.execute("PRAGMA synchronous = FULL")
    # The switch to WAL does not wait for others by itself.
    deadline = time.monotonic() + _WAIT_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise sqlite3.OperationalError(f"its journal stays {mode!r} instead of WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
