"""The one table of the ledger: a journal of entries per scope, each sealed with its predecessor.

    kind      pico_rho             body
    scope     limit of the scope   what the scope promises, with a nonce that makes it unique
    campaign  reserved for it      the promise of the campaign file, the budgets of its slots
    charge    charged              (the part that it was for is in `part`)
    state                          what the slot adds to the mechanism's state, with a nonce: SECRET
    release                        what was published, byte for byte
    close     returned             (a campaign that ended early: what it had reserved and not spent)
    erase                          (books of a closed campaign, which are no longer kept)

Rows are only ever added. `format` says how a row is sealed, so that later versions can add columns
and still follow the chain from its first entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from adsbpc.model.formats import format_of

metadata = MetaData()

entries = Table(
    "adsbpc_entries",
    metadata,
    Column("scope", String(200), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("campaign", String(200), nullable=False),
    Column("slot", Integer, nullable=False),
    # A measure's name and what was charged for. SQLite keeps the type that the table began with
    # and holds any length; PostgreSQL's index has room for no more, all names at their longest.
    Column("part", String(50).with_variant(String(250), "postgresql"), nullable=False),
    Column("pico_rho", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("body_hash", String(64), nullable=False),
    Column("recorded_at", String(40), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("format", Integer, nullable=False),
    PrimaryKeyConstraint("scope", "position"),
    # One limit per scope, one promise per campaign, one release per slot, whoever races.
    UniqueConstraint("scope", "campaign", "slot", "kind", "part", name="adsbpc_entries_once"),
    CheckConstraint("pico_rho >= 0", name="adsbpc_entries_never_refund"),
)


ENTRY_FORMAT: Final = 2
_FIRST_FIELDS: Final = (
    "scope",
    "position",
    "kind",
    "campaign",
    "slot",
    "part",
    "pico_rho",
    "body_hash",
    "recorded_at",
)
# What each format seals. The first sealed a list of values, later ones an object by name.
_SEALED_FIELDS: Final = {1: _FIRST_FIELDS, 2: (*_FIRST_FIELDS, "format")}


@dataclass(frozen=True)
class Entry:
    """A row without its body and its own hash.

    The hash of the body stands for it, so that the chain of a long ledger can be followed without
    reading everything that was ever released.
    """

    scope: str
    position: int
    kind: str
    campaign: str
    slot: int
    part: str
    pico_rho: int
    body_hash: str
    recorded_at: str
    format: int = ENTRY_FORMAT

    def sealed(self, previous: str) -> str:
        """Hash of this entry and the hash before it: changing any entry changes all that follow."""
        known = format_of(vars(self), ENTRY_FORMAT)
        sealed = {name: getattr(self, name) for name in _SEALED_FIELDS[known]}
        content: Any = {**sealed, "previous": previous}
        if known == 1:
            content = [previous, *sealed.values()]
        # A damaged file may hold bytes where a text was; they are not what was written.
        text = json.dumps(
            content, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=repr
        )
        return sha256(text.encode()).hexdigest()


def hash_of(body: object) -> str:
    """A damaged file may hold bytes where a text was; they are not what was written."""
    content = body if isinstance(body, str) else repr(body)
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
