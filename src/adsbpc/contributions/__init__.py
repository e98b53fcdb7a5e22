"""Contributions: credits as integer weights of (user, slot, publisher), and their aggregates."""

from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.contributions.engine import EngineContributions, contributions_sql
from adsbpc.contributions.interface import Contributions

__all__ = [
    "ArrayContributions",
    "Contributions",
    "EngineContributions",
    "contributions_sql",
]
