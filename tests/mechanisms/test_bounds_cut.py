"""What bounds cut, counted from noisy histograms and added back to AdsBPC's answers."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.contributions import ArrayContributions
from adsbpc.mechanisms import AdsBPC, BoundedState, plan_measures
from adsbpc.mechanisms.bounds import HISTOGRAM_EDGES
from adsbpc.mechanisms.bounds_cut import CutCounter
from adsbpc.model import UNITS_PER_CONVERSION, Drawn, Layout, Measured
from adsbpc.model.cut import CAUTION
from adsbpc.model.plan import StoredPlan
from adsbpc.privacy import SeededRandomness
from tests.effort import examples
from tests.mechanisms.campaigns import run, spec_of

PUBLISHERS = tuple(f"p{number}" for number in range(40))
LAYOUT = Layout.of_publishers((*PUBLISHERS, "other"))
EDGES = [edge * UNITS_PER_CONVERSION for edge in HISTOGRAM_EDGES]
SLOTS = 10


def wide(**privacy: Any) -> AdsBPC:
    """For many publishers, whose noise keeps bounds low."""
    mechanism = plan_measures(spec_of(SLOTS, publishers=PUBLISHERS, **privacy)).runs[0][1]
    assert isinstance(mechanism, AdsBPC)
    return mechanism


def people(seed: int, count: int = 3_000, slots: int = SLOTS) -> ArrayContributions:
    """Of whom some do several times as much as most."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(count), rng.poisson(rng.lognormal(2.0, 0.7, count)))
    slot, cell = rng.integers(1, slots + 1, user.size), rng.integers(0, len(PUBLISHERS), user.size)
    weight = np.full(user.size, UNITS_PER_CONVERSION)
    return ArrayContributions(user, slot, cell, weight, slots, LAYOUT)


def cut_of(data: ArrayContributions, bounds: list[int]) -> float:
    """What bounds took from all slots, in conversions."""
    totals = (
        (data.totals(slot) - data.totals(slot, bound * UNITS_PER_CONVERSION)).sum()
        for slot, bound in enumerate(bounds, start=1)
    )
    return float(sum(totals)) / UNITS_PER_CONVERSION


@given(
    counts=st.lists(st.integers(0, 50), min_size=4, max_size=4),
    bound=st.integers(1, 3),
)
@settings(max_examples=examples(30, 300))
def test_whole_contributions_in_narrow_bins_are_counted_exactly(
    counts: list[int], bound: int
) -> None:
    """Bins that hold one whole number each, and no noise to speak of."""
    histogram = [*counts, *[0] * (len(HISTOGRAM_EDGES) - 3)]
    found = CutCounter(1e-9, 1, are_whole=True).counted([bound], [histogram])
    true = sum(count * max(each - bound, 0) for each, count in enumerate(counts, start=1))
    assert found.counts.sum() == pytest.approx(true)


def test_values_are_taken_to_lie_lower_in_their_bins() -> None:
    histogram = [0, 10, *[0] * (len(HISTOGRAM_EDGES) - 1)]
    whole, fine = (
        CutCounter(1e-9, 1, are_whole=whole).counted([1], [histogram]) for whole in (True, False)
    )
    assert whole.counts.sum() == pytest.approx(10)
    assert fine.counts.sum() == pytest.approx(10 * (sqrt(2) - 1))


def test_what_is_counted_is_what_was_cut() -> None:
    """Of true histograms, to a tenth; of noisy ones the error has the variance that is stated."""
    data, bounds = people(1), [2] * SLOTS
    true, cut = [list(data.histogram(s, EDGES)) for s in range(1, SLOTS + 1)], cut_of(data, bounds)
    exact = CutCounter(1e-9, 1, are_whole=True).counted(bounds, true).counts
    assert exact.sum() == pytest.approx(cut, rel=0.1)
    counter, rng, errors = CutCounter(3.0, 1, are_whole=True), np.random.default_rng(2), []
    for _ in range(400):
        noisy = [[count + round(rng.normal(0, 3)) for count in row] for row in true]
        found = counter.counted(bounds, noisy)
        first = found.counts[:, 0].sum() - exact[:, 0].sum()
        errors.append(first / sqrt(found.variances[:, 0].sum()))
    assert abs(np.mean(errors)) < 0.2
    assert 0.8 < np.std(errors) < 1.2


def test_far_noise_is_not_taken_for_people() -> None:
    """With nobody above the bound, all bins would add hundreds of conversions of noise."""
    counter, rng, kept = CutCounter(7.0, 1, are_whole=True), np.random.default_rng(3), []
    for _ in range(200):
        noisy = rng.normal(0, 7.0, (31, len(HISTOGRAM_EDGES) + 1)).round().astype(int).tolist()
        found = counter.counted([4] * 31, noisy)
        kept.append(found.counts.shape[1])
        assert len(found.expected) == kept[-1] + 1
    assert np.mean(np.array(kept) == 1) > 0.9


def test_people_far_out_are_seen() -> None:
    row = [500, 200, 0, 0, 0, 0, 0, 0, 60, *[0] * (len(HISTOGRAM_EDGES) - 8)]
    found = CutCounter(7.0, 1, are_whole=True).counted([2] * 5, [row] * 5)
    assert found.counts.sum() == pytest.approx(5 * 60 * (sqrt(17 * 23) - 2))


def test_people_who_may_be_noise_have_room_above() -> None:
    """Too few to be counted, too many to be nobody: upper ends have them."""
    deviation, usual = 7.0, sqrt(12 * 16)

    def beyond(people: int) -> tuple[int, float]:
        row = [500, 200, 40, 10, 4, 2, 1, people, *[0] * (len(HISTOGRAM_EDGES) - 7)]
        found = CutCounter(deviation, 1, are_whole=True).counted([2], [row])
        return found.counts.shape[1], CAUTION * found.expected[-1]

    # Two bins of the octave from 8 on have noise; it is counted from 2.75 standard deviations on.
    error = deviation * sqrt((usual - 2) ** 2 + (sqrt(9 * 11) - 2) ** 2)
    for people, is_there in ((8, False), (20, True)):
        columns, room = beyond(people)
        assert columns < 3
        assert (room > people * (usual - 2) + error) == is_there


def test_slots_that_do_not_look_have_the_histogram_before_and_its_noise() -> None:
    row = [500, 200, 40, *[0] * (len(HISTOGRAM_EDGES) - 2)]
    alone = CutCounter(2.0, 1, are_whole=True).counted([1] * 4, [row] * 4)
    shared = CutCounter(2.0, 2, are_whole=True).counted([1] * 4, [row, [], row, []])
    np.testing.assert_allclose(shared.counts, alone.counts)
    # One error twice is twice as large as two errors of their own, in squares.
    np.testing.assert_allclose(shared.variances, 2 * alone.variances)


def test_answers_have_what_was_cut() -> None:
    """On average over campaigns, where bounds are lower than many would need."""
    data, found = people(4), []
    truth = float(sum(data.totals(slot).sum() for slot in range(1, SLOTS + 1)))
    for seed in range(20):
        releases, state = run(wide(), data, seed)
        total = releases[-1].running_totals[0]
        cut, added = cut_of(data, state.bounds), total.added
        assert cut > 0, "nothing was cut: this tests nothing"
        assert sum(releases[-1].spread) == pytest.approx(1)
        missing = truth / UNITS_PER_CONVERSION - total.values[0]
        found.append((missing, cut, added, total.standard_error, total.cut))
    missing, cut, added, error, more = np.array(found).T
    assert np.all(missing < more + 4 * error)
    assert np.all(missing > -4 * error)
    assert abs(np.mean(added - cut)) < 0.5 * np.mean(cut)


def test_stored_plans_of_earlier_versions_add_nothing() -> None:
    new = wide()
    assert new.stored_plan().adds_cut
    content = {"slot_pico_rho": new.stored_plan().slot_pico_rho}
    assert not StoredPlan.from_object(content).adds_cut
    old, data = replace(new, cut=None), people(5)
    (after, _), (before, _) = (run(each, data, 6) for each in (new, old))
    assert new.fingerprint == old.fingerprint
    for one, other in zip(after, before, strict=True):
        assert one.values == other.values
        assert other.spread == ()
        assert all(answers.added == answers.cut == 0 for answers in other.running_totals)
    assert any(answers.added > 0 for each in after for answers in each.running_totals)


@pytest.mark.parametrize("tracker", [{"bounds": "svt"}, {"bounds": "fixed", "bound": 2}])
def test_without_histograms_nothing_is_added(tracker: dict[str, object]) -> None:
    mechanism = wide(adsbpc=tracker)
    assert not mechanism.stored_plan().adds_cut
    releases, _ = run(mechanism, people(7), 8)
    assert all(each.spread == () and each.running_totals[0].cut == 0 for each in releases)


def test_ranges_say_what_running_totals_do() -> None:
    """The noise of ranges follows from releases alone, and has the same of what was cut."""
    mechanism, data = wide(), people(9)
    released, state = list[Measured](), BoundedState()
    for slot in range(SLOTS):
        drawn, state = mechanism.release(state, data, SeededRandomness(slot))
        released.append(_measured(drawn))
    noise = mechanism.running_noise(released, (0, 3, SLOTS))
    total, found = released[-1].running_totals[0], noise.added((0, 2))
    assert (found.total, found.missing) == pytest.approx((total.added, total.cut))
    own = noise.of_sum(noise.together((0, 2), (0, 2)), 0, 0)
    assert sqrt(own + found.variance) == pytest.approx(total.standard_error)
    early, late = noise.added((0, 1)), noise.added((1, 2))
    assert early.slopes
    assert len(early.slopes) == len(late.slopes) == len(found.slopes)


def _measured(drawn: Drawn) -> Measured:
    return Measured(**dict(drawn), measure="conversions", metric="conversions")


def test_what_is_added_costs_nothing() -> None:
    new, data = wide(), people(10)
    old: AdsBPC = replace(new, cut=None)
    (after, _), (before, _) = (run(each, data, 11) for each in (new, old))
    assert [each.charges for each in after] == [each.charges for each in before]
