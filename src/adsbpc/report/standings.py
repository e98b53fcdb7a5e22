"""Where publishers stand after the newest slot: totals so far and shares of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, sqrt

from adsbpc.report.cells import Cell


@dataclass(frozen=True)
class Share:
    """Of all publishers together, each end cut off to 0..1.

    What may still be missing because it was cut is not in it: whom that hit more than others is
    not known.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PublisherStanding:
    """A publisher's total so far. There is no share where the total cannot be told from zero."""

    total: Cell
    share: Share | None

    @property
    def publisher(self) -> str:
        return self.total.publisher


@dataclass(frozen=True)
class Standings:
    """Every publisher, the largest first, and all of them together."""

    publishers: tuple[PublisherStanding, ...]
    everything: Cell

    @classmethod
    def of(cls, totals: Iterable[Cell], reach: float, adds_up: bool = True) -> Standings:
        """From one slot's running totals, of which the last is that of all publishers: their sum,
        or where that counts people once a figure of its own."""
        *cells, everything = totals
        # The sort is stable: ties stay in the order of the campaign's list.
        ordered = sorted(cells, key=lambda cell: -cell.estimate)
        squares = fsum(cell.standard_error**2 for cell in cells) if adds_up else None
        return cls(
            tuple(
                PublisherStanding(cell, _share(cell, everything, squares, reach))
                for cell in ordered
            ),
            everything,
        )


def _share(cell: Cell, everything: Cell, squares: float | None, reach: float) -> Share | None:
    """By the delta method, with T the sum of all X_q, each of which has its part of the noise of
    T, Cov(X_p, T) = Var(T) Var(X_p) / sum of all Var(X_q), and s = X_p / T:

    Var(s) = (Var(X_p) - 2 s Cov(X_p, T) + s^2 Var(T)) / T^2

    Without `squares`, the sum of all Var(X_q), T is no sum, and its noise its own: the term in the
    middle is not there.
    """
    if everything.noisy:
        return None
    share = cell.estimate / everything.estimate
    own, all_together = cell.standard_error**2, everything.standard_error**2
    together = 0.0 if not squares else 2 * share * own / squares
    variance = max(own + (share**2 - together) * all_together, 0.0)
    width = reach * sqrt(variance) / everything.estimate
    return Share(*(min(max(end, 0.0), 1.0) for end in (share, share - width, share + width)))


def clear_leader(standings: tuple[PublisherStanding, ...], reach: float) -> bool:
    """Whether the first is ahead of the second by more than noise explains."""
    if len(standings) < 2:
        return True
    first, second = standings[0].total, standings[1].total
    spread = sqrt(fsum((first.standard_error**2, second.standard_error**2)))
    return first.estimate - second.estimate > reach * spread
