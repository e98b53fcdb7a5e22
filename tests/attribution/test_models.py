"""Models on journeys whose credits can be worked out by hand."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.attribution import (
    AttributionModel,
    DistinctPublishers,
    FirstTouch,
    Journeys,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
)
from adsbpc.attribution.models import decay_weight
from adsbpc.attribution.reference import Conversion, Impression, attribute
from adsbpc.model import UNITS_PER_CONVERSION, SlotGrid

HOUR = 3_600_000_000
GRID = SlotGrid(date(2026, 3, 27), 5, "1d", "Europe/Berlin")
NOON = GRID.starts_at + 12 * HOUR
JOURNEYS = Journeys(click_lookback=48 * HOUR, view_lookback=24 * HOUR, max_touches=4)


def shares(impressions: list[Impression], model: AttributionModel) -> dict[str, Fraction]:
    """Credits of one conversion at noon."""
    conversion = Conversion("u", "c", NOON, NOON)
    found = attribute(impressions, [conversion], GRID, JOURNEYS, model, 1)
    return {c.publisher_id: Fraction(c.credit_units, UNITS_PER_CONVERSION) for c in found}


def click(publisher: str, hours_before: int) -> Impression:
    return Impression("u", publisher, NOON - hours_before * HOUR, True)


def view(publisher: str, hours_before: int) -> Impression:
    return Impression("u", publisher, NOON - hours_before * HOUR, False)


JOURNEY = [click("A", 9), click("B", 6), click("B", 3), click("C", 1)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LastTouch(), {"C": 1}),
        (FirstTouch(), {"A": 1}),
        (Uniform(), {"A": Fraction(1, 4), "B": Fraction(1, 2), "C": Fraction(1, 4)}),
        (Position(0.4, 0.4), {"A": Fraction(2, 5), "B": Fraction(1, 5), "C": Fraction(2, 5)}),
        (Position(1, 0), {"A": 1}),
        (Position(0, 0), {"B": 1}),
        (DistinctPublishers(), {"A": Fraction(1, 3), "B": Fraction(1, 3), "C": Fraction(1, 3)}),
    ],
)
def test_a_journey_of_four(model: AttributionModel, expected: dict[str, Fraction]) -> None:
    assert shares(JOURNEY, model) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Position(0.4, 0.4), {"A": Fraction(1, 2), "B": Fraction(1, 2)}),
        (Position(0.6, 0.2), {"A": Fraction(3, 4), "B": Fraction(1, 4)}),
        (Position(0, 0), {"A": Fraction(1, 2), "B": Fraction(1, 2)}),
    ],
)
def test_position_shares_the_rest_between_two(
    model: Position, expected: dict[str, Fraction]
) -> None:
    assert shares([click("A", 2), click("B", 1)], model) == expected


def test_time_decay_halves_with_every_half_life() -> None:
    # Ages from the newest touch: 0, 1 and 2 half-lives weigh 4 : 2 : 1.
    journey = [click("A", 15), click("B", 8), click("C", 1)]
    model = TimeDecay(half_life=7 * HOUR)
    assert shares(journey, model) == {
        "A": Fraction(1, 7),
        "B": Fraction(2, 7),
        "C": Fraction(4, 7),
    }


def test_time_decay_forgets_touches_of_very_long_ago() -> None:
    assert shares([click("A", 40), click("B", 1)], TimeDecay(half_life=HOUR // 2)) == {"B": 1}


@given(st.integers(0, 10**13), st.integers(1, 10**13))
def test_decay_weights_follow_the_exponential(age: int, half_life: int) -> None:
    exact = 2**20 * 2.0 ** (-age / half_life)
    assert decay_weight(age, half_life) <= exact * 2 ** (1 / 64) + 1
    assert decay_weight(age, half_life) >= exact * (1 - 1e-6) - 1.5


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**12))
def test_older_touches_never_weigh_more(a: int, b: int, half_life: int) -> None:
    older, newer = max(a, b), min(a, b)
    assert decay_weight(older, half_life) <= decay_weight(newer, half_life)


def test_lookbacks_are_apart_for_clicks_and_views() -> None:
    assert shares([click("A", 48)], LastTouch()) == {"A": 1}
    assert shares([click("A", 49)], LastTouch()) == {}
    assert shares([view("A", 24)], LastTouch()) == {"A": 1}
    assert shares([view("A", 25), click("B", 47)], LastTouch()) == {"B": 1}


def test_a_touch_at_the_same_instant_is_not_earlier() -> None:
    assert shares([click("A", 0)], LastTouch()) == {}


def test_a_later_touch_never_counts() -> None:
    assert shares([click("A", -1)], FirstTouch()) == {}


def test_only_the_latest_touches_make_the_journey() -> None:
    journey = [click("A", 10), *JOURNEY]
    assert shares(journey, FirstTouch()) == {"A": 1}
    assert shares([click("Z", 11), *JOURNEY], FirstTouch()) == {"A": 1}
    assert "Z" not in shares([click("Z", 11), *JOURNEY], Uniform())


def test_ties_go_by_publisher() -> None:
    tied = [click("B", 1), click("A", 1)]
    assert shares(tied, LastTouch()) == {"B": 1}
    assert shares(tied, FirstTouch()) == {"A": 1}
    assert shares(tied[::-1], LastTouch()) == {"B": 1}


@given(st.integers(1, 16))
def test_equal_shares_are_exact_up_to_sixteen(k: int) -> None:
    assert UNITS_PER_CONVERSION % k == 0
