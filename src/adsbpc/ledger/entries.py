"""The one table of the ledger: a journal of entries per scope, each sealed with its predecessor.

    kind      pico_rho             body
    scope     limit of the scope   what the scope promises, with a nonce that makes it unique
    campaign  reserved for it      the promise of the campaign file, the budgets of its slots
    charge    charged              (the part that it was for is in `part`)
    state                          what the slot adds to the mechanism's state, with a nonce: SECRET
    release                        what was published, byte for byte

Rows are only ever added.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from hashlib import sha256

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

metadata = MetaData()

entries = Table(
    "adsbpc_entries",
    metadata,
    Column("scope", String(200), nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("campaign", String(200), nullable=False),
    Column("slot", Integer, nullable=False),
    Column("part", String(50), nullable=False),
    Column("pico_rho", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("body_hash", String(64), nullable=False),
    Column("recorded_at", String(40), nullable=False),
    Column("hash", String(64), nullable=False),
    PrimaryKeyConstraint("scope", "position"),
    # One limit per scope, one promise per campaign, one release per slot, whoever races.
    UniqueConstraint("scope", "campaign", "slot", "kind", "part", name="adsbpc_entries_once"),
    CheckConstraint("pico_rho >= 0", name="adsbpc_entries_never_refund"),
)


@dataclass(frozen=True)
class Entry:
    """A row without its body and its own hash, in the order of the columns.

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

    def sealed(self, previous: str) -> str:
        """Hash of this entry and the hash before it: changing any entry changes all that follow."""
        # A damaged file may hold bytes where a text was; they are not what was written.
        fields = json.dumps(
            [previous, *astuple(self)], ensure_ascii=False, separators=(",", ":"), default=repr
        )
        return sha256(fields.encode()).hexdigest()


def hash_of(body: object) -> str:
    """A damaged file may hold bytes where a text was; they are not what was written."""
    content = body if isinstance(body, str) else repr(body)
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
