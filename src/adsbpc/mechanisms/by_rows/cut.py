"""What budgets cut, added back: counted in columns of their own, with noise, and shared out among
cells by what was released of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p, sqrt

import numpy as np

from adsbpc.workloads.queries import Reals

# The first column counts what cells cut, the second, far more coarsely, what the first cannot.
_FIRST_SHARE, _SECOND_SHARE, _SECOND_PER_ROOT = 0.02, 0.05, 0.22
_SECOND_FROM = 5
_SECOND_RATIO = 24.0
# People of whom much is cut differ between cells by this much, as a standard deviation.
UNEVEN = 0.5
_TREMBLING = 3.0


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


def spread_over(totals: Reals) -> Reals:
    """The part of what was cut that is of each cell: by the roots of what was released, because
    large cells have fewer of those who are cut than their size says."""
    roots = np.sqrt(np.maximum(totals, 1e-3))
    return np.asarray(roots / roots.sum())


@dataclass(frozen=True)
class Added:
    """What is added to a query's answers together, its variance, and what may be missing still."""

    total: float
    variance: float
    missing: float


def added_back(counted: Reals, variances: Reals, spread: Reals, noise: float) -> Added:
    """From noisy counts of what was cut, by column. Where they are mostly noise, less is added:
    `noise` is the variance that all cells together have without them."""
    total = variance = missing = 0.0
    for count, own in zip(counted, variances, strict=True):
        harm = own * float((spread**2).sum()) / noise if noise > 0 else 0.0
        doubt = 2 * log1p(_TREMBLING * harm) * own
        trust = max(0.0, 1 - doubt / count**2) if count > 0 else 0.0
        total += trust * count
        variance += trust**2 * own
        missing += max((1 - trust) * count + sqrt(own), 0.0)
    return Added(total, variance, missing)
