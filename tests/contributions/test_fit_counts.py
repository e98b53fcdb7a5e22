"""Nobody moves a set of counts by more than is promised: weights in exact integers, in plain Python
and on engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isqrt
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adsbpc.attribution import CountSet, Journeys
from adsbpc.attribution.counts import Coalitions, Pairs, Transitions
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.contributions.fit_counts import engine_counts, plain_counts
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError, PrivacyError
from adsbpc.events import EventTables
from adsbpc.privacy import COUNT_UNITS, full_weight, user_weight

WHOLE = COUNT_UNITS**2

squares = st.integers(1, 2_000) | st.integers(1, WHOLE) | st.integers(1, COUNT_UNITS).map(
    lambda root: root * root
)  # fmt: skip


# ---- weights ------------------------------------------------------------------------------------


@given(squares)
@example(1)
@example(WHOLE)
def test_the_full_weight_is_the_largest_that_fits(full_squared: int) -> None:
    full = full_weight(full_squared)
    assert full**2 * full_squared <= WHOLE < (full + 1) ** 2 * full_squared


@given(squares | st.integers(0, 4 * WHOLE), squares)
@example(0, 1)
@example(WHOLE + 1, 1)
def test_a_users_weight_is_the_largest_that_fits_up_to_the_full_one(
    squared: int, full_squared: int
) -> None:
    weight, full = user_weight(squared, full_squared), full_weight(full_squared)
    assert 0 <= weight <= full
    assert weight**2 * squared <= WHOLE
    assert weight == full or (weight + 1) ** 2 * squared > WHOLE


@given(squares, squares, squares)
def test_longer_vectors_never_weigh_more(one: int, other: int, full_squared: int) -> None:
    short, long = sorted([one, other])
    assert user_weight(short, full_squared) >= user_weight(long, full_squared)
    assert user_weight(full_squared, full_squared) == full_weight(full_squared)


@pytest.mark.parametrize("full_squared", [0, -1, WHOLE + 1])
def test_a_full_vector_outside_the_range_is_refused(full_squared: int) -> None:
    with pytest.raises(PrivacyError, match=f"squared norm of {full_squared}"):
        full_weight(full_squared)


# ---- journeys -----------------------------------------------------------------------------------

PLAYERS = 4
SETS: list[CountSet] = [
    Coalitions(PLAYERS),
    Pairs(PLAYERS, full_journey=2),
    *(Transitions(PLAYERS, full_journey=3, order=order) for order in (1, 2, 3)),
]
journeys = st.lists(st.integers(0, PLAYERS - 1), min_size=1, max_size=40).map(tuple) | st.lists(
    st.integers(0, PLAYERS - 1), min_size=1, max_size=3
).map(lambda turn: tuple(turn * 300))


@pytest.mark.parametrize("counts", SETS, ids=lambda counts: f"{counts.name}-{len(counts.cells)}")
@given(st.lists(st.tuples(journeys, st.booleans()), min_size=1, max_size=6))
@settings(max_examples=40)
def test_one_user_moves_counts_by_no_more_than_promised(
    counts: CountSet, users: list[tuple[tuple[int, ...], bool]]
) -> None:
    added = [cells_of(counts, journey, converted) for journey, converted in users]
    moved = plain_counts(counts, added) - plain_counts(counts, added[1:])
    assert moved.min() >= 0
    norm = sum(int(value) ** 2 for value in moved)
    assert 0 < norm <= WHOLE


@pytest.mark.parametrize("counts", SETS, ids=lambda counts: f"{counts.name}-{len(counts.cells)}")
def test_short_journeys_count_in_full(counts: CountSet) -> None:
    full = full_weight(counts.full_squared)
    for journey in ((0,), (1, 0), (3, 3, 2, 2)):
        found = plain_counts(counts, [cells_of(counts, journey, True)])
        assert set(found.tolist()) == {0, full}


def test_long_journeys_count_for_less() -> None:
    """Three pairs and three publishers and any: a squared norm of 7, where 4 count in full."""
    counts = Pairs(PLAYERS, full_journey=2)
    found = plain_counts(counts, [cells_of(counts, (0, 1, 2), False)])
    assert set(found.tolist()) == {0, isqrt(WHOLE // 7)}
    assert isqrt(WHOLE // 7) < full_weight(4) == COUNT_UNITS // 2


# ---- on engines ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MadeUp(CountSet):
    """Cells that stand in a table, whatever the events are."""

    name: ClassVar[str] = "made-up"
    made: Relation | None = None

    def _cells(self) -> Iterator[int]:
        return iter(range(self.players))

    @property
    def full_squared(self) -> int:
        return 5

    def steps_sql(self) -> str:
        return f"fit_cells AS (SELECT user_key, cell, amount FROM {self.made})"


def counts_of(engine: Engine, counts: MadeUp, users: list[dict[int, int]]) -> list[int]:
    """What an engine makes of users without any events whose cells are given."""
    moment = "CAST(0 AS BIGINT) AS time_us"
    conversions = engine.table("conversions", f"SELECT '' AS user_id, {moment} WHERE FALSE")
    impressions = engine.table(
        "impressions",
        f"SELECT '' AS user_id, {moment}, TRUE AS is_click, 0 AS publisher_number,"
        " 0 AS touch_order WHERE FALSE",
    )
    publishers = engine.table(
        "publishers", "SELECT 0 AS publisher_number, 0 AS publisher_index WHERE FALSE"
    )
    rows = [
        (key, cell, amount) for key, cells in enumerate(users) for cell, amount in cells.items()
    ]
    keys, cells, amounts = zip(*rows, strict=True)
    made = engine.numbers("made", {"user_key": keys, "cell": cells, "amount": amounts})
    events = EventTables(
        engine,
        conversions,
        impressions,
        impressions,
        publishers,
        conversions,
        {},
        0,
        True,
        conversions,
    )
    found = engine_counts(events, replace(counts, made=made), Journeys(1, 1, 1), starts_at=0)
    return [int(total) for total in found]


def each_alone(vectors: list[tuple[int, ...]]) -> tuple[MadeUp, list[dict[int, int]]]:
    """Users with cells of their own, so that a total shows one user's weight."""
    users, place = [], 0
    for vector in vectors:
        users.append({place + k: amount for k, amount in enumerate(vector)})
        place += len(vector)
    return MadeUp(place), users


@given(
    st.lists(
        st.lists(st.integers(1, 40) | st.integers(1, 3 * 10**5), min_size=1, max_size=6).map(tuple),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=40)
def test_weights_of_large_vectors(duckdb_engine: Engine, vectors: list[tuple[int, ...]]) -> None:
    counts, users = each_alone(vectors)
    assert counts_of(duckdb_engine, counts, users) == plain_counts(counts, users).tolist()


@pytest.mark.every_change
def test_weights_of_every_norm_on_every_engine(engine: Engine) -> None:
    """Squared norms beside those at which the weight steps down by one, where floating point may be
    wrong: a sum of four squares is every number."""
    steps = [WHOLE // weight**2 + more for weight in range(COUNT_UNITS - 3, 900, -4_001)
             for more in (-1, 0, 1)]  # fmt: skip
    squared = sorted({each for each in [*range(1, 300), *steps] if each > 0})
    counts, users = each_alone([four_squares(each) for each in squared])
    found = counts_of(engine, counts, users)
    for cells, each in zip(users, squared, strict=True):
        for cell, amount in cells.items():
            assert found[cell] == amount * user_weight(each, counts.full_squared)


def four_squares(number: int) -> tuple[int, ...]:
    """Numbers above 0, up to four, whose squares add up to a number (Lagrange 1770).

    >>> four_squares(7), four_squares(13)
    ((2, 1, 1, 1), (3, 2))
    """
    for first in range(isqrt(number), -1, -1):
        for second in range(isqrt(number - first**2), -1, -1):
            rest = number - first**2 - second**2
            for third in range(isqrt(rest), -1, -1):
                fourth = isqrt(rest - third**2)
                if first**2 + second**2 + third**2 + fourth**2 == number:
                    return tuple(each for each in (first, second, third, fourth) if each)
    raise AssertionError(number)


def test_many_users_add_up_in_a_cell(duckdb_engine: Engine) -> None:
    counts = MadeUp(2)
    users = [{0: amount, 1: 1} for amount in range(1, 2_000)]
    expected = plain_counts(counts, users)
    assert counts_of(duckdb_engine, counts, users) == expected.tolist()
    weights = [user_weight(amount**2 + 1, 5) for amount in range(1, 2_000)]
    assert expected[1] == sum(weights)
    assert np.diff(weights).max() <= 0


@pytest.mark.parametrize("cell", [-1, 2, 2**40])
def test_a_cell_that_was_not_declared_is_refused(cell: int, duckdb_engine: Engine) -> None:
    counts, users = MadeUp(2), [{0: 1}, {cell: 3}]
    message = f"cell {cell}: was not declared among the 2 of made-up"
    with pytest.raises(ContributionError, match=message):
        plain_counts(counts, users)
    with pytest.raises(ContributionError, match=message):
        counts_of(duckdb_engine, counts, users)


@pytest.mark.parametrize("counts", SETS, ids=lambda counts: f"{counts.name}-{len(counts.cells)}")
def test_nobody_has_a_cell_that_was_not_declared(counts: CountSet) -> None:
    """Every journey of up to four touches."""
    grid = np.stack(np.meshgrid(*[range(PLAYERS)] * 4), axis=-1).reshape(-1, 4).tolist()
    for journey in [each[:length] for each in grid for length in range(1, 5)]:
        for converted in (False, True):
            assert set(cells_of(counts, journey, converted)) <= set(counts.positions)
