"""Allowances from noisy histograms: no false alarm, no blind spot, no error at the ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adsbpc.mechanisms.by_slots.allowance import EDGES, Forecast, Level, Look, _tail
from adsbpc.mechanisms.by_slots.mixes import DenseForecast

BINS = len(EDGES) + 1
NOTHING = np.zeros((0, 1))


def concentrated(concentration: float) -> NDArray[np.float64]:
    """A slot whose squared shares of cells add up to that."""
    return np.ones((1, round(1 / concentration)))


def forecast_of(slots: int = 31, publishers: int = 50, heavy_user: int | None = 30) -> Forecast:
    """Noise that is the same on every slot and does not cancel, which is the simplest."""
    levels = (Level(publishers, 1, 1.0, 1.0),)
    return Forecast(
        slots, levels, DenseForecast(np.eye(slots) * 0.1), slots / 3, 1.0, 0.35, heavy_user
    )


def look_of(slot: int, norms: NDArray[np.float64], deviation: float = 10.0, seed: int = 1) -> Look:
    """A histogram of users with these norms, with noise."""
    counts = np.bincount(np.searchsorted(EDGES, norms), minlength=BINS)
    noise = np.random.default_rng(seed).normal(0, deviation, BINS)
    return Look(slot, tuple(np.rint(counts + noise).astype(int).tolist()), deviation, major=True)


def test_noise_alone_never_moves_the_allowance() -> None:
    """2,000 histograms of nobody: one false bin far out would cost a factor of thousands."""
    forecast, nobody = forecast_of(), np.zeros(0)
    for seed in range(2_000):
        looks = [look_of(slot, nobody, seed=10 * seed + slot) for slot in (1, 2, 4)]
        assert forecast.choose(looks, [5.0, 5.0, 5.0], concentrated(0.1)) == forecast.least


def test_a_false_bin_far_out_is_not_believed() -> None:
    """Three times the noise in a bin near 1,000 conversions, among many users with one."""
    forecast, people = forecast_of(), np.full(20_000, 1.2)
    honest = look_of(4, people)
    counts = list(honest.counts)
    counts[int(np.searchsorted(EDGES, 1000.0))] += 45
    fooled = Look(4, tuple(counts), 10.0, major=True)
    past = [8.0, 8.0, 8.0]
    assert forecast.choose([fooled], past, concentrated(0.05)) <= 1.3 * forecast.choose(
        [honest], past, concentrated(0.05)
    )


def test_bins_beside_a_large_one_are_not_seen_for_that() -> None:
    """Everybody alike: in a thousand histograms nobody is seen above them, where noise is."""
    people = np.full(10_000, 6.8)
    bulk = int(np.searchsorted(EDGES, 6.8))
    for seed in range(1_000):
        tail = _tail(look_of(8, people, seed=seed), strict=False)
        assert tail is not None
        assert len(tail.above) == bulk


def test_many_users_far_out_are_believed_at_once() -> None:
    forecast = forecast_of()
    people = np.concatenate([np.full(20_000, 1.2), np.full(2_000, 300.0)])
    minor = look_of(20, people, deviation=25.0)
    alarm = Look(20, minor.counts, minor.deviation, major=False)
    quiet = [look_of(16, np.full(20_000, 1.2))]
    assert forecast.choose([*quiet, alarm], [8.0] * 19, concentrated(0.05)) > 200


def test_a_minor_look_that_shows_what_is_expected_changes_nothing() -> None:
    forecast, people = forecast_of(), np.random.default_rng(2).gamma(2, 1.5, 50_000)
    looks = [look_of(16, people)]
    again = look_of(18, people * 1.05, deviation=25.0, seed=9)
    minor = Look(18, again.counts, again.deviation, major=False)
    past = [8.0] * 17
    assert forecast.choose([*looks, minor], past, concentrated(0.05)) == forecast.choose(
        looks, past, concentrated(0.05)
    )


def test_needs_that_grow_are_forecast_to_go_on() -> None:
    """Everybody needs twice as much at slot 2 and four times at slot 4: 31 times at the end."""
    forecast = forecast_of(publishers=1, heavy_user=1)
    looks = [look_of(slot, np.full(20_000, 1.1 * slot), seed=slot) for slot in (1, 2, 4)]
    chosen = forecast.choose(looks, [30.0] * 3, concentrated(1.0))
    assert 31 * 0.9 <= chosen <= 31 * 2.5


def test_needs_that_do_not_grow_are_not_inflated() -> None:
    forecast = forecast_of(heavy_user=1)
    people = np.random.default_rng(3).uniform(1, 6, 50_000)
    looks = [look_of(slot, people, seed=slot) for slot in (1, 2, 4, 8, 16)]
    assert 5 <= forecast.choose(looks, [8.0] * 15, concentrated(0.05)) <= 14


def test_more_at_stake_asks_for_more() -> None:
    """The same shape with more people: what is cut grows, noise does not."""
    forecast, rng = forecast_of(heavy_user=1), np.random.default_rng(4)
    few, many = (
        forecast.choose([look_of(8, rng.pareto(4, people) + 1)], [5.0] * 7, concentrated(0.05))
        for people in (2_000, 2_000_000)
    )
    assert few < many


def test_the_public_guess_is_a_floor() -> None:
    small, large = (forecast_of(heavy_user=users).choose([], [], NOTHING) for users in (5, 500))
    assert small < large
    assert small == forecast_of(heavy_user=5).least


def chosen_without_a_guess(norms: Callable[[int], NDArray[np.float64]], pace: float) -> float:
    """How much larger the allowance is at slot 8 than with the usual guess."""
    looks = [look_of(slot, norms(slot), seed=slot) for slot in (1, 2, 4, 8)]
    released = np.full((7, 5), pace / 5)
    with_guess, without = (
        forecast_of(publishers=5, heavy_user=guess).choose(looks, [10.0] * 7, released)
        for guess in (30, None)
    )
    return without / with_guess


def test_who_is_alike_is_taken_as_seen() -> None:
    """Once a slot everybody, which adds up to far more than the usual guess: nobody hides."""
    alike = chosen_without_a_guess(lambda slot: np.full(1_500, 1.2 * slot**0.85), 1_500.0)
    assert alike == 1.0


def test_a_few_hide_among_the_uneven() -> None:
    """People of whom some have ten times as much as most, and too few of them to be seen."""
    rates = 0.4 * np.random.default_rng(5).lognormal(-0.4, 0.9, 1_500)

    def norms(slot: int) -> NDArray[np.float64]:
        counts = np.random.default_rng(slot).poisson(rates * slot)
        found = counts[counts > 0].astype(np.float64)
        return np.asarray(np.sqrt(found + 0.08 * found**2))

    assert chosen_without_a_guess(norms, 0.4 * 1_500) > 1.3
    # Among very many people, histograms show them.
    rates = np.repeat(rates, 100)
    assert chosen_without_a_guess(norms, 0.4 * 150_000) == 1.0


def test_between_looks_nothing_moves_it() -> None:
    """Whatever is released meanwhile: noise cancels between slots of one allowance only."""
    rng = np.random.default_rng(5)
    rates = 0.4 * rng.lognormal(-0.1, 0.45, 1_500)
    looks = [
        look_of(slot, np.sqrt(np.maximum(rng.poisson(rates * slot), 0.4)), seed=slot)
        for slot in (1, 2, 4, 8)
    ]
    released = rng.normal(120, 40, (15, 5))
    guesses = {
        forecast_of(publishers=5, heavy_user=None)._heavy_user(looks, released[:slots])
        for slots in range(7, 16)
    }
    assert len(guesses) == 1


def test_a_bin_that_stands_out_of_deep_noise() -> None:
    counts = (0, 75, -30, -30, -30, *[0] * (BINS - 5))
    look = Look(8, counts, 10.0, major=True)
    assert forecast_of(heavy_user=None).choose([look], [5.0] * 7, np.ones((7, 5))) > 0


@given(
    st.lists(st.lists(st.integers(-60, 10**7), min_size=BINS, max_size=BINS), max_size=4),
    st.integers(1, 5),
    st.sampled_from([1, 2, 4000]),
    st.lists(st.lists(st.floats(-1e6, 1e7), min_size=3, max_size=3), max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_any_histogram_gives_a_sensible_allowance(
    histograms: list[list[int]], slots: int, publishers: int, released: list[list[float]]
) -> None:
    """Also the first and the last bin, no users, all users, one slot, any releases."""
    forecast = forecast_of(slots, publishers, heavy_user=None)
    looks = [
        Look(slot, tuple(counts), 5.0, major=slot in (1, 2, 4))
        for slot, counts in enumerate(histograms[:slots], start=1)
    ]
    past = [3.0] * max(0, len(looks) - 1)
    chosen = forecast.choose(looks, past, np.array(released).reshape(-1, 3))
    assert forecast.least <= chosen < 1e5


def test_users_in_the_last_bin_count() -> None:
    people = np.full(5_000, 50_000.0)
    assert forecast_of().choose([look_of(1, people)], [], NOTHING) == pytest.approx(
        EDGES[0] * 2 ** (127 / 8)
    )
