"""Removal effects on chains worked by hand, and against ChannelAttribution, which simulates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.attribution.counts import Transitions
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.attribution.games import Reals
from adsbpc.attribution.markov import removal_effects
from tests.attribution import channel_attribution
from tests.attribution.channel_attribution import CASES, MISSING_ORACLE, ORDERS, Paths

Journeys = Iterable[tuple[str, float, float]]


def counted(counts: Transitions, channels: str, journeys: Journeys) -> Reals:
    """Counts of journeys, a letter a touch, with how many converted and did not."""
    values = np.zeros(len(counts.cells))
    for journey, converting, others in journeys:
        touches = [channels.index(letter) for letter in journey]
        for number, converted in ((converting, True), (others, False)):
            for cell, amount in cells_of(counts, touches, converted).items():
                values[counts.positions[cell]] += number * amount
    return values


def effects(channels: str, journeys: Journeys, order: int = 1) -> list[float]:
    counts = Transitions(len(channels), order=order)
    return list(removal_effects(counts, counted(counts, channels, journeys), noise=0.0))


# A leads to B for half of the journeys. B converts in 3 of 6: of its own 4 starts and of 2 from A.
# All: A starts 4 of 8, converts 1/4 itself; B is reached by 4/8 + 4/8 * 2/4 = 3/4, converts 1/2.
TWO = [("A", 1, 1), ("AB", 1, 1), ("B", 2, 2)]


def test_two_channels_by_hand() -> None:
    whole = Fraction(4, 8) * (Fraction(1, 4) + Fraction(2, 4) * Fraction(1, 2)) + Fraction(1, 4)
    assert whole == Fraction(1, 2)
    without_a = Fraction(4, 8) * Fraction(1, 2)
    without_b = Fraction(4, 8) * Fraction(1, 4)
    expected = [float(1 - without_a / whole), float(1 - without_b / whole)]
    assert expected == [0.5, 0.75]
    assert effects("AB", TWO) == pytest.approx(expected, abs=1e-8)


def test_a_loop_is_walked_for_ever() -> None:
    """From A to B and back: the chance at A is a = 1/4 + 2/4 b, and that at B is b = 1/2 a."""
    loop = [("A", 1, 0), ("ABA", 0, 1), ("AB", 0, 1)]
    # A is left 4 times: 1 converts, 1 ends, 2 go on. B is left twice: 1 goes back, 1 ends.
    chance = Fraction(1, 4) / (1 - Fraction(2, 4) * Fraction(1, 2))
    assert chance == Fraction(1, 3)
    assert effects("AB", loop) == pytest.approx([1.0, float(1 - Fraction(1, 4) / chance)], abs=1e-8)


def test_order_two_tells_where_a_journey_came_from() -> None:
    """B converts after A only: with one touch of memory that is known, without it is not."""
    journeys = [("AB", 4, 0), ("CB", 0, 4)]
    assert effects("ABC", journeys, order=1) == pytest.approx([0.5, 1.0, 0.5], abs=1e-8)
    assert effects("ABC", journeys, order=2) == pytest.approx([1.0, 1.0, 0.0], abs=1e-8)


def test_order_three_by_hand() -> None:
    """ABC is the start of both longer journeys; whether D or A follows decides."""
    journeys = [("ABCD", 3, 1), ("ABCA", 1, 3), ("B", 2, 2)]
    whole = Fraction(6, 12)
    without_d = Fraction(8, 12) * Fraction(4, 8) * Fraction(1, 4) + Fraction(4, 12) * Fraction(2, 4)
    without_a = Fraction(4, 12) * Fraction(2, 4)
    expected = [1 - without_a / whole, 1, 1 - without_a / whole, 1 - without_d / whole]
    assert effects("ABCD", journeys, order=3) == pytest.approx(
        [float(each) for each in expected], abs=1e-8
    )


@pytest.mark.parametrize("order", ORDERS)
def test_runs_of_one_publisher_are_one_stage(order: int) -> None:
    repeated = [("AAA", 1, 1), ("ABBB", 1, 1), ("BB", 2, 2)]
    assert effects("AB", repeated, order) == pytest.approx(effects("AB", TWO, order), abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_a_publisher_never_seen_has_no_effect(order: int) -> None:
    assert effects("ABZ", TWO, order) == pytest.approx([*effects("AB", TWO, order), 0.0], abs=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_without_conversions_nothing_is_lost(order: int) -> None:
    assert effects("AB", [("AB", 0, 9), ("B", 0, 1)], order) == [0.0, 0.0]
    assert effects("AB", [], order) == [0.0, 0.0]


@pytest.mark.parametrize("order", ORDERS)
def test_if_everybody_converts_only_meeting_a_publisher_matters(order: int) -> None:
    everybody = [("A", 3, 0), ("AB", 2, 0), ("B", 5, 0)]
    assert effects("AB", everybody, order) == pytest.approx([0.5, 0.7], abs=1e-8)


def without_memory(users: int) -> list[tuple[str, float, float]]:
    """Journeys of up to six stages in which only the latest stage decides what comes next."""
    moving = {"A": {"B": 0.3, "C": 0.2}, "B": {"A": 0.2, "C": 0.2}, "C": {"A": 0.1, "B": 0.3}}
    converting = {"A": 0.1, "B": 0.05, "C": 0.2}

    def walk(journey: str, people: float) -> list[tuple[str, float, float]]:
        latest = journey[-1]
        ending = people * (1 - sum(moving[latest].values()))
        converted = people * converting[latest]
        found = [(journey, converted, ending - converted)]
        for stage, chance in moving[latest].items() if len(journey) < 6 else ():
            found += walk(journey + stage, people * chance)
        return found

    return walk("A", users * 0.5) + walk("B", users * 0.3) + walk("C", users * 0.2)


@pytest.mark.parametrize("noise", [100.0, 300.0, 1_000.0])
@pytest.mark.parametrize("order", [2, 3])
def test_long_states_lean_on_shorter_ones_as_far_as_noise_asks(order: int, noise: float) -> None:
    """Where memory tells nothing, leaning on less of it can only take noise away."""
    counts = Transitions(3, order=order)
    exact = counted(counts, "ABC", without_memory(20_000))
    expected = removal_effects(counts, exact, 0.0)
    random = np.random.default_rng(3)
    noisy = [exact + random.normal(0.0, noise, len(exact)) for _ in range(20)]
    leaning = [removal_effects(counts, values, noise) for values in noisy]
    taken_as_exact = [removal_effects(counts, values, 0.0) for values in noisy]
    assert np.abs(leaning - expected).mean() < 0.97 * np.abs(taken_as_exact - expected).mean()


@given(st.data(), st.sampled_from(ORDERS), st.integers(1, 4))
def test_any_counts_give_shares(data: st.DataObject, order: int, players: int) -> None:
    """Negative, huge, all the same: effects are numbers from 0 to 1."""
    counts = Transitions(players, order=order)
    some = data.draw(st.lists(st.integers(-(10**12), 10**12) | st.integers(-3, 3), min_size=1))
    random = data.draw(st.randoms(use_true_random=False))
    values = np.array([random.choice(some) for _ in counts.cells], dtype=float)
    found = removal_effects(counts, values, data.draw(st.sampled_from([0.0, 1.0, 100.0])))
    assert ((found >= 0) & (found <= 1)).all()


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(channel_attribution.KEPT.read_text(encoding="utf-8"))
    return found


def check_against_oracle(
    name: str, order: int, oracle: Callable[[Paths], dict[str, float]], tolerance: float
) -> None:
    paths = CASES[name]
    channels = "".join(sorted({letter for path in paths for letter in path.split(">")}))
    journeys = [(path.replace(">", ""), *numbers) for path, numbers in paths.items()]
    expected = oracle(paths)
    assert sorted(expected) == list(channels)
    assert effects(channels, journeys, order) == pytest.approx(
        [expected[channel] for channel in channels], abs=tolerance
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_agreement_with_kept_answers_of_channel_attribution(name: str, order: int) -> None:
    answers = kept()
    assert {path: list(numbers) for path, numbers in CASES[name].items()} == answers["cases"][name]
    check_against_oracle(
        name, order, lambda _: answers["removal_effects"][name][str(order)], tolerance=0.002
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_agreement_with_channel_attribution_live(name: str, order: int) -> None:
    if find_spec("ChannelAttribution") is None:
        pytest.skip(MISSING_ORACLE)
    check_against_oracle(
        name,
        order,
        lambda paths: channel_attribution.oracle(paths, order, channel_attribution.QUICK),
        tolerance=0.02,
    )
