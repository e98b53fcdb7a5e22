"""The auditor's own arithmetic agrees with the definition, and bounds on noise are as stated."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from adsbpc.audit.claims import BrokenClaimError
from adsbpc.audit.cost import costs_by_slot
from adsbpc.audit.noise_claims import FALSE_ALARM, _fits, _mean_square
from adsbpc.audit.stretches import ReleasedRow, Stretch, stretches_of
from adsbpc.model import Layout
from adsbpc.privacy import Strategy, cost, square_root, toeplitz

SLOTS, PLACES = 4, 3
LAYOUT = Layout.of_publishers(["P-1", "P-2", "other"])


@st.composite
def strategies(draw: st.DrawFn) -> Strategy:
    entries = st.integers(0, 1_500)
    return Strategy(
        tuple(
            (*(draw(entries) for _ in range(slot)), draw(st.integers(1, 1_500)))
            for slot in range(SLOTS)
        )
    )


places = st.tuples(st.integers(1, SLOTS), st.integers(0, PLACES + 1))
moves_of_a_person = st.dictionaries(places, st.integers(0, 2**56), min_size=1)


def tier_of(column: int) -> int:
    return max(0, column - PLACES + 1)


def stretches(strategy: Strategy, renewals: set[int]) -> list[Stretch]:
    rows = [ReleasedRow(slot, (1,), slot in renewals, []) for slot in range(1, SLOTS + 1)]
    return stretches_of(rows, strategy.rows)


@given(
    strategies(),
    st.sets(st.integers(2, SLOTS)),
    st.lists(moves_of_a_person, min_size=SLOTS, max_size=SLOTS),
)
def test_costs_after_every_slot_are_those_of_the_definition(
    strategy: Strategy, renewals: set[int], moves: list[dict[tuple[int, int], int]]
) -> None:
    """Whatever each renewal has let in of the past."""
    own = stretches(strategy, renewals)
    held = [
        {place: moved for place, moved in asked.items() if place[0] <= stretch.end}
        for stretch, asked in zip(own, moves, strict=False)
    ]
    given_moves = [[(*place, moved) for place, moved in each.items()] for each in held]
    found = costs_by_slot(strategy.rows, own, given_moves, columns=PLACES)
    fixed = dict.fromkeys(range(3), 0)
    for stretch, each in zip(own, held, strict=True):
        for tier, before in fixed.items():
            mine = {place: moved for place, moved in each.items() if tier_of(place[1]) == tier}
            at = {max(slot, stretch.first) for slot, _ in mine} | (
                {stretch.first} if before else set()
            )
            assert {s for t, s in found if t == tier and s in stretch.slots} == at
            for slot in at:
                so_far = {place: moved for place, moved in mine.items() if place[0] <= slot}
                coming = cost(strategy, LAYOUT, so_far, slice(stretch.first - 1, None))
                assert found[tier, slot] == before + coming
            ended = slice(stretch.first - 1, stretch.end)
            fixed[tier] += cost(strategy, LAYOUT, mine, ended)


@given(strategies(), st.sets(st.integers(2, SLOTS)), moves_of_a_person)
def test_nothing_changes_if_the_past_is_let_in_as_it_was(
    strategy: Strategy, renewals: set[int], moves: dict[tuple[int, int], int]
) -> None:
    own = stretches(strategy, renewals)
    given_moves = [
        [(*place, moved) for place, moved in moves.items() if place[0] <= stretch.end]
        for stretch in own
    ]
    found = costs_by_slot(strategy.rows, own, given_moves, columns=PLACES)
    for tier in {tier for tier, _ in found}:
        last = max(slot for other, slot in found if other == tier)
        mine = {place: moved for place, moved in moves.items() if tier_of(place[1]) == tier}
        assert found[tier, last] == cost(strategy, LAYOUT, mine)


@pytest.mark.parametrize("strategy", [square_root(7), toeplitz(31, 0.3)])
@pytest.mark.parametrize("renewals", [[], [2], [2, 4, 7]])
def test_gram_matrices_are_over_the_rows_of_stretches(
    strategy: Strategy, renewals: list[int]
) -> None:
    slots = range(1, strategy.slots + 1)
    rows = [ReleasedRow(slot, (1,), slot in renewals, []) for slot in slots]
    found = stretches_of(rows, strategy.rows)
    assert [stretch.first for stretch in found] == [1, *renewals]
    assert [stretch.end for stretch in found] == [*(r - 1 for r in renewals), strategy.slots]
    for stretch in found:
        for entries, last in ((stretch.ended, stretch.end), (stretch.whole, strategy.slots)):
            matrix = strategy.matrix[stretch.first - 1 : last]
            assert entries.keys() == {
                (t, s) for t in range(1, stretch.end + 1) for s in range(1, t + 1)
            }
            for (slot, earlier), entry in entries.items():
                assert entry == (matrix.T @ matrix)[slot - 1, earlier - 1]


def test_before_the_end_rows_to_come_count() -> None:
    strategy = square_root(7)
    rows = [ReleasedRow(slot, (1,), slot == 3, []) for slot in range(1, 5)]
    newest = stretches_of(rows, strategy.rows)[-1]
    coming = strategy.matrix[2:]
    assert newest.whole[4, 2] == (coming.T @ coming)[3, 1]


@pytest.mark.parametrize("count", [1, 5, 217, 31_031])
def test_false_alarms_are_as_rare_as_stated(count: int) -> None:
    """The bounds on the mean square against the distribution itself."""
    each = FALSE_ALARM / 3
    low, high = (_mean_square(count, each, outside, 1.0) for outside in (0.0, 2 + 100 / count))
    assert 0 < low < 1 < high
    assert chi2.cdf(count * low, count) <= each
    assert chi2.sf(count * high, count) <= each
    # And not much rarer, where there is something to see.
    if count > 200:
        assert log(chi2.sf(count * high, count)) > 1.3 * log(each)


def test_noise_that_is_fine_passes_and_other_noise_does_not() -> None:
    deviates = list(np.random.default_rng(1).normal(size=2_000))
    assert "false alarms below 1e-09" in _fits(deviates, even_if_small=False)
    for factor, wrong in ((0.8, "too small"), (1.25, "too large"), (0.0, "too small")):
        with pytest.raises(BrokenClaimError, match=wrong):
            _fits([factor * deviate for deviate in deviates], even_if_small=False)
    with pytest.raises(BrokenClaimError, match="too large"):
        _fits([*deviates, 9.0], even_if_small=False)
    assert _fits([0.0] * 10, even_if_small=True)
