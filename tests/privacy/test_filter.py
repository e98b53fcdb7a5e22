"""The filter in integers: every user of tiny campaigns, with no tolerance; and what happens if one
of its rules is broken."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.errors import PrivacyError
from adsbpc.model import Adjacency, Layout
from adsbpc.privacy import (
    LARGEST_CELL,
    LIMIT,
    PARTS,
    Account,
    Strategy,
    Terms,
    admit,
    cost,
    filtered_squared,
    gaussian_cost,
    identity,
    largest_parts,
    optimised,
    row_scale,
    square_root,
    toeplitz,
)
from adsbpc.privacy.strategies import ONE, on_grid
from tests.mechanisms.strategies import prefix_questions

SLOTS, PUBLISHERS = 3, 2
CUT = PUBLISHERS
LAYOUT = Layout.of_publishers(["P-1", "other"])
THREE = Layout.of_publishers(["P-1", "P-2", "other"])
# A few of these weights fill a budget, one does not.
LARGE = 2**34 // 1000
WEIGHTS = (0, LARGE, 3 * LARGE)
CELLS = tuple(product(range(1, SLOTS + 1), range(PUBLISHERS)))
USERS = [
    dict(zip(CELLS, chosen, strict=True)) for chosen in product(WEIGHTS, repeat=SLOTS * PUBLISHERS)
]
STRATEGIES = {
    "identity": identity(SLOTS),
    "toeplitz": toeplitz(SLOTS, 0.3),
    "square-root": square_root(SLOTS),
    "optimised": optimised(prefix_questions(SLOTS), 0.1),
}


def terms_of(
    strategy: Strategy, slot: int, multiplier: int = 400, part: Fraction = Fraction(1)
) -> Terms:
    """Multipliers fall from slot to slot, and users are held to a part of the limit at first."""
    limit = int(LIMIT * part * slot / strategy.slots)
    return Terms(
        tuple(map(int, strategy.gram[slot - 1, :slot])),
        multiplier - 50 * slot,
        max(1, (multiplier - 50 * slot) // 4),
        limit * 19 // 20,
        limit - limit * 19 // 20,
    )


def run(
    user: dict[tuple[int, int], int], strategy: Strategy, **options: Any
) -> tuple[Account, list[dict[int, int]]]:
    account, kept = Account(), []
    for slot in range(1, strategy.slots + 1):
        asked = {p: weight for (s, p), weight in user.items() if s == slot and weight}
        kept.append(admit(account, asked, LAYOUT, terms_of(strategy, slot, **options)))
    return account, kept


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_user_costs_more_than_the_limit(name: str) -> None:
    """All 729 users, add/remove, with the cost computed from the rows of B, not from G."""
    strategy, worst = STRATEGIES[name], 0
    for user in USERS:
        account, _ = run(user, strategy)
        exact = cost(strategy, LAYOUT, account.moved)
        assert exact == sum(account.spent) <= LIMIT
        worst = max(worst, exact)
    assert worst > LIMIT * 9 // 10, "nobody came near the limit: this tests nothing"


@pytest.mark.parametrize("name", STRATEGIES)
def test_what_was_released_up_to_a_slot_costs_what_was_charged_for_it(name: str) -> None:
    """Rows up to slot t move by no more than the limit of slot t: pacing is what is charged."""
    strategy = STRATEGIES[name]
    for user in USERS[::7]:
        account, _ = run(user, strategy)
        for slot in range(1, SLOTS + 1):
            so_far = {cell: move for cell, move in account.moved.items() if cell[0] <= slot}
            assert cost(strategy, LAYOUT, so_far) <= terms_of(strategy, slot).limit


@pytest.mark.parametrize("name", STRATEGIES)
def test_substitution_costs_at_most_twice_the_limit(name: str) -> None:
    strategy = STRATEGIES[name]
    accounts = [run(user, strategy)[0] for user in USERS[:: len(USERS) // 60]]
    worst = max(distance(strategy, a, b) for a in accounts for b in accounts)
    assert worst <= filtered_squared(Adjacency.SUBSTITUTE, LIMIT) == 2 * LIMIT
    assert worst > LIMIT, "a claim of the limit for substitution must fail"


def distance(strategy: Strategy, a: Account, b: Account) -> int:
    cells = a.moved.keys() | b.moved.keys()
    return cost(
        strategy, LAYOUT, {cell: a.moved.get(cell, 0) - b.moved.get(cell, 0) for cell in cells}
    )


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_noise_pays_for_the_worst_user(adjacency: Adjacency) -> None:
    for rho in (Fraction(1), Fraction(95, 100), Fraction(1, 1000)):
        scale = row_scale(rho, adjacency)
        assert gaussian_cost(filtered_squared(adjacency, LIMIT), scale) <= rho
        assert gaussian_cost(filtered_squared(adjacency, LIMIT), scale * (1 - 1e-9)) > rho


# ---- rules that must not be broken ---------------------------------------------------------------


def test_counting_only_the_rows_so_far_fails() -> None:
    """The filter with G over the rows up to t: users pass the limit when later rows come."""
    strategy, worst = STRATEGIES["square-root"], 0
    for user in USERS:
        account = Account()
        for slot in range(1, SLOTS + 1):
            rows = strategy.matrix[:slot, :slot]
            so_far = Terms(
                tuple(map(int, (rows.T @ rows)[slot - 1])), 400 - 50 * slot, 50, LIMIT, 0
            )
            asked = {p: weight for (s, p), weight in user.items() if s == slot and weight}
            admit(account, asked, LAYOUT, so_far)
        worst = max(worst, cost(strategy, LAYOUT, account.moved))
    assert worst > LIMIT


def test_a_budget_per_publisher_fails() -> None:
    strategy = STRATEGIES["toeplitz"]
    apart = [
        run({cell: w for cell, w in USERS[-1].items() if cell[1] == publisher}, strategy)[0]
        for publisher in range(PUBLISHERS)
    ]
    together = apart[0].moved | {(s, p): m for (s, p), m in apart[1].moved.items() if p != CUT}
    assert cost(strategy, LAYOUT, together) > LIMIT


def test_changing_an_earlier_multiplier_fails() -> None:
    """What was admitted under one multiplier and counted under a larger one."""
    strategy = STRATEGIES["toeplitz"]
    account, _ = run(USERS[-1], strategy)
    raised = {cell: move * (2 if cell[0] == 1 else 1) for cell, move in account.moved.items()}
    assert cost(strategy, LAYOUT, raised) > LIMIT


def test_changing_the_strategy_after_admission_fails() -> None:
    account, _ = run(USERS[-1], STRATEGIES["identity"])
    assert cost(STRATEGIES["square-root"], LAYOUT, account.moved) > LIMIT


def test_rounding_up_fails() -> None:
    """One more part than fits, for the user at the limit."""
    strategy = STRATEGIES["toeplitz"]
    terms = terms_of(strategy, 1)
    weight = 3 * LARGE * 4
    kept = admit(Account(), {0: weight}, LAYOUT, terms)[0]
    more = weight * (kept * PARTS // weight + 2) // PARTS
    assert terms.own * (terms.multiplier * more) ** 2 > terms.kept_limit


# ---- the arithmetic ------------------------------------------------------------------------------


@given(
    square=st.integers(1, 2**100),
    cross=st.integers(0, 2**95),
    room=st.integers(-(2**40), 2**88),
)
def test_the_largest_number_of_parts_is_the_largest(square: int, cross: int, room: int) -> None:
    def fits(parts: int) -> bool:
        return square * parts**2 + 2 * cross * PARTS * parts <= room * PARTS**2

    parts = largest_parts(square, cross, room)
    assert 0 <= parts <= PARTS
    assert parts == 0 or fits(parts)
    assert parts == PARTS or not fits(parts + 1)


@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(1, 2**38)),
        max_size=12,
    ),
    st.sampled_from([1, 7, 400, 2**20]),
)
@settings(max_examples=60)
def test_any_user_stays_within_the_limit(
    cells: list[tuple[int, int, int]], multiplier: int
) -> None:
    """Weights beyond what a cell counts for, multipliers from the smallest to the largest."""
    strategy, account = toeplitz(4, 0.5), Account()
    for slot in range(1, 5):
        asked: dict[int, int] = {}
        for s, publisher, weight in cells:
            if s == slot:
                asked[publisher] = asked.get(publisher, 0) + weight
        limit = LIMIT * slot // 4
        terms = Terms(
            tuple(map(int, strategy.gram[slot - 1, :slot])),
            multiplier, max(1, multiplier // 3), limit * 19 // 20, limit // 20,
        )  # fmt: skip
        kept = admit(account, asked, THREE, terms)
        for publisher, weight in asked.items():
            assert kept[publisher] <= min(weight, LARGEST_CELL)
        assert kept[3] <= sum(asked.values())
        exact = cost(strategy, THREE, account.moved)
        assert exact == sum(account.spent) <= limit


def test_everything_fits_or_the_largest_part_does() -> None:
    strategy = identity(1)
    terms = Terms((ONE**2,), 100, 25, LIMIT * 19 // 20, LIMIT // 20)
    small, large = Account(), Account()
    assert admit(small, {0: 10, 1: 5}, LAYOUT, terms) == {0: 10, 1: 5, CUT: 0}
    kept = admit(large, {0: LARGEST_CELL, 1: 0}, LAYOUT, terms)
    # Alone, a cell may reach sqrt(limit / G_11) / m; parts of 1 / 4096 round that down.
    most = (LIMIT * 19 // 20 // ONE**2) ** 0.5 / 100
    assert most * (1 - 2 / PARTS) < kept[0] <= most
    assert kept[CUT] > 0
    assert cost(strategy, LAYOUT, large.moved) == sum(large.spent) <= LIMIT


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"costs": (5, -1)}, "below 0"),
        ({"costs": (5, 0)}, "below 0"),
        ({"multiplier": 0}, "multiplier"),
        ({"cut_multiplier": 2**21}, "multiplier"),
        ({"cut_limit": LIMIT + 1}, "limit"),
        ({"kept_limit": LIMIT, "cut_limit": 1}, "limit"),
        ({"kept_limit": -1}, "limit"),
    ],
)
def test_terms_that_break_the_proof_are_refused(change: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {
        "costs": (5, 9), "multiplier": 3, "cut_multiplier": 1, "kept_limit": 7, "cut_limit": 8,
    }  # fmt: skip
    Terms(**right)
    with pytest.raises(PrivacyError, match=words):
        Terms(**right | change)


def test_negative_contributions_are_refused() -> None:
    with pytest.raises(PrivacyError, match="below 0"):
        admit(Account(), {0: -1}, LAYOUT, terms_of(identity(3), 1))


# ---- strategies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2, 31, 120])
def test_every_strategy_has_a_gram_matrix_without_negative_entries(slots: int) -> None:
    asked = prefix_questions(slots)
    for strategy in (
        identity(slots),
        square_root(slots),
        *(toeplitz(slots, beta) for beta in (0.0, 0.3, 1.0)),
        *(optimised(asked, recurrence) for recurrence in (0.0, 2 / slots, 1.0)),
    ):
        exact = [
            [sum(row[i] * row[j] for row in strategy.rows if len(row) > max(i, j))
             for j in range(slots)] for i in range(min(slots, 3))
        ]  # fmt: skip
        assert strategy.gram[:3].tolist() == exact
        assert int(strategy.gram.min()) >= 0
        assert strategy.slots == slots


def test_the_square_root_is_the_square_root_of_prefix_sums() -> None:
    root = square_root(20).matrix.astype(np.float64)
    root /= root[0, 0]
    assert abs(root @ root - [[float(j <= i) for j in range(20)] for i in range(20)]).max() < 0.01


def test_the_optimised_strategy_beats_the_others_for_its_users() -> None:
    """Error of weighted prefix sums at the same cost for users who hardly meet a publisher
    twice."""
    asked = prefix_questions(31)

    def error(strategy: Strategy) -> float:
        typical = strategy.gram.diagonal().sum() + 2 / 31 * strategy.gram.sum()
        return float(np.trace(asked @ np.linalg.inv(strategy.gram)) * typical)

    best = error(optimised(asked, 2 / 31))
    for other in (identity(31), square_root(31), toeplitz(31, 0.3), toeplitz(31, 0.45)):
        assert best < error(other)


@pytest.mark.parametrize(
    "rows",
    [(), ((0,),), ((1,), (1,)), ((1,), (-1, 1)), ((1.0,),), ((True,),), ((2**13,),)],
    ids=str,
)
def test_what_is_no_strategy_is_refused(rows: Any) -> None:
    with pytest.raises(PrivacyError):
        Strategy(rows)


def test_negative_entries_become_zero() -> None:

    assert on_grid(np.array([[1.0, 9.0], [-0.5, 1.0]])).rows == ((ONE,), (0, ONE))
