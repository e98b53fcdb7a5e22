"""Spend: what publishers were paid. It is public, and set beside released figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from adsbpc.model.section import Name, Section


class SpendSection(Section):
    """A CSV or Parquet file with a row for each publisher and day, in the campaign's time zone."""

    file: Name
    publisher: Name = "publisher_id"
    day: Name = "day"
    amount: Name = "amount"


@dataclass(frozen=True)
class Spend:
    """By publisher and slot."""

    amounts: Mapping[tuple[str, int], float]

    def until(self, slot: int, publisher: str | None = None) -> float:
        """From the first slot to this one, of one publisher or of all."""
        return fsum(
            amount
            for (name, number), amount in self.amounts.items()
            if number <= slot and publisher in (None, name)
        )
