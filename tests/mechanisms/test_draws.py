"""The mechanism uses the proven parts as they were proven: which noise is drawn, how often, at
which scale, and what is asked about users. Each test names the mistake that makes it fail."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from adsbpc.errors import PrivacyError
from adsbpc.mechanisms import AdsBPC, BoundedState
from adsbpc.mechanisms.bounds import units
from adsbpc.model import PICO_RHO, Adjacency, Drawn
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.privacy import (
    exponential_epsilon,
    gaussian_scale,
    histogram_squared,
    pure_epsilon,
    sparse_vector_scales,
    totals_squared,
)
from tests.mechanisms.campaigns import LAYOUT, bound_of, planned
from tests.mechanisms.recording import RecordingContributions, RecordingRandomness

SLOTS = 20


def surge(users: int = 500, per_slot: int = 9) -> RecordingContributions:
    """Everybody converts once a slot at first, then nine times."""
    rows = [
        (f"u{k}", slot, k % 2)
        for k in range(users)
        for slot in range(1, SLOTS + 1)
        for _ in range(1 if slot <= 7 else per_slot)
    ]
    return RecordingContributions(rows, UNIT, SLOTS, LAYOUT)


def run_saved(
    mechanism: AdsBPC, data: RecordingContributions, randomness: RecordingRandomness
) -> tuple[list[Drawn], BoundedState]:
    """Run with the state saved and loaded before every slot."""
    state, releases = BoundedState(), []
    steps: list[dict[str, Any]] = []
    for _ in range(mechanism.slots):
        state = BoundedState.from_steps(json.loads(json.dumps(steps)))
        release, state = mechanism.release(state, data, randomness)
        steps.append(state.last_step())
        releases.append(release)
    return releases, state


@pytest.mark.parametrize("bound", [1, 2, 5])
def test_totals_are_capped_at_the_bound_that_scales_the_noise(bound: int) -> None:
    """Fails without a cap, or with a looser one."""
    rows = [("u", slot, 0) for slot in (1, 2) for _ in range(4)]
    data = RecordingContributions(rows, UNIT, 2, LAYOUT)
    mechanism = planned(2, adsbpc={"bounds": "fixed", "bound": bound})
    randomness = RecordingRandomness()
    releases, _ = run_saved(mechanism, data, randomness)
    assert [release.values for release in releases] == [(min(4, bound) * UNIT, 0)] * 2
    assert data.asked == [("totals", 1, bound * UNIT), ("totals", 2, bound * UNIT)]
    for rho, (kind, scale) in zip(mechanism.slot_rho, randomness.draws, strict=True):
        assert kind == "gaussian"
        assert scale == gaussian_scale(
            totals_squared(Adjacency.ADD_REMOVE, LAYOUT, units(bound)), rho
        )


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    "tracker",
    [{"bounds": "svt"}, {"bounds": "histogram"}, {"bounds": "svt", "quantile_limit": "none"}],
    ids=str,
)
def test_every_bound_in_use_is_the_one_behind_the_noise(
    tracker: dict[str, Any], adjacency: Adjacency
) -> None:
    mechanism = planned(SLOTS, adjacency=adjacency, adsbpc=tracker)
    data, randomness = surge(), RecordingRandomness()
    releases, _ = run_saved(mechanism, data, randomness)
    caps = [bound for kind, _, bound in data.asked if kind == "totals"]
    assert caps == [units(bound_of(release)) for release in releases]
    factor = 2 if adjacency is Adjacency.SUBSTITUTE else 1
    for release, rho in zip(releases, mechanism.slot_rho, strict=True):
        assert release.scale == pytest.approx(units(bound_of(release)) * sqrt(factor / (2 * rho)))
        assert release.scale in randomness.scales("gaussian")


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_two_thresholds_a_campaign_and_the_right_scales(adjacency: Adjacency) -> None:
    """Fails if a threshold is drawn anew, or noise is for monotone queries when they are not."""
    mechanism = planned(SLOTS, adjacency=adjacency, adsbpc={"bounds": "svt"})
    randomness = RecordingRandomness()
    run_saved(mechanism, surge(), randomness)
    scales = sparse_vector_scales(
        pure_epsilon(Fraction(15, 200)), 7, monotone=adjacency is Adjacency.ADD_REMOVE
    )
    drawn = randomness.scales("laplace")
    assert drawn.count(scales.threshold) == 2
    assert set(drawn) == {scales.threshold, scales.query}
    epsilon = float(exponential_epsilon(Fraction(15, 700)))
    assert randomness.scales("choose") == [pytest.approx(200 / epsilon)] * 7
    assert min(randomness.scales("choose")) >= 200 / epsilon


def test_every_look_at_users_is_noised() -> None:
    """As many noisy draws as questions: a decision on a bare count would leave one out."""
    mechanism, data, randomness = (
        planned(SLOTS, adsbpc={"bounds": "svt"}),
        surge(),
        RecordingRandomness(),
    )
    run_saved(mechanism, data, randomness)
    kinds = [kind for kind, _, _ in data.asked]
    assert kinds.count("histogram") == len(randomness.scales("choose")) == 7
    assert kinds.count("totals") == len(randomness.scales("gaussian")) == SLOTS
    # Two of the draws are thresholds. A vector that has made all its reports draws no more.
    assert len(randomness.scales("laplace")) - 2 <= kinds.count("users_above")


def test_a_report_follows_the_noisy_count() -> None:
    """500 users above the bound, but noise of -10,000 on every query: nothing may be raised."""
    scales = sparse_vector_scales(pure_epsilon(Fraction(15, 200)), 7, monotone=True)
    hushed = RecordingRandomness(
        lambda kind, scale, before: -10_000 if scale == scales.query else 0
    )
    _, state = run_saved(planned(SLOTS, adsbpc={"bounds": "svt"}), surge(), hushed)
    assert set(state.bounds) == {1}
    _, state = run_saved(planned(SLOTS, adsbpc={"bounds": "svt"}), surge(), RecordingRandomness())
    assert max(state.bounds) > 1


def test_reports_are_counted_across_saved_states() -> None:
    """Fails if a resumed sparse vector gets its reports back."""
    mechanism = planned(SLOTS, adsbpc={"bounds": "svt", "max_reports": 3})
    _, state = run_saved(mechanism, surge(), RecordingRandomness())
    assert state.secret["up"][0] == 0
    usual = [1] * 7
    raised = 0
    for bound in state.bounds[7:]:
        mean = int(Fraction(sum(usual[-7:]), 7) + Fraction(1, 2))
        raised += bound > mean
        usual.append(bound)
    assert raised == 3


def test_the_threshold_is_noisy_and_kept() -> None:
    scales = sparse_vector_scales(pure_epsilon(Fraction(15, 200)), 7, monotone=True)
    script = RecordingRandomness(
        lambda kind, scale, before: 10_000 + before if scale == scales.threshold else 0
    )
    _, state = run_saved(planned(SLOTS, adsbpc={"bounds": "svt"}), surge(), script)
    assert (state.secret["up"], state.secret["down"]) == ([7, 10_000], [7, 10_001])
    assert set(state.bounds) == {1}


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_histograms_are_noised(adjacency: Adjacency) -> None:
    """Fails if the bare histogram is kept."""
    mechanism, data = planned(SLOTS, adjacency=adjacency), surge()
    scale = gaussian_scale(histogram_squared(adjacency), Fraction(3, 10) / SLOTS)
    script = RecordingRandomness(lambda kind, drawn, before: 77 if drawn == scale else 0)
    _, state = run_saved(mechanism, data, script)
    assert script.scales("gaussian").count(scale) == SLOTS
    assert state.histograms[0][:2] == [500 + 77, 77]


def test_the_unbounded_quantile_draws_general_noise() -> None:
    mechanism = planned(3, adsbpc={"bounds": "svt", "quantile_slots": 3, "quantile_limit": "none"})
    data = RecordingContributions([("u", 1, 0)], UNIT, 3, LAYOUT)
    randomness = RecordingRandomness()
    run_saved(mechanism, data, randomness)
    scales = sparse_vector_scales(pure_epsilon(Fraction(3, 30)), 1, monotone=False)
    assert set(randomness.scales("laplace")) == {scales.threshold, scales.query}
    assert randomness.scales("laplace").count(scales.threshold) == 3


def test_lost_secrets_are_refused() -> None:
    mechanism, data = planned(SLOTS, adsbpc={"bounds": "svt"}), surge()
    state = BoundedState()
    for _ in range(9):
        _, state = mechanism.release(state, data, RecordingRandomness())
    lost = replace(state, secret={})
    with pytest.raises(PrivacyError, match="secret state of the sparse vectors is lost"):
        mechanism.release(lost, data, RecordingRandomness())


def test_the_state_of_another_plan_is_refused() -> None:
    data = surge()
    _, state = planned(SLOTS, {"weights": [1.0] * SLOTS}).release(
        BoundedState(), data, RecordingRandomness()
    )
    other = planned(SLOTS, {"weights": [1.0] * (SLOTS - 1) + [7.0]})
    with pytest.raises(PrivacyError, match="belongs to another plan"):
        other.release(state, data, RecordingRandomness())


def test_a_slot_that_would_overspend_is_refused() -> None:
    mechanism, data = planned(SLOTS), surge()
    _, state = mechanism.release(BoundedState(), data, RecordingRandomness())
    spent = replace(state, spent=PICO_RHO - 1)
    with pytest.raises(PrivacyError, match=r"slot 2 would bring what is spent to 1\.\d+, but"):
        mechanism.release(spent, data, RecordingRandomness())


def test_bounds_have_a_public_end() -> None:
    """An error that only large bounds meet would tell that they were reached."""
    section = {
        "bounds": "svt", "quantile_slots": 1, "quantile_limit": 100_000, "scale_up": 100.0,
        "threshold": 0,
    }  # fmt: skip
    rows = [(f"u{k}", slot, 0) for k in range(300) for slot in range(1, 5)]
    heavy = RecordingContributions(rows, 2_000_000 * UNIT // 1_000, 4, LAYOUT)
    mechanism = planned(4, rho=4, adsbpc=section)
    _, state = run_saved(mechanism, heavy, RecordingRandomness(lambda kind, scale, before: 10**6))
    assert max(state.bounds) <= 1_000_000
