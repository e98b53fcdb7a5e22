"""Ratios: intervals that hold for what they say, and nothing where nothing can be told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import hypot, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.model.spend import Spend
from adsbpc.report import ratios
from adsbpc.report.cells import Cell
from adsbpc.report.ratios import APART, difference_ends, divided, fieller, quotient_ends
from tests.report.releases import MadeUp

REACH = NormalDist().inv_cdf(0.975)


@given(
    st.floats(-100, 1_000), st.floats(20, 1_000), st.floats(0.1, 5), st.floats(0.1, 5),
    st.floats(-0.9, 0.9),
)  # fmt: skip
def test_ends_are_where_the_difference_is_as_large_as_its_noise(
    x: float, y: float, error_x: float, error_y: float, correlation: float
) -> None:
    covariance = correlation * error_x * error_y
    ends = fieller(x, y, error_x**2, error_y**2, covariance, REACH)
    assert ends is not None
    assert ends[0] <= x / y <= ends[1]
    for ratio in ends:
        spread = error_x**2 - 2 * ratio * covariance + ratio**2 * error_y**2
        assert abs(x - ratio * y) == pytest.approx(REACH * spread**0.5, rel=1e-5, abs=1e-6)


def test_a_denominator_that_may_be_nothing() -> None:
    assert fieller(5.0, 1.9, 1.0, 1.0, 0.0, REACH) is None
    assert fieller(5.0, 2.0, 1.0, 1.0, 0.0, REACH) is not None


def test_intervals_cover() -> None:
    """20,000 pairs whose denominator is five times its noise, where the delta method misses."""
    random, true_x, true_y = np.random.default_rng(4), 30.0, 5.0
    x, y = random.normal(true_x, 2, 20_000), random.normal(true_y, 1, 20_000)
    ends = [fieller(a, b, 4.0, 1.0, 0.0, REACH) for a, b in zip(x, y, strict=True)]
    told = [each for each in ends if each is not None]
    missed = sum(not low <= true_x / true_y <= high for low, high in told)
    # Where nothing is said, nothing is wrong; 5% of all may be.
    assert 0.045 < missed / len(ends) < 0.055


def test_what_a_conversion_costs() -> None:
    made = MadeUp(publishers=("big", "small"), slots=10, released=5, volume=500, scale=5)
    spend = Spend({(("big",), 1): 100.0, (("big",), 6): 1e9, (("small",), 5): 50.0})
    report = made.report(spend=spend)
    found = {each.publisher: each for each in report.ratios}
    cells = {cell.publisher: cell for cell in report.running_totals([5])}
    assert {each.name for each in report.ratios} == {"cost per conversion"}
    # What is paid later does not count yet; nobody was paid for others.
    assert set(found) == {"(all)", "big", "small"}
    for name, paid in (("(all)", 150.0), ("big", 100.0), ("small", 50.0)):
        cell, ratio = cells[name], found[name]
        assert ratio.value == pytest.approx(paid / cell.estimate)
        assert (ratio.low, ratio.high) == (paid / cell.high, paid / cell.low)


def test_another_ratio_is_shown_wherever_ratios_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the recipe in CONTRIBUTING.md says: one entry, and everything else follows."""
    name = "cost per hundred conversions"
    monkeypatch.setitem(ratios.COSTS, name, ("conversions", 100))
    made = MadeUp(publishers=("big",), slots=10, released=5, volume=500, scale=5)
    report = made.report(spend=Spend({(("big",), 1): 100.0}))
    one, hundred = (
        next(each for each in report.ratios if each.name == wanted and each.is_of_everything)
        for wanted in ("cost per conversion", name)
    )
    assert one.value is not None
    assert hundred.value == pytest.approx(100 * one.value)
    table = report.ratio_table()
    assert table is not None
    assert name in {str(column.header) for column in table.columns}
    assert name in report.columns()["measure"]
    assert name in {each["name"] for each in json.loads(report.to_json())["ratios"]}
    assert f'"{name}"' in report.to_html()


def test_a_cost_that_cannot_be_told() -> None:
    made = MadeUp(publishers=("tiny",), released=3, volume=0.1, scale=50)
    report = made.report(spend=Spend({(("tiny",), 1): 10.0}))
    assert [(each.value, each.low, each.high) for each in report.ratios] == [(None, None, None)] * 2
    assert report.ratio_table() is not None


def test_a_cost_of_nothing_at_all() -> None:
    """Adjusted figures are never negative, and their intervals may begin at 0."""
    made = MadeUp(publishers=("tiny",), released=3, volume=0.1, scale=50)
    report = made.report(spend=Spend({(("tiny",), 1): 10.0}), adjusted=True)
    assert min(cell.low for cell in report.running_totals([3])) == 0
    assert [each.value for each in report.ratios] == [None, None]


def test_without_spend_and_revenue_there_is_nothing_to_divide() -> None:
    report = MadeUp(released=2).report()
    assert report.ratios == []
    assert report.ratio_table() is None


def cell(estimate: float, error: float, cut: float = 0.0, cut_error: float = 0.0) -> Cell:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    low = estimate - REACH * error
    high = estimate + cut + REACH * hypot(error, cut_error)
    return Cell(
        "m", (), 1, 1, noon, noon, "prefix 1..1", estimate, error, low, high, cut, False, cut_error,
        cut,
    )  # fmt: skip


def test_intervals_cover_what_was_cut() -> None:
    """Of either figure a part is cut before the noise, and told with noise of its own."""
    random, draws = np.random.default_rng(8), 5_000
    true_x, true_y, cut_x, cut_y = 900.0, 300.0, 90.0, 45.0
    missed = {"low": 0, "high": 0}
    for _ in range(draws):
        x, y = random.normal(true_x - cut_x, 30), random.normal(true_y - cut_y, 12)
        told_x, told_y = random.normal(cut_x, 20), random.normal(cut_y, 9)
        above, below = cell(x, 30, max(told_x, 0), 20), cell(y, 12, max(told_y, 0), 9)
        value, low, high = divided(above, below, REACH)
        assert value is not None
        assert low is not None
        assert high is not None
        assert low <= value <= high
        missed["low"] += low > true_x / true_y
        missed["high"] += high < true_x / true_y
    assert sum(missed.values()) <= (0.05 + 4 * sqrt(0.05 / draws)) * draws


@settings(max_examples=15, deadline=None)
@given(
    st.floats(50, 1_000), st.floats(50, 1_000), st.floats(0, 60), st.floats(0, 60),
    st.floats(-0.8, 0.8), st.floats(0, 1), st.floats(-APART, APART),
)  # fmt: skip
def test_ratios_hold_whatever_is_missing_of_both(
    true_x: float, true_y: float, room_x: float, room_y: float, correlation: float,
    part_x: float, apart: float,
) -> None:  # fmt: skip
    """Of figures that may have anything from nothing to all of their rooms more, one about as large
    a part of it as the other."""
    part_y = min(max(part_x + apart, 0.0), 1.0)
    random, draws = np.random.default_rng(31), 2_000
    error_x, error_y = 12.0, 5.0
    covariance = correlation * error_x * error_y
    noise = random.multivariate_normal(
        (0, 0), [[error_x**2, covariance], [covariance, error_y**2]], draws
    )
    missed = 0
    for own, other in noise:
        x = cell(true_x - part_x * room_x + own, error_x, room_x)
        y = cell(true_y - part_y * room_y + other, error_y, room_y)
        ends = quotient_ends(x, y, covariance, REACH)
        missed += ends is not None and not ends[0] <= true_x / true_y <= ends[1]
    assert missed <= (0.05 + 4 * sqrt(0.05 / draws)) * draws


def test_as_much_is_missing_above_as_below() -> None:
    """By hand: without noise, 400 more than 900 and 200 more than 300 may be 900 and 300 + 200 / 8,
    900 + 400 x 7 / 8 and 500, 900 + 400 / 8 and 300, or 1,300 and 300 + 200 x 7 / 8: ratios of
    2.77, 2.5, 3.17 and 2.74."""
    ends = quotient_ends(cell(900, 0, 400), cell(300, 0, 200), 0.0, REACH)
    assert ends == pytest.approx((1250 / 500, 950 / 300))
    # The other way round ends change places.
    ends = quotient_ends(cell(300, 0, 200), cell(900, 0, 400), 0.0, REACH)
    assert ends == pytest.approx((300 / 950, 500 / 1250))
    # Where nothing may be missing of one of them, anything may be of the other.
    ends = quotient_ends(cell(900, 0), cell(300, 0, 200), 0.0, REACH)
    assert ends == pytest.approx((900 / 500, 900 / 300))
    ends = quotient_ends(cell(900, 0, 400), cell(300, 0), 0.0, REACH)
    assert ends == pytest.approx((900 / 300, 1300 / 300))


def test_each_end_of_a_ratio_has_the_noise() -> None:
    """Of x, 30, and of y, 12: by hand 1.96 times the root of 30^2 + 12^2 r^2 from 1,250 - 500 r,
    and from 950 - 300 r."""
    ends = quotient_ends(cell(900, 30, 400), cell(300, 12, 200), 0.0, REACH)
    assert ends == pytest.approx((2.3390, 3.5041), abs=5e-5)
    for (x, y), ratio in zip(((1250, 500), (950, 300)), ends or (), strict=True):
        assert abs(x - ratio * y) == pytest.approx(REACH * hypot(30, 12 * ratio))


def test_ends_of_a_difference() -> None:
    """By hand: differences are 900 - 325 = 575, 1,250 - 500 = 750, 950 - 300 = 650 and
    1,300 - 475 = 825, and the noise of both is 1.96 times the root of 30^2 + 12^2, 63.33."""
    ends = difference_ends(cell(900, 30, 400), cell(300, 12, 200), 0.0, REACH)
    assert ends == pytest.approx((575 - 63.33, 825 + 63.33), abs=0.005)
    # The same noise in both goes.
    ends = difference_ends(cell(900, 12, 400), cell(300, 12, 200), 144.0, REACH)
    assert ends == pytest.approx((575, 825))


@given(
    st.floats(50, 1_000), st.floats(50, 1_000), st.floats(0, 60), st.floats(0, 60),
    st.floats(-0.8, 0.8),
)  # fmt: skip
def test_a_difference_may_be_nothing_where_a_ratio_may_be_one(
    x: float, y: float, cut_x: float, cut_y: float, correlation: float
) -> None:
    above, below, covariance = cell(x, 12, cut_x), cell(y, 5, cut_y), correlation * 60
    low, high = difference_ends(above, below, covariance, REACH)
    ends = quotient_ends(above, below, covariance, REACH)
    assert ends is not None
    # Beside rounding.
    if min(abs(low), abs(high)) > 1e-6:
        assert (low < 0 < high) == (ends[0] < 1 < ends[1])


def test_a_ratio_to_something_that_may_be_nothing() -> None:
    assert divided(cell(50, 5), cell(10, 6), REACH) == (None, None, None)
