"""Estimators without noise against plain formulas, worked from lists of users."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, permutations
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from adsbpc.attribution.comparison import COMPARED, model_shares
from adsbpc.attribution.counts import Coalitions, Pairs, Transitions, count_set
from adsbpc.attribution.estimation import EFFECT_PARTS, RATE_PARTS, Counted, estimate
from adsbpc.attribution.fits import fitted_model
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.attribution.rates import rate, total_rate
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Fit
from tests.attribution.fits import User, exact_counts, fit_from, names

PLAYERS = 3
EVERY_COALITION = [
    members for size in range(1, PLAYERS + 1) for members in combinations(range(PLAYERS), size)
]

journeys = st.lists(st.integers(0, PLAYERS - 1), min_size=1, max_size=5).map(tuple)
crowds = st.lists(st.tuples(journeys, st.booleans()), min_size=1, max_size=60)
held_out_groups = st.lists(st.booleans(), max_size=20)


def rate_of(outcomes: list[bool], otherwise: float = 0.0) -> float:
    """How often users convert."""
    return sum(outcomes) / len(outcomes) if outcomes else otherwise


def parts(numbers: Iterable[int]) -> list[float]:
    return [number / RATE_PARTS for number in numbers]


def near(numbers: Iterable[float]) -> object:
    """What parameters are, to the part that they are rounded to."""
    return pytest.approx(list(numbers), abs=2 / RATE_PARTS)


# ---- the probabilistic model of Shao and Li, and incremental values -----------------------------


def saw(users: list[User], *players: int) -> list[bool]:
    return [converted for journey, converted in users if set(players) <= set(journey)]


@given(crowds)
def test_rates_of_shao_and_li(users: list[User]) -> None:
    """P(y | x_i) is a share of users who saw i; P(y | x_i, x_j) of those who saw both. For what
    nobody saw, the nearest that is known stands in."""
    counted = exact_counts(Pairs(PLAYERS), users)
    everybody = rate_of([converted for _, converted in users], 0.0)
    expected = [rate_of(saw(users, p), everybody) for p in range(PLAYERS)]
    found = estimate("probabilistic", 2, counted)
    assert parts(found["rates"]) == near(expected)
    for one, other in permutations(range(PLAYERS), 2):
        either = 1 - (1 - expected[one]) * (1 - expected[other])
        together = rate_of(saw(users, one, other), either)
        added = found["added"][one * PLAYERS + other] / RATE_PARTS
        assert added == pytest.approx(together - expected[one] - expected[other], abs=1e-8)


@pytest.mark.parametrize("order", [1, 2])
@given(users=crowds)
def test_credits_of_shao_and_li(order: int, users: list[User]) -> None:
    """V(x_i) = P(y|x_i) + 1 / (2 N_j) sum over j of P(y|x_i,x_j) - P(y|x_i) - P(y|x_j), of second
    order, worked for journeys that somebody had."""
    seen = sorted({player for journey, _ in users for player in journey})
    single = {p: rate_of(saw(users, p)) for p in seen}
    model = fitted_model(fit_of_users("probabilistic", order, users))
    for members in {tuple(dict.fromkeys(journey)) for journey, _ in users}:
        weights = []
        for one in members:
            others = [other for other in members if other != one]
            pairs = [rate_of(saw(users, one, j)) - single[one] - single[j] for j in others]
            more = sum(pairs) / (2 * len(others)) if order == 2 and others else 0.0
            weights.append(max(0.0, single[one] + more))
        if sum(weights) > 1e-6:
            expected = [UNIT * weight / sum(weights) for weight in weights]
            assert member_units(model, members) == pytest.approx(expected, abs=2)


def fit_of_users(model: str, order: int, users: list[User], held_out: Iterable[bool] = ()) -> Fit:
    group = list(held_out)
    counts = count_set(model, order, PLAYERS, holdout=bool(group))
    values = exact_counts(counts, users, group).values.astype(np.int64)
    return fit_from(model, order, values, names(PLAYERS), holdout=bool(group))


@given(crowds, held_out_groups)
def test_incremental_values(users: list[User], held_out: list[bool]) -> None:
    """How often everybody converts who saw anything, less how often those do who did not see a
    publisher; the holdout group saw none."""
    everybody = rate_of([converted for _, converted in users])
    expected = []
    for player in range(PLAYERS):
        unseen = [converted for journey, converted in users if player not in journey]
        expected.append(max(0.0, everybody - rate_of(unseen + held_out, everybody)))
    counted = exact_counts(Pairs(PLAYERS, holdout=True), users, held_out)
    assert parts(estimate("incremental_value", 1, counted)["weights"]) == near(expected)


# ---- coalitions: rates, Shapley values, the logistic model --------------------------------------


def full_crowd(seed: int, players: int = PLAYERS) -> list[User]:
    """Users who saw every coalition, some of whom converted and some did not."""
    random = np.random.default_rng(seed)
    found: list[User] = []
    for size in range(1, players + 1):
        for members in combinations(range(players), size):
            converting, others = random.integers(1, 40, 2).tolist()
            found += [(members, True)] * converting + [(members, False)] * others
    return found


def hundred(journey: tuple[int, ...], converting: int) -> list[User]:
    return [(journey, number < converting) for number in range(100)]


def group_of_thousand(baseline: float | None) -> list[bool]:
    """A holdout group of which a part converts; nobody if there is none."""
    return [] if baseline is None else [k < 1_000 * baseline for k in range(1_000)]


def exactly(users: list[User], members: Iterable[int]) -> float:
    return rate_of([converted for journey, converted in users if set(journey) == set(members)])


@pytest.mark.parametrize("seed", range(5))
def test_a_coalition_is_worth_how_often_users_convert_who_saw_exactly_it(seed: int) -> None:
    users = full_crowd(seed)
    counted = exact_counts(Coalitions(PLAYERS), users)
    raw = [exactly(users, members) for members in EVERY_COALITION]
    assert parts(estimate("shapley_ordered", 1, counted)["rates"]) == near([0.0, *raw])


def shapley_by_orders(worth: dict[frozenset[int], float], members: tuple[int, ...]) -> list[float]:
    sums = dict.fromkeys(members, 0.0)
    orders = list(permutations(members))
    for order in orders:
        for place, member in enumerate(order):
            sums[member] += worth[frozenset(order[: place + 1])] - worth[frozenset(order[:place])]
    return [sums[member] / len(orders) for member in members]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("baseline", [None, 0.1, 0.5])
def test_units_follow_shapley_values_of_raw_rates(seed: int, baseline: float | None) -> None:
    users = full_crowd(seed, 4)
    held_out = group_of_thousand(baseline)
    counts = Coalitions(4, holdout=baseline is not None)
    units = iter(estimate("shapley", 1, exact_counts(counts, users, held_out))["units"])
    coalitions = [c for size in range(1, 5) for c in combinations(range(4), size)]
    worth = {frozenset(each): exactly(users, each) for each in coalitions}
    worth[frozenset()] = baseline or 0.0
    for members in coalitions:
        values = [max(0.0, value) for value in shapley_by_orders(worth, members)]
        whole = max(sum(values), worth[frozenset(members)])
        expected = (
            [UNIT * value / whole for value in values]
            if whole > 0
            else [UNIT / len(members)] * len(members)
        )
        assert [next(units) for _ in members] == pytest.approx(expected, abs=2)
    assert next(units, None) is None


def test_a_holdout_group_leaves_part_of_the_credit_to_nobody() -> None:
    """One in ten would have bought anyway: of four conversions in ten, publishers made three."""
    users = hundred((0,), 40) + hundred((0, 1), 60)
    held_out = [k < 10 for k in range(100)]
    with_group = fitted_model(fit_of_users("shapley", 1, users, held_out))
    assert member_units(with_group, [0]) == pytest.approx([UNIT * 3 / 4], abs=2)
    assert sum(member_units(with_group, [0, 1])) == pytest.approx(UNIT * 5 / 6, abs=4)
    assert member_units(fitted_model(fit_of_users("shapley", 1, users)), [0]) == [UNIT]
    ordered = fitted_model(fit_of_users("shapley_ordered", 1, users, held_out))
    assert member_units(ordered, [0, 1]) == pytest.approx([UNIT * 3 / 6, UNIT * 2 / 6], abs=2)


@pytest.mark.parametrize("converted", [12, 11, 10, 9, 0])
def test_who_adds_little_is_not_worse_off_than_who_adds_nothing(converted: int) -> None:
    """One in ten would have bought anyway."""
    users = hundred((0,), converted) + hundred((1,), 30)
    held_out = [k < 10 for k in range(100)]
    for name in ("shapley", "shapley_ordered"):
        (units,) = member_units(fitted_model(fit_of_users(name, 1, users, held_out)), [0])
        expected = UNIT * max(0, converted - 10) / max(converted, 1) if converted else UNIT
        assert units == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_group", [False, True])
def test_logistic_effects_are_the_most_likely_ones(seed: int, with_group: bool) -> None:
    """Against a general optimiser on the likelihood of every single user."""
    users = full_crowd(seed)
    held_out = [k < 20 for k in range(150)] if with_group else []
    rows = np.array(
        [[1.0, *(float(p in journey) for p in range(PLAYERS))] for journey, _ in users]
        + [[1.0] + [0.0] * PLAYERS for _ in held_out]
    )
    outcomes = np.array([converted for _, converted in users] + held_out, dtype=float)

    def surprise(effects: np.ndarray) -> float:
        odds = rows @ effects
        return float((np.logaddexp(0.0, odds) - outcomes * odds).sum())

    expected = minimize(surprise, np.zeros(PLAYERS + 1), method="BFGS", options={"gtol": 1e-6}).x
    counted = exact_counts(Coalitions(PLAYERS, holdout=with_group), users, held_out)
    found = np.array(estimate("logistic", 1, counted)["effects"]) / EFFECT_PARTS
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_logistic_effects_of_a_publisher_never_seen_are_none() -> None:
    users = hundred((0,), 20) + hundred((0, 1), 50)
    found = estimate("logistic", 1, exact_counts(Coalitions(3), users))["effects"]
    assert found[3] == 0
    log_odds = (found[0] + found[1]) / EFFECT_PARTS
    assert log_odds == pytest.approx(log(20 / 80), abs=1e-4)
    assert found[2] / EFFECT_PARTS == pytest.approx(log(50 / 50) - log(20 / 80), abs=1e-4)


def test_rates_of_coalitions_that_nobody_saw_follow_the_logistic_model() -> None:
    users = hundred((0,), 20) + hundred((1,), 50)
    counted = exact_counts(Coalitions(2), users)
    effects = [each / EFFECT_PARTS for each in estimate("logistic", 1, counted)["effects"]]
    rates = parts(estimate("shapley_ordered", 1, counted)["rates"])
    assert rates == pytest.approx([0.0, 0.2, 0.5, 1 / (1 + exp(-sum(effects)))], abs=1e-4)


# ---- the comparison -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("baseline", [None, 0.1, 0.5])
def test_shares_are_those_of_the_credits_of_converting_journeys(
    seed: int, baseline: float | None
) -> None:
    """The comparison works with sums of floats; here every conversion is credited by itself."""
    users, held_out = full_crowd(seed), group_of_thousand(baseline)
    shares = model_shares(exact_counts(Coalitions(PLAYERS, bool(held_out)), users, held_out))
    assert {model for model, _ in shares} == set(COMPARED["coalitions"])
    for name in COMPARED["coalitions"]:
        order = 2 if name == "probabilistic" else 1
        model = None
        if name != "shapley_path":
            model = fitted_model(fit_of_users(name, order, users, held_out))
        totals = np.zeros(PLAYERS)
        for members in [list(journey) for journey, converted in users if converted]:
            totals[members] += member_units(model, members) if model else UNIT / len(members)
        found = [shares[name, player] for player in range(PLAYERS)]
        # Of all conversions: what a holdout group would have done anyway is nobody's.
        conversions = UNIT * sum(converted for journey, converted in users if journey)
        assert found == pytest.approx((totals / conversions).tolist(), abs=1e-3)


@given(crowds)
def test_last_touches_are_counted_from_transitions(users: list[User]) -> None:
    for order in (1, 2, 3):
        shares = model_shares(exact_counts(Transitions(PLAYERS, order=order), users))
        last = [journey[-1] for journey, converted in users if converted]
        expected = [last.count(p) / max(len(last), 1) for p in range(PLAYERS)]
        assert [shares["last_touch", p] for p in range(PLAYERS)] == pytest.approx(expected)


# ---- rates --------------------------------------------------------------------------------------

# Counts are whole numbers of parts of a user.
amounts = st.integers(-(2**50), 2**50).map(lambda units: units / 2**20)


def one_rate(converting: float, users: float, expected: float, noise: float) -> float:
    return float(rate(np.array([converting]), np.array([users]), np.array([expected]), noise)[0])


@given(amounts, amounts, st.floats(-1, 2), st.floats(0, 1e6))
def test_rates_stay_between_none_and_all(
    converting: float, users: float, expected: float, noise: float
) -> None:
    assert 0 <= one_rate(converting, users, expected, noise) <= 1


@given(st.integers(0, 10**9), st.integers(1, 10**9), st.floats(0, 1))
def test_without_noise_a_rate_is_the_plain_one(some: int, more: int, expected: float) -> None:
    assert one_rate(some, some + more, expected, 0.0) == pytest.approx(some / (some + more))


@given(amounts.map(lambda users: -abs(users)), amounts, st.floats(0, 1), st.floats(0, 1e6))
def test_without_users_a_rate_is_what_is_expected(
    users: float, converting: float, expected: float, noise: float
) -> None:
    assert one_rate(converting, users, expected, noise) == expected


@given(st.integers(1, 10**6), st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0, 1e4))
def test_with_more_noise_a_rate_moves_to_what_is_expected(
    users: int, plain: float, expected: float, noise: float
) -> None:
    near_by = one_rate(plain * users, users, expected, noise)
    further = one_rate(plain * users, users, expected, 2 * noise)
    low, high = sorted([plain, expected])
    assert low - 1e-9 <= near_by <= high + 1e-9
    assert abs(further - expected) <= abs(near_by - expected) + 1e-9
    assert one_rate(plain * users, users, expected, 1e15) == pytest.approx(expected)


def test_rates_have_no_lean_to_one_side() -> None:
    """Unlike counts that are cut off at 0."""
    noise = np.random.default_rng(5).normal(0.0, 40.0, (2, 100_000))
    users, converting = 1_000 + noise[0] + noise[1], 20 + noise[1]
    found = rate(converting, users, np.full(100_000, 0.02), 40.0)
    assert found.mean() == pytest.approx(0.02, rel=0.02)


def test_total_rates() -> None:
    assert total_rate(1, 4) == 0.25
    assert [total_rate(5, 4), total_rate(-1, 4)] == [1, 0]
    assert [total_rate(3, 0), total_rate(3, -2)] == [0, 0]


def test_there_is_no_estimator_for_other_models() -> None:
    with pytest.raises(TypeError, match="last_touch"):
        estimate("last_touch", 1, Counted(Pairs(2), np.zeros(8), 0.0))
