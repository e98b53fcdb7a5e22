"""What budgets cut: counted in columns of their own, with noise, and shared out among cells by what
was released of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from adsbpc.workloads.queries import Reals

# The first column counts what cells cut, the second, far more coarsely, what the first cannot.
_FIRST_SHARE, _SECOND_SHARE, _SECOND_PER_ROOT = 0.02, 0.05, 0.22
_SECOND_FROM = 5
_SECOND_RATIO = 24.0
# After one slot a person is expected to need so many times what the slot had, whatever is to come.
_FIRST_SLOTS_NEED = 9


@dataclass(frozen=True)
class Column:
    """Its part of every budget, and how much more coarsely than cells it counts."""

    share: float
    ratio: float


def columns_for(cells: int) -> tuple[Column, ...]:
    first = Column(_FIRST_SHARE, min(max(sqrt(cells / 100), 1.0), 3.0))
    if cells < _SECOND_FROM:
        return (first,)
    share = min(_SECOND_SHARE, _SECOND_PER_ROOT / sqrt(cells))
    return (first, Column(round(share, 4), _SECOND_RATIO))


def least_slots(slots: int) -> int:
    """Over how many slots, at least, a sum is expected to miss its part of what a campaign of so
    many cuts. Of the first slots more is cut than of others: who is cut on the first day is one of
    those who came often then, and forecast to need no more than nine times that."""
    return -(-slots // _FIRST_SLOTS_NEED)


def spread_over(totals: Reals) -> Reals:
    """The part of what was cut that is of each cell: by the roots of what was released, because
    large cells have fewer of those who are cut than their size says."""
    roots = np.sqrt(np.maximum(totals, 1e-3))
    return np.asarray(roots / roots.sum())
