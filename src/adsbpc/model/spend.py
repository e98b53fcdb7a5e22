"""Spend: what publishers were paid. It is public, and set beside released figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Annotated

from pydantic import Field

from adsbpc.model.measure_spec import PUBLISHER
from adsbpc.model.section import Name, Section


class SpendSection(Section):
    """A CSV or Parquet file with a row for each publisher and day, in the campaign's time zone, and
    for each value of the dimensions of `by`, whose columns have their names."""

    file: Name
    publisher: Name = "publisher_id"
    day: Name = "day"
    amount: Name = "amount"
    by: Annotated[tuple[Name, ...], Field(max_length=4)] = ()


@dataclass(frozen=True)
class Spend:
    """By what it was paid for, a publisher first and then a value of each further dimension, and by
    slot."""

    amounts: Mapping[tuple[tuple[str, ...], int], float]
    dimensions: tuple[str, ...] = (PUBLISHER,)

    def until(self, slot: int) -> float:
        """Of everything, from the first slot to this one."""
        return (self.by((), 1, slot) or {}).get((), 0.0)

    def by(
        self, names: Sequence[str], first: int, last: int
    ) -> dict[tuple[str, ...], float] | None:
        """What was paid in these slots, by the values of these dimensions: nothing where they are
        not in it. None if it is not told apart by all of them."""
        if not set(names) <= set(self.dimensions):
            return None
        places = [self.dimensions.index(name) for name in names]
        found = defaultdict(list)
        for (keys, slot), amount in self.amounts.items():
            if first <= slot <= last:
                found[tuple(keys[place] for place in places)].append(amount)
        return {keys: fsum(amounts) for keys, amounts in found.items()}
