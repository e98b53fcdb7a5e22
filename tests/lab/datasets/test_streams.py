"""Streams do on each slot what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from adsbpc.errors import SpecError
from adsbpc.lab.datasets import load_dataset
from adsbpc.lab.datasets.streams import STREAMS
from adsbpc.model import UNITS_PER_CONVERSION as UNIT


def daily(name: str, slots: int = 31) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    data = load_dataset(name, slots, seed=1, users=2_000)
    totals = [data.contributions.totals(slot) for slot in range(1, slots + 1)]
    return np.array(totals, dtype=np.float64) / UNIT


@pytest.mark.parametrize(("name", "publishers"), [("daily", 1), ("daily-loyal", 50)])
def test_everybody_converts_once_on_every_slot(name: str, publishers: int) -> None:
    totals = daily(name)
    assert totals.shape == (31, publishers)
    assert (totals == 2_000 / publishers).all()
    data = load_dataset(name, 31, seed=1, users=2_000)
    assert data.contributions.users_above(5, UNIT - 1) == 2_000
    assert data.contributions.users_above(5, UNIT) == 0


def test_everybody_is_in_one_cell_of_publishers_and_countries() -> None:
    data = load_dataset("countries", 5, seed=1, users=2_000)
    assert data.contributions.layout.sizes == (1, 50, 1_000)
    _, user, cell, weight = data.contributions.cells()
    assert (np.bincount(user, minlength=2_000) == 1).all()
    assert cell.max() > 900
    assert (weight == UNIT).all()


def test_nothing_happens_until_the_last_slot() -> None:
    totals = daily("late").sum(axis=1)
    assert (totals[:-1] == 0).all()
    assert 2.5 < totals[-1] / 2_000 < 4.5


def test_few_people_convert_a_hundred_times_as_often() -> None:
    data = load_dataset("heavy", 1, seed=1, users=2_000)
    assert data.contributions.users_above(1, 299 * UNIT) == 20
    assert data.contributions.users_above(1, 20 * UNIT) == 20


def test_three_slots_have_ten_times_as_much() -> None:
    totals = daily("surge").sum(axis=1)
    usual = np.median(totals)
    assert np.flatnonzero(totals > 5 * usual).tolist() == [14, 15, 16]
    assert totals[15] / usual == pytest.approx(10, rel=0.3)


def test_publishers_are_not_alike() -> None:
    for name in ("middling", "season", "bursts", "baskets"):
        totals = daily(name).sum(axis=0)
        assert totals.max() > 4 * np.median(totals), name


def test_weekends_are_busy_and_bursts_are_short() -> None:
    season = daily("season", 28).sum(axis=1).reshape(4, 7).sum(axis=0)
    assert season[5] > 1.5 * season[1]
    bursts = daily("bursts")
    largest = bursts[:, np.argmax(bursts.sum(axis=0))]
    assert np.sort(largest)[-12:].sum() > 0.7 * largest.sum()


@pytest.mark.parametrize("name", STREAMS)
def test_streams_have_no_copies(name: str) -> None:
    with pytest.raises(SpecError, match="copies = 2"):
        load_dataset(name, 5, seed=1, users=30, copies=2)
    assert load_dataset(name, 1, seed=1, users=30).slots == 1
