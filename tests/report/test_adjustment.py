"""Adjusted numbers never contradict each other, and intervals cover no less than before."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report.adjustment import Adjustment, closest_running_total
from tests.report.releases import MadeUp

_values = st.floats(-1e6, 1e6)
_errors = st.floats(0.1, 1e4)
_series = st.lists(st.tuples(_values, _errors), min_size=1, max_size=40)


@given(_series)
def test_never_goes_down_and_is_never_negative(series: list[tuple[float, float]]) -> None:
    values, errors = np.array(series).T
    fit = closest_running_total(values, errors)
    assert (np.diff(fit) >= 0).all()
    assert (fit >= 0).all()


@given(st.lists(st.tuples(st.floats(0, 1e5), _errors), min_size=1, max_size=40))
def test_leaves_alone_what_is_consistent(steps: list[tuple[float, float]]) -> None:
    values, errors = np.cumsum([step for step, _ in steps]), np.array([e for _, e in steps])
    np.testing.assert_allclose(closest_running_total(values, errors), values, rtol=1e-12)


@given(_series, st.lists(st.floats(0, 1e5), min_size=40, max_size=40))
def test_no_other_consistent_series_is_nearer(
    series: list[tuple[float, float]], steps: list[float]
) -> None:
    values, errors = np.array(series).T
    fit, other = closest_running_total(values, errors), np.cumsum(steps)[: len(series)]

    def distance(candidate: np.ndarray) -> float:
        return float((((candidate - values) / errors) ** 2).sum())

    assert distance(fit) <= distance(other) * (1 + 1e-9) + 1e-9
    # Also nothing on the way there, which is where a slightly better one would be.
    assert distance(fit) <= distance(0.999 * fit + 0.001 * other) * (1 + 1e-9) + 1e-9


@given(st.integers(0, 10_000), st.floats(0.1, 50))
def test_publishers_add_up_and_spans_join(seed: int, volume: float) -> None:
    made = MadeUp(slots=9, released=9, volume=volume, scale=10, seed=seed)
    rows = made.report(adjusted=True).rows()
    by_key = {(row.slot, row.publisher): row for row in rows}
    names = [*made.publishers, "other"]
    adjustment = Adjustment.of([release.measures[0] for release in made.releases()])
    for slot in range(1, 10):
        parts = sum(by_key[slot, name].estimate for name in names)
        assert by_key[slot, ALL_PUBLISHERS].estimate == pytest.approx(parts)
    for name in names:
        whole = adjustment.sum_over((name,), (1, 9))
        assert whole == pytest.approx(by_key[9, name].estimate)
        joined = adjustment.sum_over((name,), (1, 4)) + adjustment.sum_over((name,), (5, 9))
        assert whole == pytest.approx(joined)
        one_by_one = sum(adjustment.sum_over((name,), (slot, slot)) for slot in range(1, 10))
        assert whole == pytest.approx(one_by_one)


def test_every_question_is_answered_from_the_same_series() -> None:
    made = MadeUp(volume=4, scale=8, queries=("prefix", "slot", "sliding"))
    report = made.report(adjusted=True)
    totals = {(r.query, r.publisher): r.estimate for r in report.rows()}
    for first, last in pairwise(range(1, 32)):
        grown = totals[f"prefix 1..{last}", "video"] - totals[f"prefix 1..{first}", "video"]
        assert totals[f"slot {last}", "video"] == pytest.approx(grown)
        assert grown >= 0
    week = sum(totals[f"slot {slot}", ALL_PUBLISHERS] for slot in range(25, 32))
    assert totals["window 25..31", ALL_PUBLISHERS] == pytest.approx(week)
    assert report.standings.everything.estimate == pytest.approx(
        totals["prefix 1..31", ALL_PUBLISHERS]
    )


def test_a_query_that_is_no_sum_stays_as_it_is() -> None:
    made = MadeUp(volume=4, scale=8, queries=("matrix",))
    assert made.report(adjusted=True).rows() == made.report().rows()
    assert any(row.estimate < 0 for row in made.report(adjusted=True).rows())


@given(st.integers(0, 10_000), st.floats(0.1, 50), st.sampled_from(("adsbpc", "personal-budget")))
def test_adjusted_intervals_cover_whenever_the_others_do(
    seed: int, volume: float, mechanism: Literal["adsbpc", "personal-budget"]
) -> None:
    made = MadeUp(
        slots=6,
        released=6,
        volume=volume,
        scale=10,
        seed=seed,
        queries=("slot",),
        mechanism=mechanism,
    )
    truth = np.column_stack([made.truth, made.truth.sum(axis=1)])
    pairs = zip(made.report().rows(), made.report(adjusted=True).rows(), strict=True)
    for (plain, adjusted), true in zip(pairs, truth.ravel(), strict=True):
        assert adjusted.low >= 0
        assert adjusted.low <= adjusted.estimate <= adjusted.high
        # What was cut stays in: the high end is that of the released number, or higher.
        assert adjusted.high >= plain.high
        assert adjusted.cut == plain.cut
        if plain.low <= true <= plain.high:
            assert adjusted.low <= true <= adjusted.high
