"""The service's own tables, beside the ledger: keys, sessions, batches, files, campaigns, ...

    adsbpc_keys        who may do what; secrets as hashes only
    adsbpc_sessions    who is signed in to the dashboard; ids as hashes only
    adsbpc_batches     the answer that each batch got: a repeated one gets it again
    adsbpc_event_ids   which event ids each sender has used; as hashes only
    adsbpc_salts       what makes these hashes impossible to foresee
    adsbpc_files       which files hold the events; a file that is not listed holds nothing
    adsbpc_arrivals    up to when nothing is stored as arrived any more
    adsbpc_campaigns   what is measured, and which server releases it now
    adsbpc_published   from when on each released slot is visible
    adsbpc_forgotten   who is to be forgotten, until nothing of them is left
    adsbpc_counts      rows by hour, sender and verdict: for the operator, never published

Moments are microseconds since 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Executable,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql, sqlite

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database, DatabaseSchema

SERVICE = DatabaseSchema(
    noun="service database",
    key="[service] database",
    versions=("0001", "0002", "0003"),
    version_table="adsbpc_service_schema",
    migrations=Path(__file__).with_name("migrations"),
    failure=ServiceError,
    pooled=True,
)

metadata = MetaData()

keys = Table(
    "adsbpc_keys",
    metadata,
    Column("key_id", String(32), primary_key=True),
    Column("secret_hash", String(64), nullable=False),
    Column("role", String(20), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("label", String(200), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger),
    Column("revoked_us", BigInteger),
)

sessions = Table(
    "adsbpc_sessions",
    metadata,
    Column("session_hash", String(64), primary_key=True),
    Column("key_id", String(32), nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("expires_us", BigInteger, nullable=False),
)

batches = Table(
    "adsbpc_batches",
    metadata,
    Column("owner", String(250), nullable=False),
    Column("source", String(20), nullable=False),
    Column("batch_key", String(200), nullable=False),
    Column("body_hash", String(64), nullable=False),
    Column("answer", Text, nullable=False),
    Column("arrived_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("owner", "source", "batch_key"),
)

event_ids = Table(
    "adsbpc_event_ids",
    metadata,
    Column("owner", String(250), nullable=False),
    Column("source", String(20), nullable=False),
    # When the row was written, and at least one more than that of the sender's row before it.
    Column("position_us", BigInteger, nullable=False),
    # The generation: since when, and how many ids it had with this row.
    Column("began_us", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("marks", LargeBinary, nullable=False),
    PrimaryKeyConstraint("owner", "source", "position_us"),
)

salts = Table(
    "adsbpc_salts",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("salt", String(64), nullable=False),
)

event_files = Table(
    "adsbpc_files",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("source", String(20), nullable=False),
    # Empty where a file holds rows of several advertisers.
    Column("advertiser", String(200), nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    # Since when its rows are in other files.
    Column("retired_us", BigInteger),
    Index("adsbpc_files_live", "source", "retired_us"),
)

arrivals = Table(
    "adsbpc_arrivals",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("closed_until_us", BigInteger, nullable=False),
)

campaigns = Table(
    "adsbpc_campaigns",
    metadata,
    Column("campaign_id", String(32), primary_key=True),
    Column("scope", String(200), nullable=False),
    Column("name", String(200), nullable=False),
    Column("advertiser", String(200), nullable=False),
    Column("spec", Text, nullable=False),
    Column("created_us", BigInteger, nullable=False),
    Column("created_by", String(32), nullable=False),
    # The server that releases it now, until when, and what went wrong last.
    Column("lease_holder", String(32), nullable=False),
    Column("lease_until_us", BigInteger, nullable=False),
    Column("problem", Text, nullable=False),
    # Since when nothing is released of it.
    Column("paused_us", BigInteger),
    UniqueConstraint("scope", "name", name="adsbpc_campaigns_once"),
)

forgotten = Table(
    "adsbpc_forgotten",
    metadata,
    Column("user_id", String(200), primary_key=True),
    Column("asked_us", BigInteger, nullable=False),
)

published = Table(
    "adsbpc_published",
    metadata,
    Column("campaign_id", String(32), nullable=False),
    Column("slot", BigInteger, nullable=False),
    Column("published_us", BigInteger, nullable=False),
    PrimaryKeyConstraint("campaign_id", "slot"),
)

counts = Table(
    "adsbpc_counts",
    metadata,
    Column("hour_us", BigInteger, nullable=False),
    Column("source", String(20), nullable=False),
    Column("owner", String(250), nullable=False),
    # accepted, duplicate, or the reason of a quarantine; empty counts batches.
    Column("verdict", String(100), nullable=False),
    Column("number", BigInteger, nullable=False),
    PrimaryKeyConstraint("hour_us", "source", "owner", "verdict"),
)


def inserts(table: Table, change: Callable[[Any], Executable]) -> dict[str, Executable]:
    """An insert with what is to be done about rows that are there, for each kind of database. Made
    once: that takes longer than to run them."""
    return {
        "postgresql": change(postgresql.insert(table)),
        "sqlite": change(sqlite.insert(table)),
    }


def moved_name(file: Path) -> Path:
    """What `adsbpc move` leaves of a SQLite file."""
    return file.with_name(f"{file.name}.moved")


def open_store(location: str, directory: Path) -> Database:
    database = Database(location, directory, SERVICE)
    file = database.file
    # A server with the old settings would begin an empty one, and lose what it is sent.
    if file is not None and not file.exists() and moved_name(file).exists():
        raise ServiceError(
            f"[service] database = {location!r}: was moved, and {moved_name(file)} is what is left "
            "of it. Set [service] database and [ledger] location to the new place"
        )
    database.bring_up_to_date()
    return database
