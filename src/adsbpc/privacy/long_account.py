"""One user's books in a long campaign: running sums in place of all earlier slots.

`filter.admit` decides with them as with any account. What it takes earlier slots to add to a cost
is at least what they do, and what it charges is that: nobody costs more than is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adsbpc.errors import PrivacyError
from adsbpc.privacy.decays import Crossing, RunningSums
from adsbpc.privacy.filter import Account, Terms


@dataclass
class LongAccount(Account):
    """`moved` stays empty: it is not kept who moved what on which slot."""

    sums: RunningSums = field(default_factory=lambda: RunningSums({}))

    def before(self, terms: Terms) -> dict[int, int]:
        return self.sums.before(_crossing(terms))

    def add(self, terms: Terms, moved: Mapping[int, int]) -> None:
        self.sums.add(_crossing(terms), moved)


def _crossing(terms: Terms) -> Crossing:
    if not isinstance(terms.costs, Crossing):
        raise PrivacyError(f"terms of slot {terms.slot} are not those of a long campaign")
    return terms.costs
