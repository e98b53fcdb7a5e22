"""Durable scopes, charges, releases and secret mechanism state, in SQLite or PostgreSQL."""

from adsbpc.ledger.ledger import Ledger
from adsbpc.ledger.marks import Mark, MarkFile, MarkPlace, MarkTable
from adsbpc.ledger.records import CampaignRecord, Head, Opening, ScopeRecord, Stage, Verification
from adsbpc.ledger.snapshot import Snapshot

__all__ = [
    "CampaignRecord",
    "Head",
    "Ledger",
    "Mark",
    "MarkFile",
    "MarkPlace",
    "MarkTable",
    "Opening",
    "ScopeRecord",
    "Snapshot",
    "Stage",
    "Verification",
]
