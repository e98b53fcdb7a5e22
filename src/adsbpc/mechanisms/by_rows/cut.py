"""What budgets cut: counted in columns of their own, with noise, and shared out among cells by what
was released of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from adsbpc.model.layout import Layout
from adsbpc.workloads.queries import Reals

# The first column counts what cells cut, the second, far more coarsely, what the first cannot.
_FIRST_SHARE, _SECOND_SHARE, _SECOND_PER_ROOT = 0.02, 0.05, 0.22
_SECOND_FROM = 5
_SECOND_RATIO = 24.0
# After one slot a person is expected to need so many times what the slot had, whatever is to come.
_FIRST_SLOTS_NEED = 9
# Everything together has all that was cut, and the whole noise of its count: where it has a column,
# what was cut is counted the more finely, the more that weighs, by its root as errors want it, up
# to a part. The ratio is for each view in which somebody is cut.
_LARGEST_FINE_SHARE, _FINE_RATIO = 0.2, 1.5


@dataclass(frozen=True)
class Column:
    """Its part of every budget, and how much more coarsely than cells it counts."""

    share: float
    ratio: float


def has_total(layout: Layout) -> bool:
    """Whether everything together has a column beside those of further views."""
    return not layout.once and layout.weights[0] > 0


def times_counted(layout: Layout) -> int:
    """How often what was cut of one conversion is counted as cut: once in every view that has cells
    of its own."""
    return len(layout.stood_for) if layout.apart else 1


def columns_for(layout: Layout, is_fine: bool) -> tuple[Column, ...]:
    cells = len(layout)
    first = Column(_FIRST_SHARE, min(max(sqrt(cells / 100), 1.0), 3.0))
    if is_fine:
        total = layout.weights[0] / sqrt(sum(view.weight**2 for view in layout.stood_for))
        share = min(_LARGEST_FINE_SHARE, round(total, 2))
        first = Column(share, _FINE_RATIO * times_counted(layout))
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
