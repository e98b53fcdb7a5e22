"""Contributions: credits as integer weights of (user, slot, cell), and their aggregates."""

from adsbpc.contributions.array_accounts import ArrayAccounts
from adsbpc.contributions.array_index import CellIndex
from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.engine import EngineContributions, contributions_sql
from adsbpc.contributions.engine_accounts import Books, EngineAccounts
from adsbpc.contributions.fit_counts import engine_counts
from adsbpc.contributions.interface import Accounts, Contributions, RenewableAccounts

__all__ = [
    "Accounts",
    "ArrayAccounts",
    "ArrayContributions",
    "Books",
    "CellIndex",
    "Contributions",
    "EngineAccounts",
    "EngineContributions",
    "RenewableAccounts",
    "contributions_sql",
    "engine_counts",
]
