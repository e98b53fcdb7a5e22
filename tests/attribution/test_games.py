"""Shapley values against the textbook, and the four axioms that no other values meet."""

from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.attribution.games import dividends, shapley_values

Game = list[float]

values = st.floats(-1, 1).map(lambda value: round(value, 6))


@st.composite
def games(draw: st.DrawFn, least: int = 2, most: int = 5) -> Game:
    """A value for each coalition of 2 to 5 players, whose members are the bits of its place."""
    players = draw(st.integers(least, most))
    return draw(st.lists(values, min_size=1 << players, max_size=1 << players))


@st.composite
def two_games(draw: st.DrawFn) -> tuple[Game, Game]:
    game = draw(games())
    return game, draw(st.lists(values, min_size=len(game), max_size=len(game)))


def players_of(game: Game) -> int:
    return len(game).bit_length() - 1


def shapley(game: Game) -> list[float]:
    found: list[float] = shapley_values(np.array([game], dtype=float))[0].tolist()
    return found


def by_orders(game: Game) -> list[float]:
    """What a player adds when it comes, on average over all orders of arrival (Shapley 1953)."""
    players = players_of(game)
    sums = [0.0] * players
    for order in permutations(range(players)):
        present = 0
        for player in order:
            sums[player] += game[present | 1 << player] - game[present]
            present |= 1 << player
    return [total / factorial(players) for total in sums]


def by_coalitions(game: Game) -> list[float]:
    """The closed form: |S|! (n - |S| - 1)! / n! times what the player adds to S."""
    players = players_of(game)
    return [
        sum(
            factorial(size := others.bit_count())
            * factorial(players - size - 1)
            / factorial(players)
            * (game[others | 1 << player] - game[others])
            for others in range(len(game))
            if not others >> player & 1
        )
        for player in range(players)
    ]


@given(games(least=1))
def test_the_textbook_over_orders_and_over_coalitions(game: Game) -> None:
    assert shapley(game) == pytest.approx(by_orders(game), abs=1e-12)
    assert shapley(game) == pytest.approx(by_coalitions(game), abs=1e-12)


@given(games())
def test_efficiency(game: Game) -> None:
    assert sum(shapley(game)) == pytest.approx(game[-1] - game[0], abs=1e-12)


@given(games(), st.data())
def test_symmetry(game: Game, data: st.DataObject) -> None:
    """Two players that add the same to every coalition of others get the same."""
    one, other = data.draw(st.permutations(range(players_of(game))))[:2]
    for coalition in range(len(game)):
        if coalition >> other & 1 and not coalition >> one & 1:
            game[coalition] = game[coalition ^ (1 << one | 1 << other)]
    found = shapley(game)
    assert found[one] == pytest.approx(found[other], abs=1e-12)


@given(games(), st.data(), values)
def test_a_dummy_gets_what_it_always_adds(game: Game, data: st.DataObject, added: float) -> None:
    dummy = data.draw(st.integers(0, players_of(game) - 1))
    for coalition in range(len(game)):
        if coalition >> dummy & 1:
            game[coalition] = game[coalition ^ 1 << dummy] + added
    assert shapley(game)[dummy] == pytest.approx(added, abs=1e-12)


@given(two_games(), values)
def test_additivity(pair: tuple[Game, Game], factor: float) -> None:
    one, other = (np.array(game) for game in pair)
    together = shapley(list(one + factor * other))
    expected = np.array(shapley(list(one))) + factor * np.array(shapley(list(other)))
    assert together == pytest.approx(expected.tolist(), abs=1e-12)


@given(games(), st.data())
def test_names_do_not_matter(game: Game, data: st.DataObject) -> None:
    """Anonymity: with the players in another order, each keeps its value."""
    players = players_of(game)
    order = data.draw(st.permutations(range(players)))
    renamed = [
        game[sum(1 << order[player] for player in range(players) if coalition >> player & 1)]
        for coalition in range(len(game))
    ]
    found = shapley(game)
    assert shapley(renamed) == pytest.approx([found[player] for player in order], abs=1e-12)


@given(two_games())
def test_many_games_at_once_are_each_their_own(pair: tuple[Game, Game]) -> None:
    for found, game in zip(shapley_values(np.array(pair)), pair, strict=True):
        assert found.tolist() == pytest.approx(shapley(game), abs=1e-12)


@given(games(least=1))
def test_a_coalition_is_worth_the_dividends_of_its_parts(game: Game) -> None:
    found = dividends(np.array([game]))[0]
    for coalition, value in enumerate(game):
        parts = [found[part] for part in range(len(game)) if part & coalition == part]
        assert sum(parts) == pytest.approx(value, abs=1e-12)


@given(games())
def test_games_are_left_as_they_were(game: Game) -> None:
    given_games = np.array([game])
    shapley_values(given_games)
    assert given_games.tolist() == [game]


@pytest.mark.parametrize(
    ("game", "expected"),
    [
        # A glove game: one left glove, two right ones; a pair is worth 1.
        ([0, 0, 0, 1, 0, 1, 0, 1], [2 / 3, 1 / 6, 1 / 6]),
        # A majority of three.
        ([0, 0, 0, 1, 0, 1, 1, 1], [1 / 3, 1 / 3, 1 / 3]),
        # All are needed.
        ([0, 0, 0, 0, 0, 0, 0, 6], [2, 2, 2]),
        # Somebody converts without anybody's help.
        ([0.5, 1.0], [0.5]),
    ],
)
def test_games_of_the_textbook(game: Game, expected: list[float]) -> None:
    assert shapley(game) == pytest.approx(expected, abs=1e-12)
