"""Contributions: credits as integer weights of (user, slot, cell), and their aggregates."""

from adsbpc.contributions.account_books import Books
from adsbpc.contributions.array_accounts import ArrayAccounts
from adsbpc.contributions.array_index import CellIndex
from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.engine import EngineContributions, contributions_sql
from adsbpc.contributions.engine_accounts import EngineAccounts
from adsbpc.contributions.fit_counts import engine_counts
from adsbpc.contributions.interface import Accounts, Contributions

__all__ = [
    "Accounts",
    "ArrayAccounts",
    "ArrayContributions",
    "Books",
    "CellIndex",
    "Contributions",
    "EngineAccounts",
    "EngineContributions",
    "contributions_sql",
    "engine_counts",
]
