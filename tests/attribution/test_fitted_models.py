"""Fitted models on journeys whose credits can be worked out by hand, and which parameters they
take."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import exp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.attribution import fitted_model
from adsbpc.attribution.estimation import EFFECT_PARTS, RATE_PARTS
from adsbpc.attribution.fitted import (
    CURVE,
    CoalitionRatesInOrder,
    CoalitionUnits,
    FittedModel,
    LogisticEffects,
    PairWeights,
    PublisherWeights,
    curve_at,
)
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.errors import SpecError
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Fit
from tests.attribution.fits import MODELS, any_fit, check_units, lengths, names, parameters
from tests.attribution.test_models import click, shares

LISTED = ("A", "B", "C", "other")
AB = ("A", "B", "other")


def parts(*rates: Fraction | int) -> tuple[int, ...]:
    found = [rate * RATE_PARTS for rate in map(Fraction, rates)]
    assert all(each.denominator == 1 for each in found)
    return tuple(map(int, found))


def credits_of(journey: str, model: FittedModel) -> dict[str, Fraction]:
    """A letter a touch, one an hour."""
    return shares([click(p, len(journey) - k) for k, p in enumerate(journey)], model)


def eighths(*numbers: int) -> list[Fraction]:
    return [Fraction(number, 8) for number in numbers]


# ---- weights of publishers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "journey", "expected"),
    [
        ((1, 2, 3, 4), "ABBC", {"A": Fraction(1, 6), "B": Fraction(1, 3), "C": Fraction(1, 2)}),
        ((1, 2, 3, 4), "AAAA", {"A": 1}),
        ((0, 2, 6, 4), "ABC", {"B": Fraction(1, 4), "C": Fraction(3, 4)}),
        # Nothing is known of these: equal shares, however often a publisher was met.
        ((0, 0, 3, 4), "ABB", {"A": Fraction(1, 2), "B": Fraction(1, 2)}),
        ((0, 0, 3, 4), "A", {"A": 1}),
        # X and Y are not in the list: together they are its last member, and share its credit.
        ((1, 2, 3, 4), "AXY", {"A": Fraction(1, 5), "X": Fraction(2, 5), "Y": Fraction(2, 5)}),
        ((1, 2, 3, 4), "XXXY", {"X": Fraction(1, 2), "Y": Fraction(1, 2)}),
        ((0, 2, 3, 0), "AXY", {"A": Fraction(1, 2), "X": Fraction(1, 4), "Y": Fraction(1, 4)}),
    ],
)
def test_weights_of_publishers(
    weights: tuple[int, ...], journey: str, expected: dict[str, Fraction]
) -> None:
    assert credits_of(journey, PublisherWeights(LISTED, weights)) == expected


def test_a_name_like_that_of_the_rest_is_not_listed() -> None:
    """The last member of the list is everything else, whatever it is called."""
    model = PublisherWeights(LISTED, (1, 2, 3, 4))
    journey = [click("A", 2), click("other", 1)]
    assert shares(journey, model) == {"A": Fraction(1, 5), "other": Fraction(4, 5)}


# ---- the probabilistic model --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "together", "expected"),
    [
        # V_A = 2/8 + (3/8 - 6/8) / 2 = 1/16, V_B = 4/8 - 3/16 = 5/16.
        ((2, 4), 3, {"A": Fraction(1, 6), "B": Fraction(5, 6)}),
        # V_A = 1/8 + (1/8 - 5/8) / 2 is below 0, which counts as none.
        ((1, 4), 1, {"B": 1}),
        # Together they convert more often than both alone.
        ((1, 1), 6, {"A": Fraction(1, 2), "B": Fraction(1, 2)}),
        # Both below 0: equal shares.
        ((4, 4), 0, {"A": Fraction(1, 2), "B": Fraction(1, 2)}),
    ],
)
def test_two_publishers_of_the_probabilistic_model(
    own: tuple[int, int], together: int, expected: dict[str, Fraction]
) -> None:
    more = together - sum(own)
    added = eighths(0, more, 0, more, 0, 0, 0, 0, 0)
    model = PairWeights(AB, parts(*eighths(*own, 0)), parts(*added))
    assert credits_of("AB", model) == expected
    assert credits_of("BAAB", model) == expected
    assert credits_of("A", model) == {"A": 1}


def test_three_publishers_average_over_the_two_others() -> None:
    """V_A = 4/8 - (1/8 + 2/8) / 4, V_B = 4/8 - (1/8 + 3/8) / 4, V_C = 4/8 - (2/8 + 3/8) / 4."""
    added = eighths(0, -1, -2, 0, -1, 0, -3, 0, -2, -3, 0, 0, 0, 0, 0, 0)
    model = PairWeights(LISTED, parts(*eighths(4, 4, 4, 0)), parts(*added))
    values = [Fraction(16 - 3, 32), Fraction(16 - 4, 32), Fraction(16 - 5, 32)]
    expected = {p: value / sum(values) for p, value in zip("ABC", values, strict=True)}
    found = credits_of("CAB", model)
    assert found == {p: Fraction(int(each * UNIT), UNIT) for p, each in expected.items()}


# ---- the logistic model -------------------------------------------------------------------------


def sigmoid(odds: float) -> float:
    return 1 / (1 + exp(-odds))


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        # The chance is 1/2; without A 0.12, without B the same: A has 0.38, both have half of 0.12.
        ((-2, 2, 0, 0), (0.5 - sigmoid(-2) + sigmoid(-2) / 2, sigmoid(-2) / 2)),
        # B makes it worse, so it only has its part of what nobody accounts for.
        ((-1, 2, -1, 0), (0.5 - sigmoid(-2) + sigmoid(-2) / 2, sigmoid(-2) / 2)),
        ((-2, 1, 1, 0), (0.25, 0.25)),
        # What A and B lose is more than there is: nothing is left to share.
        ((-8, 4, 4, 0), (0.5 - sigmoid(-4), 0.5 - sigmoid(-4))),
        ((-3, -2, 2, 0), (0.5 * sigmoid(-5), sigmoid(-3) - 0.5 * sigmoid(-5))),
    ],
)
def test_the_logistic_model(effects: tuple[int, ...], expected: tuple[float, float]) -> None:
    model = LogisticEffects(AB, tuple(EFFECT_PARTS * each for each in effects))
    found = credits_of("AB", model)
    whole = sum(expected)
    assert float(found["A"]) == pytest.approx(expected[0] / whole, abs=1e-5)
    assert float(found["B"]) == pytest.approx(expected[1] / whole, abs=1e-5)
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)


@given(st.lists(st.integers(-8 * EFFECT_PARTS, 8 * EFFECT_PARTS), min_size=4, max_size=4),
       st.integers(0, 3))  # fmt: skip
def test_no_credit_of_the_logistic_model_jumps(effects: list[int], which: int) -> None:
    """A small change of one effect, across 0 too, moves no more than a small part of the credit."""
    effects[which] = max(effects[which], 1 - 8 * EFFECT_PARTS)
    moved = [each - (place == which) for place, each in enumerate(effects)]
    before, after = (
        member_units(LogisticEffects(LISTED[:3], tuple(each)), [0, 1, 2])
        for each in (effects, moved)
    )
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < UNIT / 100


def test_the_curve_at_its_steps() -> None:
    steps = range(-16 * 16, 16 * 16 + 1)
    assert len(CURVE) == len(steps)
    for step, height in zip(steps, CURVE, strict=True):
        assert abs(height - 2**32 * sigmoid(step / 16)) <= 0.5 + 1e-6


@given(st.integers(-16 * EFFECT_PARTS, 16 * EFFECT_PARTS))
def test_the_curve_between_its_steps(log_odds: int) -> None:
    exact = 2**32 * sigmoid(log_odds / EFFECT_PARTS)
    assert abs(curve_at(log_odds) - exact) <= 1e-3 * exact + 1


@given(st.integers(-(2**40), 2**40), st.integers(-(2**40), 2**40))
def test_the_curve_never_falls(one: int, other: int) -> None:
    low, high = sorted([one, other])
    assert 0 < curve_at(low) <= curve_at(high) < 2**32


# ---- coalitions ---------------------------------------------------------------------------------


def test_units_of_coalitions_are_in_the_order_of_the_list() -> None:
    """A, B, the rest, A and B, A and the rest, B and the rest, all."""
    units = (UNIT, UNIT // 2, UNIT // 4, UNIT // 8, UNIT // 2, UNIT // 3, UNIT // 6, 0, UNIT,
             UNIT // 5, 0, UNIT // 10)  # fmt: skip
    model = CoalitionUnits(AB, units)
    assert credits_of("A", model) == {"A": 1}
    assert credits_of("BB", model) == {"B": Fraction(1, 2)}
    assert credits_of("X", model) == {"X": Fraction(1, 4)}
    for journey in ("AB", "BA", "BABA"):
        assert credits_of(journey, model) == {"A": Fraction(1, 8), "B": Fraction(1, 2)}
    assert credits_of("XYA", model) == {
        "A": Fraction(1, 3), "X": Fraction(1, 12), "Y": Fraction(1, 12),
    }  # fmt: skip
    assert credits_of("XB", model) == {"X": 1}
    assert credits_of("XBA", model) == {"A": Fraction(1, 5), "X": Fraction(1, 10)}


@pytest.mark.parametrize(
    ("journey", "expected"),
    [
        # Of 4/8 reached, A made 1/8 and B 2/8; one in eight converts without anybody.
        ("AB", {"A": Fraction(1, 4), "B": Fraction(1, 2)}),
        # B alone reaches 6/8, more than both; what is lost again is nobody's.
        ("BA", {"B": 1}),
        ("ABAB", {"A": Fraction(1, 4), "B": Fraction(1, 2)}),
        ("A", {"A": Fraction(1, 2)}),
        # Nobody of these adds anything to what happens anyway.
        ("X", {}),
        ("XYA", {}),
        # All of 5/8: the rest nothing, B the step from 1/8 to 3/8, A that to 5/8.
        ("XBA", {"B": Fraction(2, 5), "A": Fraction(2, 5)}),
    ],
)
def test_rates_of_coalitions_in_order(journey: str, expected: dict[str, Fraction]) -> None:
    # Nobody, A, B, the rest, A and B, A and the rest, B and the rest, all.
    rates = parts(*eighths(1, 2, 6, 1, 4, 1, 3, 5))
    assert credits_of(journey, CoalitionRatesInOrder(AB, rates)) == expected


# ---- more members than coalitions have ----------------------------------------------------------

FOURTEEN = names(14)
COALITIONS = [c for size in range(1, 7) for c in combinations(range(14), size)]


def test_a_long_journey_is_the_mean_of_its_parts() -> None:
    """All to the first of the list: of seven parts with six members each, six have it."""
    units = tuple(UNIT * (place == 0) for c in COALITIONS for place in range(len(c)))
    model = CoalitionUnits(FOURTEEN, units)
    assert model.largest == 6
    assert member_units(model, [3, 1, 4]) == [0, UNIT, 0]
    assert member_units(model, [6, 5, 0, 3, 1, 4]) == [0, 0, UNIT, 0, 0, 0]
    sevenths = [6 * UNIT // 7, UNIT // 7]
    assert member_units(model, [6, 5, 9, 3, 1, 4, 0]) == [0, 0, 0, 0, sevenths[1], 0, sevenths[0]]
    # Parts go round, so the journey's first member is in those that begin with its last.
    assert member_units(model, [0, 4, 1, 3, 9, 5, 6]) == [sevenths[0], 0, sevenths[1], 0, 0, 0, 0]


def test_equal_units_stay_equal_in_parts() -> None:
    units = tuple(UNIT // len(c) for c in COALITIONS for _ in c)
    model = CoalitionUnits(FOURTEEN, units)
    for count in range(1, 15):
        assert member_units(model, list(range(count))) == [UNIT // count] * count


def test_a_late_member_joins_those_that_came_last() -> None:
    """A coalition is worth its size: every member adds the same, the seventh to the five before."""
    rates = parts(0, *(Fraction(len(c), 8) for c in COALITIONS))
    model = CoalitionRatesInOrder(FOURTEEN, rates)
    assert member_units(model, [5, 3, 9, 1, 0, 7, 12, 13]) == [UNIT // 8] * 8
    # Worth something only with the first of the list, which is long gone for the last one.
    rates = parts(0, *(Fraction(len(c) if 0 in c else 0, 8) for c in COALITIONS))
    model = CoalitionRatesInOrder(FOURTEEN, rates)
    expected = [Fraction(1, 6)] * 6 + [Fraction(0)] * 2
    assert member_units(model, [0, 3, 9, 1, 5, 7, 12, 13]) == [int(UNIT * e) for e in expected]


# ---- parameters from a file ---------------------------------------------------------------------


def with_parameters(fit: Fit, changed: dict[str, Any]) -> Fit:
    return fit.model_copy(update={"parameters": changed})


@given(parameters(AB), st.permutations(range(3)), st.integers(1, 3))
def test_any_parameters_in_range_give_credits(fit: Fit, order: list[int], members: int) -> None:
    check_units(fitted_model(Fit.from_text(fit.to_text())), order[:members])


@given(parameters(AB), st.data())
def test_lists_of_another_length_are_refused(fit: Fit, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(fit.parameters)))
    numbers = fit.parameters[name]
    length = data.draw(st.integers(0, 2 * len(numbers)).filter(lambda k: k != len(numbers)))
    changed = (numbers * 2)[:length]
    message = f"parameters of {fit.model}: {name} has {length} numbers, and 3 publishers need"
    with pytest.raises(SpecError, match=message):
        fitted_model(with_parameters(fit, {**fit.parameters, name: changed}))


@pytest.mark.parametrize(("model", "order"), MODELS)
def test_missing_lists_are_refused(model: str, order: int) -> None:
    fit = any_fit(model, order, AB, seed=1)
    for name in fit.parameters:
        rest = {key: numbers for key, numbers in fit.parameters.items() if key != name}
        with pytest.raises(SpecError, match=f"parameters of {model}: {name} has 0 numbers"):
            fitted_model(with_parameters(fit, rest))


@given(parameters(AB), st.data())
def test_any_other_number_is_refused_or_gives_credits(fit: Fit, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(fit.parameters)))
    numbers = list(fit.parameters[name])
    _, least, most = lengths(fit.model, 3)[name]
    if name == "units":
        most = UNIT
    place = data.draw(st.integers(0, len(numbers) - 1))
    numbers[place] = data.draw(
        st.integers(-(2**70), 2**70) | st.sampled_from([least - 1, most + 1, least, most])
    )
    changed = with_parameters(fit, {**fit.parameters, name: tuple(numbers)})
    if not least <= numbers[place] <= most:
        with pytest.raises(SpecError, match=f"{fit.model}: {name} has {numbers[place]}, outside"):
            fitted_model(changed)
        return
    try:
        model = fitted_model(changed)
    except SpecError as error:
        assert name == "units"
        assert "the units of publishers" in str(error)  # noqa: PT017 - not always refused
        return
    for members in ([0], [1, 0], [2, 0, 1]):
        check_units(model, members)


@pytest.mark.parametrize(("model", "order"), MODELS)
def test_the_ends_of_each_range(model: str, order: int) -> None:
    fit = any_fit(model, order, AB, seed=1)
    for name, (count, least, most) in lengths(model, 3).items():
        highest = UNIT if name == "units" else most
        for number in (least, most):
            fitted_model(with_parameters(fit, {**fit.parameters, name: (number,) * count}))
        for number in (least - 1, highest + 1):
            changed = (number, *fit.parameters[name][1:])
            with pytest.raises(SpecError, match=f"{model}: {name} has {number}, outside"):
                fitted_model(with_parameters(fit, {**fit.parameters, name: changed}))


def test_units_that_add_up_to_more_than_a_conversion_are_refused() -> None:
    fit = any_fit("shapley", 1, AB, seed=1)
    units = list(fit.parameters["units"])
    units[3:5] = [UNIT // 2, UNIT // 2]
    fitted_model(with_parameters(fit, {"units": tuple(units)}))
    units[3] += 1
    with pytest.raises(SpecError, match=r"units of publishers \(0, 1\) add up to more than"):
        fitted_model(with_parameters(fit, {"units": tuple(units)}))


@pytest.mark.parametrize("number", ["0.5", "NaN", "Infinity", '"many"', "null", "[1]"])
def test_numbers_that_are_not_whole_are_refused(number: str) -> None:
    text = any_fit("markov", 1, AB, seed=1).to_text()
    fit = Fit.from_text(text)
    first = str(fit.parameters["weights"][0])
    assert text.count(first) == 1
    with pytest.raises(ValueError, match="weights"):
        Fit.from_text(text.replace(first, number))
