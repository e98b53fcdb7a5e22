"""The data sets by name: the paper's sizes, the same data for the same seed, refusals in words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from adsbpc.errors import SpecError
from adsbpc.lab.datasets import DATASETS, Dataset, load_dataset
from adsbpc.lab.datasets.counted import FACEBOOK_GROUPS
from adsbpc.lab.datasets.streams import STREAMS
from adsbpc.model import UNITS_PER_CONVERSION

# The streams have tests of their own.
SPREAD = [name for name in DATASETS if name not in STREAMS]
SMALL = {name: None if name == "facebook" else 2_000 for name in SPREAD}


def conversions(data: Dataset) -> float:
    return float(daily_totals(data).sum() / UNITS_PER_CONVERSION)


def daily_totals(data: Dataset) -> NDArray[np.int64]:
    return np.array([data.contributions.totals(slot) for slot in range(1, data.slots + 1)])


def users_above(data: Dataset, bound: int) -> int:
    """Users with more conversions than the bound, when all days are one."""
    assert data.slots == 1
    return data.contributions.users_above(1, bound * UNITS_PER_CONVERSION)


@pytest.mark.parametrize("name", SPREAD)
def test_a_dataset_is_what_it_says(name: str) -> None:
    data = load_dataset(name, slots=9, seed=1, users=SMALL[name])
    assert data.name == name
    assert data.slots == data.contributions.slots == 9
    assert data.publishers == data.contributions.layout.dimensions[0].values
    assert len(set(data.publishers)) == len(data.publishers)
    assert data.users == (SMALL[name] or 1_143)
    assert data.quantile_limit == (20 if name in ("normal", "uniform") else 10)
    assert (daily_totals(data).sum(axis=1) > 0).all()
    assert ("made up" in data.label) == (name != "facebook")


@pytest.mark.parametrize("name", SPREAD)
def test_the_seed_decides(name: str) -> None:
    first, again, other = (
        daily_totals(load_dataset(name, slots=9, seed=seed, users=SMALL[name]))
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# The mean of one user's number and its standard deviation; Zipf(3) has none, so a generous number
# stands in for it.
@pytest.mark.parametrize(
    ("name", "mean", "deviation", "paper_total", "tolerance"),
    [
        ("zipf", 11.3684, 2.5, 11_361_742, 0.001),
        ("normal", 50.119, 28.7, 50_193_976, 0.002),
        ("uniform", 128.5, 73.9, None, None),
    ],
)
def test_conversions_per_user(
    name: str, mean: float, deviation: float, paper_total: int | None, tolerance: float | None
) -> None:
    users = 20_000
    data = load_dataset(name, slots=5, seed=5, users=users)
    assert abs(conversions(data) / users - mean) < 4 * deviation / users**0.5
    assert len(data.publishers) == 1_000
    if paper_total is not None:
        assert mean * 1e6 == pytest.approx(paper_total, rel=tolerance)


def test_only_the_documented_tails_pass_the_largest_user() -> None:
    """Zipf's tail has no end and Normal's is thin; nobody else is above what is said of them."""
    shares = {
        name: users_above(data, data.largest_user) / data.users
        for name in SPREAD
        for data in [load_dataset(name, slots=1, seed=6, users=SMALL[name] and 20_000)]
    }
    assert shares["zipf"] < 0.001
    assert shares["normal"] < 0.001
    assert sum(shares.values()) == shares["zipf"] + shares["normal"]


def test_days_and_publishers_are_uniform() -> None:
    totals = daily_totals(load_dataset("uniform", slots=4, seed=7, users=4_000))
    counts = totals / UNITS_PER_CONVERSION
    for axis in (0, 1):
        sums = counts.sum(axis=axis)
        deviation = sums.mean() ** 0.5
        assert np.abs(sums - sums.mean()).max() < 5 * deviation


def test_facebook_is_the_published_set() -> None:
    data = load_dataset("facebook", slots=1, seed=8)
    assert data.users == 1_143
    assert conversions(data) == 3_264
    assert data.largest_user == 60
    for bound in range(1, 61):
        more = sum(groups for size, groups in FACEBOOK_GROUPS.items() if size > bound)
        assert users_above(data, bound) == more


@pytest.mark.parametrize("name", SPREAD)
def test_copies_repeat_conversions_on_days_of_their_own(name: str) -> None:
    once = load_dataset(name, slots=40, seed=9, users=SMALL[name])
    five = load_dataset(name, slots=40, seed=9, users=SMALL[name], copies=5)
    assert five.users == once.users
    assert five.largest_user == 5 * once.largest_user
    assert five.label == once.label
    assert conversions(five) == pytest.approx(5 * conversions(once))
    days_once, days_five = daily_totals(once).sum(axis=1), daily_totals(five).sum(axis=1)
    assert (days_five != 5 * days_once).any()


@pytest.mark.parametrize("name", ["facebook", "zipf"])
def test_copies_are_of_the_same_users(name: str) -> None:
    once = load_dataset(name, slots=1, seed=9, users=SMALL[name])
    three = load_dataset(name, slots=1, seed=9, users=SMALL[name], copies=3)
    for bound in range(1, 40):
        above = once.contributions.users_above(1, bound * UNITS_PER_CONVERSION)
        assert three.contributions.users_above(1, 3 * bound * UNITS_PER_CONVERSION) == above


def test_many_slots_and_few_users() -> None:
    """Edges of the small integers that days are kept in."""
    for slots in (255, 256, 257):
        data = load_dataset("zipf", slots=slots, seed=1, users=200)
        assert conversions(data) >= 11 * 200
    for name in SPREAD:
        assert load_dataset(name, slots=1, seed=1, users=SMALL[name] and 1).slots == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "critoe"}, "dataset = 'critoe'.*Did you mean \"criteo\"?"),
        ({"name": "zipf", "slots": 0}, "slots = 0: expected a whole number, 1 or more"),
        ({"name": "zipf", "slots": 10**6}, "slots = 1000000: expected 10000 or fewer"),
        ({"name": "zipf", "seed": -1}, "seed = -1"),
        ({"name": "criteo", "users": 0}, "users = 0"),
        ({"name": "normal", "copies": 0}, "copies = 0"),
        ({"name": "facebook", "users": 10}, "users = 10: facebook is a fixed set of 1143 groups"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_dataset(**({"slots": 3, "seed": 1} | arguments))  # type: ignore[arg-type]
