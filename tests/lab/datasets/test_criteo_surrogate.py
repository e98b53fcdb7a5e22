"""The stand-in for the Criteo log agrees with what is published, at full size."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from adsbpc.lab.datasets import Dataset, load_dataset
from adsbpc.lab.datasets.criteo_surrogate import PAIRS
from adsbpc.model import UNITS_PER_CONVERSION

TOUCHES = ("criteo", "criteo-first", "criteo-uniform")
MOST_COUNTED = 100  # above any number of conversions that a user has


def by_count(data: Dataset, slot: int) -> NDArray[np.int64]:
    """Users by their number of conversions on a day: entry i for i + 1 conversions."""
    edges = [UNITS_PER_CONVERSION * k for k in range(1, MOST_COUNTED)]
    return data.contributions.histogram(slot, edges)


def daily_totals(data: Dataset) -> NDArray[np.int64]:
    return np.array([data.contributions.totals(slot) for slot in range(1, data.slots + 1)])


@pytest.fixture(scope="module")
def whole() -> Dataset:
    """Full size, with all days in one so that a user's day is the user's total."""
    return load_dataset("criteo", slots=1, seed=1)


@pytest.fixture(scope="module")
def month() -> Dataset:
    return load_dataset("criteo", slots=31, seed=1)


def test_totals_are_the_published_ones(whole: Dataset) -> None:
    counts = by_count(whole, 1)
    sizes = np.arange(1, counts.size + 1)
    assert whole.users == counts.sum() == 1_608_081
    assert counts @ sizes == 1_732_721
    assert sizes[counts > 0].max() == whole.largest_user == 44
    assert len(whole.publishers) == 287
    assert (whole.contributions.totals(1) > 0).all()


def test_pairs_are_the_published_ones() -> None:
    sizes, counts = np.array(list(PAIRS)), np.array(list(PAIRS.values()))
    assert counts @ sizes == 1_732_721
    assert counts[0] / counts.sum() == pytest.approx(0.9415, abs=1e-5)
    again, times = counts[1:], sizes[1:]
    mean = again @ times / again.sum()
    assert mean == pytest.approx(2.245, abs=1e-3)
    assert (again @ (times - mean) ** 2 / again.sum()) ** 0.5 == pytest.approx(0.752, abs=1e-3)
    assert counts[sizes >= 10].sum() == 45


def test_users_follow_the_pairs(whole: Dataset) -> None:
    counts = by_count(whole, 1)
    assert counts[0] / counts.sum() == pytest.approx(0.9415, abs=0.005)
    assert counts[9:].sum() == pytest.approx(45, abs=3)


def test_largest_publishers_have_the_published_shares(whole: Dataset) -> None:
    """Of conversions; of users it is nearly the same, as most convert once."""
    totals = whole.contributions.totals(1)
    shares = np.sort(totals / totals.sum())[::-1]
    assert shares[:5] == pytest.approx([0.40, 0.044, 0.039, 0.038, 0.022], abs=0.002)
    assert shares[5] < 0.022
    assert 1e-4 < shares[-1] < shares[100] < shares[5]


def test_touches_move_credit_only() -> None:
    last, first, uniform = (load_dataset(name, 7, seed=2, users=30_000) for name in TOUCHES)
    totals = {data.name: daily_totals(data) for data in (last, first, uniform)}
    for data in (first, uniform):
        np.testing.assert_array_equal(totals[data.name].sum(axis=1), totals[last.name].sum(axis=1))
        for slot in range(1, 8):
            np.testing.assert_array_equal(by_count(data, slot), by_count(last, slot))
    moved = np.abs(totals["criteo-first"] - totals["criteo"]).sum() / totals["criteo"].sum()
    shared = np.abs(totals["criteo-uniform"] - totals["criteo"]).sum() / totals["criteo"].sum()
    assert moved > 0.1
    assert 0.05 < shared < moved


def test_repeat_conversions_meet_on_a_day(month: Dataset) -> None:
    """Most of what a bound of one loses is saved by two; three loses next to nothing."""
    whole = daily_totals(month).sum()
    lost = [
        (whole - sum(month.contributions.totals(s, r * UNITS_PER_CONVERSION).sum()
                     for s in range(1, 32))) / whole
        for r in (1, 2, 3)
    ]  # fmt: skip
    assert 0.04 < lost[0] < 0.07
    assert 0.02 < lost[1] / lost[0] < 0.06
    assert 0.1 < lost[2] / lost[1] < 0.4


def test_weeks_have_a_mild_rhythm(month: Dataset) -> None:
    days = daily_totals(month).sum(axis=1)
    assert days[6::7].mean() > 1.05 * days[4::7].mean()
    assert days.max() < 1.3 * days.min()


def test_it_scales_in_proportion() -> None:
    data = load_dataset("criteo", slots=1, seed=3, users=50_000)
    counts = by_count(data, 1)
    assert counts.sum() == data.users == 50_000
    conversions = counts @ np.arange(1, counts.size + 1)
    assert conversions / 50_000 == pytest.approx(1_732_721 / 1_608_081, abs=0.001)
    assert data.largest_user == 44


def test_a_fifth_copy_keeps_the_density_of_days() -> None:
    data = load_dataset("criteo-uniform", slots=365, seed=4, users=5_000, copies=5)
    plain = load_dataset("criteo-uniform", slots=365, seed=4, users=5_000)
    assert daily_totals(data).sum() == 5 * daily_totals(plain).sum()
    assert data.largest_user == 220
