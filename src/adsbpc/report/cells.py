"""Cells: one released number each, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import hypot

from adsbpc.model import ALL_PUBLISHERS, Answers, Estimate, Measured
from adsbpc.report.adjustment import Adjustment
from adsbpc.report.bands import Bands
from adsbpc.report.reach import Reach
from adsbpc.report.timeline import Timeline


@dataclass(frozen=True)
class Cell:
    """A query's answer for one sum of a measure's view, after a slot. `keys` are the values that it
    keeps of the first dimensions: none for everything together.

    `cut` estimates what bounds or budgets kept out of the estimate, with a standard error of
    `cut_error`; both are 0 if nothing is known of that. The ends share the noise as far as `room`
    goes, which is the certain part of `cut`.
    `noisy`: the interval reaches zero, so at its level this cannot be told from zero. A band, if
    it was asked for and this is a running total, holds for all slots at once.
    """

    measure: str
    keys: tuple[str, ...]
    slot: int
    first_slot: int
    starts_at: datetime
    ends_at: datetime
    query: str
    estimate: float
    standard_error: float
    low: float
    high: float
    cut: float
    noisy: bool
    cut_error: float = 0.0
    room: float = 0.0
    band_low: float | None = None
    band_high: float | None = None

    @property
    def publisher(self) -> str:
        """The first of the keys, which are publishers unless a measure says otherwise."""
        return self.keys[0] if self.keys else ALL_PUBLISHERS


@dataclass(frozen=True)
class Lens:
    """How released numbers are read: at which level, and adjusted or as they are.

    Noise is normal with a known standard error, so value -+ reach * standard error covers what was
    let in with probability `level`. Where nothing is released about what was cut, that is all.

    Otherwise values have what was cut as far as it was counted, with its part in the standard
    error. More may be missing, and cutting only ever takes away, so the low end stays where noise
    puts it, and the high end covers both: value + cut + reach * hypot(standard error, cut error).
    Both ends together miss the truth before cutting with probability 1 - level at most, if `cut` is
    right but for its noise; `Reach` says how little they have to leave. `bands` leave more.

    With an adjustment the interval still comes from the released number: cut off below zero, and
    widened where needed to contain the adjusted estimate. It covers whenever the unadjusted one
    does, because the truth of a sum is never negative and widening only adds.
    """

    timeline: Timeline
    level: float
    adjustment: Adjustment | None
    bands: Bands | None = None

    @cached_property
    def shared_reach(self) -> Reach:
        """How many standard errors the ends of an interval leave for the noise, by room."""
        return Reach.of(self.level)

    @property
    def reach(self) -> float:
        """The same where nothing more can be missing."""
        return self.shared_reach.plain

    def cells(
        self, measured: Measured, answers: Iterable[Answers], deepest: int = 1
    ) -> Iterator[Cell]:
        """A cell for each answer of a view that keeps at most so many dimensions: those of a query
        from the finest view to everything together."""
        ends_at = self.timeline.moment(measured.slot)
        for of_query in _by_query(answers):
            for view in reversed(of_query[: deepest + 1]):
                for place, estimate in enumerate(measured.estimates(view)):
                    adjusted = self._adjusted(estimate)
                    low, high = _ends(estimate, adjusted, self._reach_of(estimate))
                    band_low, band_high = None, None
                    if self.bands is not None and self._has_band(measured.slot, estimate):
                        reach = self.bands.reach(len(view.view), place)
                        band_low, band_high = _ends(estimate, adjusted, reach)
                    first = measured.slot if estimate.span is None else estimate.span[0]
                    yield Cell(
                        measured.measure,
                        estimate.keys,
                        measured.slot,
                        first,
                        self.timeline.moment(first - 1),
                        ends_at,
                        estimate.query,
                        estimate.value if adjusted is None else adjusted,
                        estimate.standard_error,
                        low,
                        high,
                        estimate.cut,
                        # Below zero there is nothing that a sum could be; other queries may be.
                        noisy=low <= 0 and (estimate.span is not None or high >= 0),
                        cut_error=estimate.cut_error,
                        room=estimate.room,
                        band_low=band_low,
                        band_high=band_high,
                    )

    def _has_band(self, slot: int, estimate: Estimate) -> bool:
        return self.bands is not None and estimate.span == (1, slot) and self.bands.holds_at(slot)

    def _adjusted(self, estimate: Estimate) -> float | None:
        if self.adjustment is None or estimate.span is None:
            return None
        return self.adjustment.sum_over(estimate.keys, estimate.span)

    def _reach_of(self, answer: Estimate) -> float:
        spread = hypot(answer.standard_error, answer.cut_error)
        return self.shared_reach.with_room(answer.room, spread)


def _ends(answer: Estimate, adjusted: float | None, reach: float) -> tuple[float, float]:
    low = answer.value - reach * answer.standard_error
    spread = hypot(answer.standard_error, answer.cut_error)
    high = answer.value + answer.cut + reach * spread
    if adjusted is None:
        return low, high
    return min(max(low, 0.0), adjusted), max(high, adjusted)


def _by_query(answers: Iterable[Answers]) -> Iterator[list[Answers]]:
    """Answers come query by query, each from everything together to the finest view."""
    found: list[Answers] = []
    for each in answers:
        if found and not each.view:
            yield found
            found = []
        found.append(each)
    if found:
        yield found
