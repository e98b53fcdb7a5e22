"""AdsBPC slot by slot: bounds, charges, state, answers, empty slots."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

from adsbpc.contributions import ArrayContributions
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms import BoundedState, split_of
from adsbpc.mechanisms.bounds import HISTOGRAM_EDGES, HistogramTracker
from adsbpc.model import PICO_RHO, Adjacency, Layout
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.privacy import SecureRandomness, SeededRandomness
from tests.estimates import by_cell
from tests.mechanisms.campaigns import LAYOUT, bound_of, conversions, planned, run, spec_of

TRACKERS: list[dict[str, Any]] = [
    {"bounds": "histogram"},
    {"bounds": "svt"},
    {"bounds": "svt", "quantile_limit": "none"},
    {"bounds": "fixed", "bound": 2},
]


def busy(slots: int, seed: int = 0, users: int = 2_000, rows: int = 12_000) -> ArrayContributions:
    rng = np.random.default_rng(seed)
    return ArrayContributions(
        rng.integers(0, users, rows), rng.integers(1, slots + 1, rows),
        rng.integers(0, 2, rows), np.full(rows, UNIT), slots, LAYOUT,
    )  # fmt: skip


@pytest.mark.parametrize("tracker", TRACKERS, ids=str)
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_charges_stay_within_the_promise_and_the_split(
    tracker: dict[str, Any], adjacency: Adjacency
) -> None:
    spec = spec_of(31, adjacency=adjacency, adsbpc=tracker)
    mechanism = planned(31, adjacency=adjacency, adsbpc=tracker)
    releases, _ = run(mechanism, busy(31), 5)
    parts: dict[str, Fraction] = {}
    for release in releases:
        for charge in release.charges:
            parts[charge.part] = parts.get(charge.part, Fraction(0)) + Fraction(
                charge.pico_rho, PICO_RHO
            )
    split = split_of(spec)
    assert parts.keys() == split.keys()
    assert sum(split.values()) == mechanism.guarantee.rho == 1
    for part, spent in parts.items():
        assert split[part] * Fraction(999_999, 1_000_000) < spent <= split[part]


@pytest.mark.parametrize("tracker", TRACKERS, ids=str)
def test_bounds_are_whole_and_appended_once(tracker: dict[str, Any]) -> None:
    """A quantile of 10 followed by many reports downwards must end at 1, never at 0."""
    quiet = conversions([("u", slot, 0) for slot in range(1, 32)], 31)
    for data in (quiet, busy(31)):
        releases, state = run(planned(31, adsbpc=tracker), data, 2)
        assert state.bounds == [release.bound for release in releases]
        assert len(state.bounds) == len(state.values) == len(state.scales) == 31
        assert all(isinstance(bound, int) and bound >= 1 for bound in state.bounds)


def test_the_scale_belongs_to_the_bound() -> None:
    releases, _ = run(planned(31, adsbpc={"bounds": "svt"}), busy(31), 3)
    mechanism = planned(31, adsbpc={"bounds": "svt"})
    for release, rho in zip(releases, mechanism.slot_rho, strict=True):
        assert release.scale == pytest.approx(bound_of(release) * UNIT / sqrt(2 * rho), rel=1e-12)


@pytest.mark.parametrize("tracker", TRACKERS, ids=str)
def test_state_can_be_saved_and_resumed_at_every_slot(tracker: dict[str, Any]) -> None:
    mechanism, data = planned(12, adsbpc=tracker), busy(12)
    straight = BoundedState()
    steps: list[dict[str, Any]] = []
    for slot in range(1, 13):
        one, straight = mechanism.release(straight, data, SeededRandomness(slot))
        resumed = BoundedState.from_steps(json.loads(json.dumps(steps)))
        other, after = planned(12, adsbpc=tracker).release(resumed, data, SeededRandomness(slot))
        steps.append(after.last_step())
        assert one == other
        assert straight == after


def test_a_release_leaves_the_old_state_alone() -> None:
    mechanism, before = planned(5), BoundedState()
    mechanism.release(before, busy(5), SeededRandomness(1))
    assert before == BoundedState()


@pytest.mark.parametrize("tracker", TRACKERS, ids=str)
@pytest.mark.parametrize("rows", [[], [("u", 3, 1)]], ids=["nobody", "one user in one slot"])
def test_empty_slots_are_released_too(
    tracker: dict[str, Any], rows: list[tuple[str, int, int]]
) -> None:
    releases, _ = run(planned(9, adsbpc=tracker), conversions(rows, 9), SecureRandomness())
    assert [release.slot for release in releases] == list(range(1, 10))
    for release in releases:
        assert len(release.values) == len(LAYOUT)
        assert {a.keys for a in by_cell(release)} == set(LAYOUT.names(1))
        assert release.randomness == "opendp"
        assert any(charge.part == "measurement" for charge in release.charges)


def test_outputs_are_integers_on_the_grid() -> None:
    releases, _ = run(planned(5), busy(5), 1)
    assert all(type(value) is int for release in releases for value in release.values)


def test_answers_are_sums_of_what_was_released() -> None:
    releases, state = run(planned(10), busy(10), 4)
    values = np.array(state.values) / UNIT
    for release in releases:
        expected = values[: release.slot].sum(axis=0)
        added = release.answers[-1].added
        found = [answer.value for answer in by_cell(release)]
        np.testing.assert_allclose(found, expected + added * np.array(release.spread), rtol=1e-12)
        noise = sqrt(sum(scale**2 for scale in state.scales[: release.slot])) / UNIT
        assert all(answer.standard_error >= noise for answer in by_cell(release))


def test_standard_errors_are_the_spread_of_the_error() -> None:
    """Over 400 runs the error of each answer has the standard deviation that was stated."""
    mechanism = planned(
        4, {"queries": "sliding", "window": 2}, adsbpc={"bounds": "fixed", "bound": 2}
    )
    data = conversions([("u", 1, 0), ("v", 2, 0), ("v", 2, 1), ("w", 4, 1)], 4)
    truth = {(1, "A"): 1, (1, "other"): 0, (2, "A"): 2, (2, "other"): 1,
             (3, "A"): 1, (3, "other"): 1, (4, "A"): 0, (4, "other"): 1}  # fmt: skip
    standardised = []
    for seed in range(400):
        releases, _ = run(mechanism, data, seed)
        for release in releases:
            for answer in by_cell(release):
                error = answer.value - truth[release.slot, answer.keys[0]]
                standardised.append(error / answer.standard_error)
    # Mean and variance of 3,200 standardised errors, some correlated: bounds of over 6 sigma.
    assert abs(np.mean(standardised)) < 0.2
    assert abs(np.var(standardised) - 1) < 0.25


@pytest.mark.slow
def test_the_constant_of_the_papers_first_scenario() -> None:
    """n = 31, gamma_n = 7, all of rho = 1 on measurement, nothing cut: 5.643 r."""
    gammas = np.ones(31)
    gammas[-1] = 7
    bound = 3
    mechanism = planned(
        31, {"weights": gammas.tolist()}, adsbpc={"bounds": "fixed", "bound": bound}
    )
    nobody = conversions([], 31)
    squares = []
    for seed in range(1_500):
        releases, _ = run(mechanism, nobody, seed)
        errors = np.array([[a.value for a in by_cell(release)] for release in releases])
        squares.append((gammas[:, None] ** 2 * errors**2).sum(axis=0))
    mean_square = np.mean(squares)
    found = np.sqrt(mean_square) / 31
    # The standard error of a root mean square, from the spread of the squares.
    spread = np.std(squares) / sqrt(np.size(squares)) / (2 * np.sqrt(mean_square)) / 31
    assert abs(found - 5.643 * bound) < 5 * spread
    assert spread < 0.02 * found


def test_slots_end() -> None:
    _, state = run(planned(3), busy(3), 1)
    with pytest.raises(PrivacyError, match="all 3 slots are released"):
        planned(3).release(state, busy(3), SeededRandomness(1))


def test_another_layout_is_refused() -> None:
    strange = ArrayContributions([], [], [], [], 3, Layout.of_publishers(("B", "other")))
    with pytest.raises(PrivacyError, match="of the planned layout"):
        planned(3).release(BoundedState(), strange, SeededRandomness(1))


def test_the_histogram_finds_a_good_bound() -> None:
    """Everybody converts twice in a slot: a bound of 2 cuts nothing, and 1 would cut half."""
    rows = [(f"u{k}", slot, k % 2) for k in range(1_000) for slot in range(1, 11) for _ in range(2)]
    for seed in range(5):
        _, state = run(planned(10), conversions(rows, 10), seed)
        assert state.bounds == [2] * 10


@pytest.mark.slow
def test_the_histogram_is_not_fooled_by_noise() -> None:
    """Nobody contributes: over 200 campaigns the bound stays at 1 nearly always, and noise never
    lifts it far."""
    mechanism, nobody = planned(31), conversions([], 31)
    bounds = np.array([run(mechanism, nobody, seed)[1].bounds for seed in range(200)])
    assert (bounds == 1).mean() > 0.95
    assert (bounds > 8).mean() < 0.001


def test_the_sparse_vector_follows_a_surge() -> None:
    rows = [(f"u{k}", slot, 0) for k in range(3_000) for slot in range(1, 32)
            for _ in range(1 if slot < 15 else 8)]  # fmt: skip
    mechanism = planned(31, rho=4, adsbpc={"bounds": "svt"})
    _, state = run(mechanism, conversions(rows, 31), 1)
    assert max(state.bounds[:7]) <= 3
    assert state.bounds[-1] > state.bounds[13]


@pytest.mark.parametrize("slots", [1, 7, 31, 32, 365, 8_760])
def test_checkpoints_share_the_budget(slots: int) -> None:
    tracker = HistogramTracker(Adjacency.ADD_REMOVE, Fraction(3, 10), slots, 2, 1.0, 1.0)
    looks = sum(tracker.is_checkpoint(slot) for slot in range(1, slots + 1))
    assert tracker.is_checkpoint(1)
    assert 1 <= looks <= 31
    assert 0 <= Fraction(3, 10) - looks * tracker.rho_each < Fraction(looks, PICO_RHO)


def test_histogram_bins_grow() -> None:
    assert list(HISTOGRAM_EDGES) == sorted(set(HISTOGRAM_EDGES))
    assert HISTOGRAM_EDGES[0] == 1


def test_expected_errors_are_those_of_a_run() -> None:
    mechanism = planned(8, adsbpc={"bounds": "fixed", "bound": 4}, adjacency="substitute")
    releases, _ = run(mechanism, conversions([], 8), 1)
    stated = {(r.slot, a.query): a.standard_error for r in releases for a in by_cell(r)}
    expected = {(slot, query): error for slot, query, error in mechanism.expected_errors(4, 1)}
    assert expected.keys() == stated.keys()
    for key, error in expected.items():
        assert error == pytest.approx(stated[key], rel=1e-9)
