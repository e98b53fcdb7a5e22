"""Released answers one by one, for tests that look at publishers."""

from __future__ import annotations

from collections.abc import Iterable

from adsbpc.model import Answers, Drawn, Estimate


def by_cell(drawn: Drawn, answers: Iterable[Answers] | None = None) -> list[Estimate]:
    """Estimates of the finest view, to the workload's queries if nothing else is said."""
    return [
        estimate
        for each in (drawn.answers if answers is None else answers)
        if len(each.view) == len(drawn.dimensions)
        for estimate in drawn.estimates(each)
    ]
