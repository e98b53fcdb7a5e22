"""Durable scopes, charges, releases and secret mechanism state, in SQLite or PostgreSQL."""

from adsbpc.ledger.ledger import CampaignRecord, Ledger, ScopeRecord, Verification

__all__ = ["CampaignRecord", "Ledger", "ScopeRecord", "Verification"]
