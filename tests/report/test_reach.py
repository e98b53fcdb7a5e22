"""What the ends of an interval leave for noise when something may be missing between them."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.report.reach import STEP, Reach

_NORMAL = NormalDist()
_LEVELS = st.sampled_from([0.5, 0.8, 0.95, 0.9999])


def _missed(reach: float, room: float, missing: float) -> float:
    """How often, by adding up a normal density, with a standard error of 1."""
    step = 0.001
    noise = np.arange(-12, 12, step) + step / 2
    value = noise - missing
    density = np.exp(-(noise**2) / 2) / np.sqrt(2 * np.pi)
    return float(density[(value - reach > 0) | (value + room + reach < 0)].sum() * step)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("room", [0.0, 0.01, 0.3, STEP * 2.5, 1.0, 2.0, 3.9, 4.1, 50.0])
def test_the_truth_is_missed_as_often_as_the_level_says(level: float, room: float) -> None:
    """Never more often, whatever is missing of the room, and nowhere much less often than where
    nothing or all of it is."""
    reach = Reach.of(level).with_room(room, 1.0)
    missed = [_missed(reach, room, part * room) for part in np.linspace(0, 1, 21)]
    assert max(missed) <= 1 - level + 2e-3
    assert missed[0] == pytest.approx(missed[-1], abs=2e-3)
    assert missed[0] == pytest.approx(1 - level, abs=3e-3)


def test_a_little_less_would_not_be_enough() -> None:
    """Guards the test above: it would notice."""
    reach = Reach.of(0.95)
    assert _missed(reach.with_room(1.0, 1.0) - 0.1, 1.0, 0.0) > 0.06
    assert _missed(reach.with_room(100.0, 1.0), 0.0, 0.0) > 0.09


@given(_LEVELS, st.floats(0, 10), st.floats(0.01, 100))
def test_the_table_is_never_below_the_curve(level: float, room: float, error: float) -> None:
    reach = Reach.of(level).with_room(room * error, error)
    assert _NORMAL.cdf(-reach) + _NORMAL.cdf(-reach - room) <= 1 - level + 1e-9


@given(_LEVELS, st.floats(0, 10), st.floats(0, 10))
def test_more_room_never_needs_more(level: float, room: float, more: float) -> None:
    reach = Reach.of(level)
    assert reach.with_room(room + more, 1.0) <= reach.with_room(room, 1.0) + 1e-12
    assert _NORMAL.inv_cdf(level) <= reach.with_room(room, 1.0) <= reach.plain
    assert reach.with_room(room, 1.0) + room >= reach.plain - 1e-9


def test_without_room_it_is_the_usual_one() -> None:
    reach = Reach.of(0.95)
    assert reach.plain == reach.with_room(0.0, 3.0) == _NORMAL.inv_cdf(0.975)
    assert reach.with_room(-5.0, 3.0) == reach.plain
    assert reach.with_room(1e9, 3.0) == pytest.approx(1.645, abs=1e-3)
    # Without any noise there is nothing to leave room for.
    assert reach.with_room(1.0, 0.0) < reach.plain


@pytest.mark.parametrize(("below", "above"), [(1.0, 2.5), (2.5, 1.0)])
def test_ends_with_errors_of_their_own(below: float, above: float) -> None:
    """The larger error stands for both, as in an interval of version 0.1."""
    room, step = 2.0, 0.001
    reach = Reach.of(0.95).with_room(room, max(below, above))
    for missing in np.linspace(0, room, 9):
        low = _NORMAL.cdf(-reach - missing / below)
        high = _NORMAL.cdf(-reach - (room - missing) / above)
        assert low + high <= 0.05 + step
