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
from adsbpc.audit.promised_plan import gram
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


moves_of_a_person = st.dictionaries(
    st.tuples(st.integers(1, SLOTS), st.integers(0, PLACES)), st.integers(0, 2**56), min_size=1
)


@given(strategies(), moves_of_a_person)
def test_costs_after_every_slot_are_those_of_the_definition(
    strategy: Strategy, moves: dict[tuple[int, int], int]
) -> None:
    given_moves = [(slot, place, moved) for (slot, place), moved in moves.items()]
    found = costs_by_slot(strategy.rows, given_moves, cut_place=PLACES)
    assert found.keys() == {slot for slot, _ in moves}
    for slot, (kept, cut) in found.items():
        so_far = {key: moved for key, moved in moves.items() if key[0] <= slot}
        cut_so_far = {key: moved for key, moved in so_far.items() if key[1] == PLACES}
        assert cut == cost(strategy, LAYOUT, cut_so_far)
        assert kept + cut == cost(strategy, LAYOUT, so_far)


@pytest.mark.parametrize("strategy", [square_root(7), toeplitz(31, 0.3)])
def test_the_gram_matrix_is_over_all_rows(strategy: Strategy) -> None:
    for (slot, earlier), entry in gram(strategy.rows).items():
        assert entry == strategy.gram[slot - 1, earlier - 1]


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
