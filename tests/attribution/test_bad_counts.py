"""Counts as bad as data and noise can make them: every estimator still gives valid parameters."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.attribution import count_set, fit_again, fitted_model, set_name
from adsbpc.attribution.counts import Coalitions, Transitions
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.attribution.fits import Integers
from adsbpc.errors import SpecError
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.privacy import full_weight, user_weight
from tests.attribution.fits import (
    MODELS,
    User,
    any_fit,
    check_fit,
    check_units,
    exact_counts,
    fit_from,
    names,
)
from tests.effort import examples, first

PLAYERS = 4
EVERY_JOURNEY = [
    members for size in range(1, PLAYERS + 1) for members in permutations(range(PLAYERS), size)
]
# With a holdout group and without, where a model has a use for one.
SETTINGS = [
    (model, order, holdout)
    for model, order in MODELS
    for holdout in ([False] if model == "markov" else [False, True])
]
every_setting = pytest.mark.parametrize(("model", "order", "holdout"), SETTINGS)

GREAT = 10**15


def check(
    model: str, order: int, holdout: bool, values: Integers, unit: int = 1, scale: float = 0.0
) -> None:
    publishers = names(PLAYERS)
    fit = fit_from(model, order, values, publishers, holdout=holdout, full_weight=unit, scale=scale)
    check_fit(fit, EVERY_JOURNEY)


def cells(model: str, order: int, holdout: bool) -> int:
    return len(count_set(model, order, PLAYERS, holdout=holdout).cells)


@pytest.mark.parametrize("scale", [0.0, 3.0])
@pytest.mark.parametrize("value", first(3, [0, -1_000, GREAT, 1, -1, -GREAT]))
@every_setting
def test_the_same_count_everywhere(
    model: str, order: int, holdout: bool, value: int, scale: float
) -> None:
    check(model, order, holdout, np.full(cells(model, order, holdout), value), scale=scale)


@every_setting
@given(data=st.data())
@settings(max_examples=examples(5, 15))
def test_any_counts(model: str, order: int, holdout: bool, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.integers(-GREAT, GREAT) | st.integers(-50, 50), min_size=1))
    random = data.draw(st.randoms(use_true_random=False))
    values = [random.choice(some) for _ in range(cells(model, order, holdout))]
    unit = data.draw(st.sampled_from([1, 396_332, 2**20]))
    scale = data.draw(st.sampled_from([0.0, 0.5, 1e3, 1e9]))
    check(model, order, holdout, np.array(values, dtype=np.int64), unit, scale)


@every_setting
def test_nothing_but_noise(model: str, order: int, holdout: bool) -> None:
    """A campaign without users: what is released is noise alone."""
    size = cells(model, order, holdout)
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(0.0, 2.0**21, size)
        check(model, order, holdout, np.rint(noise).astype(np.int64), 2**18, 2.0**21)


# ---- journeys of users --------------------------------------------------------------------------

long_journey = tuple(touch % 3 for touch in range(1_000))
CROWDS: dict[str, list[User]] = {
    "nobody": [],
    "no conversions at all": [((0,), False), ((1, 2), False), ((0, 1, 2, 1), False)] * 50,
    "everybody converts": [((0,), True), ((1, 2), True), ((0, 1, 2, 1), True)] * 50,
    "a publisher never seen": [((0, 1), True), ((0,), False), ((1,), False), ((1, 2), True)] * 50,
    "only one ever seen": [((3,), True), ((3, 3), False)] * 50,
    "a journey of 1,000 touches": [(long_journey, True)],
    "such a journey among others": [(long_journey, False)] + [((0, 3), True), ((3,), False)] * 9,
    "converting is sure after one": [((0,), True), ((1,), False), ((1, 0), True)] * 50,
}


def weighed(model: str, order: int, holdout: bool, users: list[User]) -> tuple[Integers, int]:
    """Counts in units, each user with its weight."""
    counts = count_set(model, order, PLAYERS, holdout=holdout)
    values = np.zeros(len(counts.cells), dtype=np.int64)
    for journey, converted in users:
        added = cells_of(counts, journey, converted)
        weight = user_weight(sum(amount**2 for amount in added.values()), counts.full_squared)
        for cell, amount in added.items():
            values[counts.positions[cell]] += amount * weight
    return values, full_weight(counts.full_squared)


@pytest.mark.parametrize("crowd", first(1, sorted(CROWDS)))
@every_setting
def test_crowds_with_noise_and_without(model: str, order: int, holdout: bool, crowd: str) -> None:
    values, unit = weighed(model, order, holdout, CROWDS[crowd])
    check(model, order, holdout, values, unit)
    noise = np.random.default_rng(2).normal(0.0, 2.0**22, len(values))
    check(model, order, holdout, values + np.rint(noise).astype(np.int64), unit, 2.0**22)


@pytest.mark.parametrize("crowd", ["nobody", "no conversions at all"])
@pytest.mark.parametrize(("model", "order"), [each for each in MODELS if each[0] in
                         ("incremental_value", "probabilistic", "markov")])  # fmt: skip
def test_without_conversions_credit_is_shared_equally(model: str, order: int, crowd: str) -> None:
    """Nothing tells publishers apart."""
    values, unit = weighed(model, order, False, CROWDS[crowd])
    found = fitted_model(fit_from(model, order, values, names(PLAYERS), full_weight=unit))
    for members in EVERY_JOURNEY:
        assert check_units(found, members) == [UNIT // len(members)] * len(members)


@pytest.mark.parametrize(("model", "order"), MODELS)
def test_a_publisher_never_seen_takes_nothing_from_others(model: str, order: int) -> None:
    """The list may name publishers that do not deliver: a journey without them has the credits that
    it has where they are not listed."""
    users = CROWDS["a publisher never seen"]
    counted = [exact_counts(count_set(model, order, players), users) for players in (3, 4)]
    short, long = (
        fitted_model(
            fit_from(model, order, each.values.astype(np.int64), names(each.counts.players))
        )
        for each in counted
    )
    for members in permutations(range(3)):
        assert check_units(short, members) == pytest.approx(check_units(long, members), abs=20)


# ---- many publishers ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["shapley", "shapley_ordered", "logistic"])
@pytest.mark.parametrize("players", [14, 54, 62])
def test_coalitions_of_many_publishers(model: str, players: int) -> None:
    """Past twelve publishers small coalitions are counted; past 53 a mask is no exact float."""
    fit = any_fit(model, 1, names(players), seed=players)
    everybody = list(range(players))
    check_fit(fit, [[0], [players - 1], [0, players - 1], everybody, everybody[::-1]])


def test_coalitions_of_the_first_and_the_last_of_many_publishers() -> None:
    """v(A) = 0.2, v(Z) = 0.4, v(AZ) = 0.8: A adds 0.2 or 0.4, Z adds 0.4 or 0.6."""
    groups = (((0,), 20), ((61,), 40), ((0, 61), 80))
    users = [(journey, k < rate) for journey, rate in groups for k in range(100)]
    values = exact_counts(Coalitions(62), users).values.astype(np.int64)
    model = fitted_model(fit_from("shapley", 1, values, names(62)))
    assert check_units(model, [61, 0]) == pytest.approx([UNIT * 5 / 8, UNIT * 3 / 8], abs=2)
    ordered = fitted_model(fit_from("shapley_ordered", 1, values, names(62)))
    assert check_units(ordered, [61, 0]) == pytest.approx([UNIT / 2, UNIT / 2], abs=2)
    assert check_units(ordered, [0, 61]) == pytest.approx([UNIT / 4, UNIT * 3 / 4], abs=2)


def test_more_publishers_than_a_mask_has_bits_are_refused() -> None:
    assert Coalitions(62).largest == 2
    with pytest.raises(SpecError, match="lists 62, and a model of coalitions can tell 61 apart"):
        count_set("shapley", 1, 63)


def test_chains_of_too_many_states_are_refused() -> None:
    with pytest.raises(SpecError, match="order = 3: has too many states with 199 publishers"):
        _ = count_set("markov", 3, 200).cells
    with pytest.raises(SpecError, match="99 publishers would have more than 1,048,576 counts"):
        _ = Transitions(100, order=3).cells


@pytest.mark.parametrize(
    ("players", "largest", "cells"),
    [(1, 1, 2), (2, 2, 6), (13, 13, 16_382), (14, 6, 12_950), (20, 4, 12_390)],
)
def test_how_many_coalitions_are_counted(players: int, largest: int, cells: int) -> None:
    counts = Coalitions(players)
    assert (counts.largest, len(counts.cells)) == (largest, cells)
    assert len(counts.positions) == cells <= 2 * (2**13 - 1)


# ---- another model from the same counts ---------------------------------------------------------


@pytest.mark.parametrize(("model", "order"), MODELS)
@pytest.mark.parametrize(("other", "other_order"), MODELS)
def test_another_model_from_the_same_counts(
    model: str, order: int, other: str, other_order: int
) -> None:
    """It is the fit that would have been made, or there is a word on why it cannot be."""
    counts = count_set(model, order, PLAYERS)
    values = np.random.default_rng(4).integers(0, 500, len(counts.cells))
    fit = fit_from(model, order, values, names(PLAYERS), scale=7.0)
    same_counts = set_name(model) == set_name(other)
    if same_counts and ("markov" not in (model, other) or order == other_order):
        made = fit_from(other, other_order, values, names(PLAYERS), scale=7.0)
        assert fit_again(fit, other, other_order) == made.model_copy(
            update={"relative_noise": None}
        )
    else:
        message = "counts of another order" if same_counts else f"needs counts of {set_name(other)}"
        with pytest.raises(SpecError, match=message):
            fit_again(fit, other, other_order)
