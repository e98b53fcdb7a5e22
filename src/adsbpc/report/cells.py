"""Cells: one released number each, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from math import fsum, hypot
from statistics import NormalDist

from adsbpc.model import ALL_PUBLISHERS, Estimate, Release
from adsbpc.report.adjustment import Adjustment
from adsbpc.report.timeline import Timeline


@dataclass(frozen=True)
class Cell:
    """A query's answer for one publisher, or for "(all)" of them, after a slot.

    `cut` estimates what personal budgets kept out of the estimate; 0 if nothing is known of that.
    `noisy`: the interval reaches zero, so at its level this cannot be told from nothing.
    """

    slot: int
    starts_at: datetime
    ends_at: datetime
    query: str
    publisher: str
    estimate: float
    standard_error: float
    low: float
    high: float
    cut: float
    noisy: bool


@dataclass(frozen=True)
class Lens:
    """How released numbers are read: at which level, and adjusted or as they are.

    Noise is normal with a known standard error, so value -+ reach * standard error covers what was
    let in with probability `level`. Under AdsBPC that is all: no interval has what its bounds cut.

    Personal budgets also release an estimate of what they cut, with independent noise. Cutting only
    ever takes away, so the low end stays where noise puts it, and the high end covers both:
    value + cut + reach * hypot(standard error, cut error). Each end misses the truth before cutting
    with probability (1 - level) / 2 at most, if `cut` is right but for its noise.

    With an adjustment the interval still comes from the released number: cut off below zero, and
    widened where needed to contain the adjusted estimate. It covers whenever the unadjusted one
    does, because the truth of a sum is never negative and widening only adds.
    """

    timeline: Timeline
    level: float
    adjustment: Adjustment | None

    @cached_property
    def reach(self) -> float:
        """How many standard errors an end of an interval leaves for the noise."""
        return NormalDist().inv_cdf((1 + self.level) / 2)

    def cells(self, release: Release, estimates: Iterable[Estimate]) -> Iterator[Cell]:
        """A cell for each estimate and, after those of a query, one for all publishers."""
        ends_at = self.timeline.moment(release.slot)
        for answers in _by_query(estimates):
            publishers = [answer.cell for answer in answers]
            rows = [(answer, [answer.cell]) for answer in answers]
            for answer, counted in (*rows, (all_publishers(answers), publishers)):
                adjusted = self._adjusted(answer.span, counted)
                low, high = self._ends(answer, adjusted)
                first = release.slot if answer.span is None else answer.span[0]
                yield Cell(
                    release.slot,
                    self.timeline.moment(first - 1),
                    ends_at,
                    answer.query,
                    answer.cell,
                    answer.value if adjusted is None else adjusted,
                    answer.standard_error,
                    low,
                    high,
                    answer.cut,
                    # Below zero there is nothing that a sum could be; other queries may be.
                    noisy=low <= 0 and (answer.span is not None or high >= 0),
                )

    def _adjusted(self, span: tuple[int, int] | None, publishers: list[str]) -> float | None:
        if self.adjustment is None or span is None:
            return None
        return fsum(self.adjustment.sum_over(publisher, span) for publisher in publishers)

    def _ends(self, answer: Estimate, adjusted: float | None) -> tuple[float, float]:
        low = answer.value - self.reach * answer.standard_error
        spread = hypot(answer.standard_error, answer.cut_error)
        high = answer.value + answer.cut + self.reach * spread
        if adjusted is None:
            return low, high
        return min(max(low, 0.0), adjusted), max(high, adjusted)


def _by_query(estimates: Iterable[Estimate]) -> Iterator[list[Estimate]]:
    """Answers come query by query with the publishers in one order; two workloads of a campaign
    may ask the same query."""
    answers: list[Estimate] = []
    for estimate in estimates:
        if answers and (estimate.query != answers[0].query or estimate.cell == answers[0].cell):
            yield answers
            answers = []
        answers.append(estimate)
    if answers:
        yield answers


def all_publishers(answers: Sequence[Estimate]) -> Estimate:
    """Publishers' noise is independent, so variances add up. What was cut is one noisy figure that
    was spread over publishers: its errors go up and down together, and add up as they are."""
    return Estimate(
        ALL_PUBLISHERS,
        answers[0].query,
        fsum(answer.value for answer in answers),
        hypot(*(answer.standard_error for answer in answers)),
        answers[0].span,
        fsum(answer.cut for answer in answers),
        fsum(answer.cut_error for answer in answers),
    )
