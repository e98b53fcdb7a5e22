"""What was cut and is added back: how much of a noisy count, and how uncertain that is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.model.cut import CAUTION, DECIDED, GRADUAL, HIDING, Trust, added_back, sure_part
from adsbpc.model.running_noise import Cut, CutColumn, RunningNoise, Stretch

TRUSTS = pytest.mark.parametrize("trust", [GRADUAL, DECIDED], ids=["gradual", "decided"])


@TRUSTS
@given(st.integers(-50, 500), st.floats(1, 10_000), st.floats(0.01, 1), st.floats(1, 10_000))
def test_the_noise_of_what_is_added_follows_from_the_counts(
    trust: Trust, count: int, variance: float, squared: float, noise: float
) -> None:
    """To the first order: as much as is added moves when the count does."""
    step = 1e-4 * np.sqrt(variance)
    less, found, more = (
        added_back([(count + by, variance)], squared, noise, trust=trust) for by in (-step, 0, step)
    )
    if less.total == 0:
        # Below or at the count from which something is added.
        assert found.total <= 2 * trust.power * 1.5 * step
        return
    moved = (more.total - less.total) / (2 * step)
    assert found.slopes[0] == pytest.approx(moved, rel=1e-3)
    assert found.variance == pytest.approx(moved**2 * variance, rel=3e-3)


@TRUSTS
@pytest.mark.parametrize("harm", [0.1, 1.0, 10.0])
def test_nothing_that_is_added_by_chance_is_missed_more_often_for_that(
    harm: float, trust: Trust
) -> None:
    """Where nothing was cut, counts are noise; some of it is added now and then. Of those times,
    the low end fails no more often than its noise says, by and large."""
    random, missed, times = np.random.default_rng(17), 0, 0
    for count, noise in random.normal(0, (np.sqrt(harm), 1.0), (40_000, 2)):
        found = added_back([(count, harm)], 1.0, 1.0, trust=trust)
        if found.total > 0:
            times += 1
            missed += noise + found.total > 1.96 * np.sqrt(1 + found.variance)
    assert times > 50, "nothing was added: this tests nothing"
    assert missed < 0.06 * times


@pytest.mark.parametrize("harm", [1.0, 7.0, 48.0])
def test_what_is_decided_about_is_seldom_noise_and_nearly_whole(harm: float) -> None:
    """Of counts that are nothing but noise, a third as many are added, and less of them; of those
    that show something, more."""
    counts = np.random.default_rng(3).normal(0, np.sqrt(harm), 40_000)
    often, much = [], []
    for trust in (GRADUAL, DECIDED):
        found = [added_back([(each, harm)], 1.0, 1.0, trust=trust).total for each in counts]
        often.append(sum(each > 0 for each in found))
        much.append(sum(each**2 for each in found))
    assert 0 < often[1] < often[0] / 3
    assert much[1] < 0.75 * much[0]
    for sure in (5.0, 10.0):
        slow, quick = (trust.part(sure * np.sqrt(harm), harm, harm) for trust in (GRADUAL, DECIDED))
        assert slow < quick < 1


def test_the_part_of_everything_is_certain() -> None:
    assert sure_part(1.0) == 1.0
    parts = [sure_part(part) for part in (0.0, 0.1, 0.5, 0.9)]
    assert parts == sorted(parts)
    assert 0 < parts[0] < parts[-1] < 1


def test_few_slots_may_miss_as_much_as_several() -> None:
    """What is expected of the first slots is not their number of times what a slot misses."""
    weights = [[1.0 if row < slot else 0.0 for row in range(6)] for slot in (0, 1, 3, 6)]
    column = CutColumn((0.0, 0.0, 0.0, 0.0), (1e6,) * 6)
    stretch = Stretch(0, ((1.0,),), 1.0)

    def missing(at_least: int) -> list[float]:
        cut = Cut((column,), ((1.0,),), 1.0, True, (2.0, 1.0), at_least)
        noise = RunningNoise((0, 1, 3, 6), weights, (1.0,) * 6, (stretch,), cut)
        return [noise.added((0, place)).missing for place in (1, 2, 3)]

    assert missing(1) == pytest.approx([CAUTION * 3 * slots for slots in (1, 3, 6)])
    assert missing(4) == pytest.approx([CAUTION * 3 * slots for slots in (4, 4, 6)])


def test_noise_below_nothing_does_not_take_away_what_is_expected() -> None:
    for count in (-1_700.0, -500.0, 0.0):
        found = added_back([(count, 1_000.0**2)], 0.1, 100.0**2, [300.0, 20.0])
        assert found.total == 0
        assert 300 + CAUTION * 20 <= found.missing <= CAUTION * (300 + 20)
    # What noise cannot hide is not there, whatever is expected.
    fine = added_back([(-30.0, 20.0**2)], 0.1, 100.0**2, [300.0, 20.0])
    assert fine.missing == pytest.approx(HIDING * 20 + CAUTION * 20)
