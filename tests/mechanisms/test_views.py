"""Views under both mechanisms: errors of every level are those that are stated, and sums add up."""

from __future__ import annotations

from dataclasses import asdict, replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import (
    BoundedState,
    Question,
    RowsState,
    plan_adsbpc,
)
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Adjacency, Dimension, Drawn, Guarantee, Layout, Measured
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release_spec import AdsBPCSection, PersonalBudgetSection
from adsbpc.privacy import SeededRandomness
from adsbpc.workloads import WeightedSquaredError, prefix_sums
from tests.effort import first

SLOTS, RUNS = 3, 300
LAYOUT = Layout(
    (Dimension("publisher", ("a", "b", "c", "other")), Dimension("country", ("x", "y", "other"))),
    (1, 4, 4),
)
# Everybody once, so that nothing is cut.
PEOPLE = ArrayContributions(
    [f"u{k}" for k in range(240)], [1 + k % SLOTS for k in range(240)],
    [k % len(LAYOUT) for k in range(240)], [UNIT] * 240, SLOTS, LAYOUT,
)  # fmt: skip
TRUTH = np.cumsum(
    [
        np.bincount(
            [k % len(LAYOUT) for k in range(240) if k % SLOTS == slot], minlength=len(LAYOUT)
        )
        for slot in range(SLOTS)
    ],
    axis=0,
)


def question(adjacency: Adjacency) -> Question:
    guarantee = Guarantee(Fraction(1), adjacency, "test")
    return Question(guarantee, LAYOUT, (prefix_sums(SLOTS),), WeightedSquaredError(None), 1 / UNIT)


def releases(mechanism: str, adjacency: Adjacency, seed: int) -> list[Drawn]:
    randomness, found = SeededRandomness(seed), []
    if mechanism == "adsbpc":
        section = AdsBPCSection(bounds="fixed", bound=1)
        bounded, kept = plan_adsbpc(question(adjacency), section), BoundedState()
        for _ in range(SLOTS):
            drawn, kept = bounded.release(kept, PEOPLE, randomness)
            found.append(drawn)
        return found
    personal = plan_by_rows(question(adjacency), PersonalBudgetSection(allowance=4.0))
    accounts, state = ArrayAccounts(CellIndex.of(PEOPLE, personal.counted)), RowsState()
    for _ in range(SLOTS):
        drawn, state = personal.release(state, accounts, randomness)
        found.append(drawn)
    assert not any(row[-1] for row in state.kept), "something was cut: this tests something else"
    return found


@pytest.mark.parametrize("adjacency", first(1, list(Adjacency)))
@pytest.mark.parametrize("mechanism", ["adsbpc", "personal-budget"])
def test_errors_of_every_view_are_those_stated(mechanism: str, adjacency: Adjacency) -> None:
    """Over 300 runs the standardised errors of a view's sums have mean 0 and variance 1."""
    scores: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for seed in range(RUNS):
        for slot, drawn in enumerate(releases(mechanism, adjacency, seed), start=1):
            cells = TRUTH[slot - 1].reshape(4, 3)
            truth = {0: [cells.sum()], 1: cells.sum(axis=1), 2: cells.ravel()}
            for answers in drawn.answers:
                depth = len(answers.view)
                # Nothing was cut here: where noise looked like it, errors are larger.
                if answers.added == 0:
                    scores[depth] += list(
                        (np.array(answers.values) - truth[depth]) / answers.errors
                    )
    for depth, found in scores.items():
        # Slots of a run go together: as if there were a third as many.
        independent = RUNS * LAYOUT.sizes[depth]
        assert abs(np.mean(found)) < 5 / sqrt(independent)
        assert abs(np.var(found) - 1) < 6 * sqrt(2 / independent)


def test_people_who_are_counted_once_are_no_sums() -> None:
    """One person with both publishers is one of all people; every figure has noise of its own, of
    the size that is stated."""
    layout = Layout((Dimension("publisher", ("a", "other")),), (1, 1), once=True)
    # Cells are everything, then publishers; on the second slot everybody comes again.
    rows = [(f"u{k}", slot, cell) for k in range(50) for slot in (1, 2) for cell in (0, 1, 2)]
    users, slots, cells = (list(column) for column in zip(*rows, strict=True))
    people = ArrayContributions(users, slots, cells, [UNIT] * len(rows), SLOTS, layout)
    asked = replace(question(Adjacency.ADD_REMOVE), layout=layout)
    mechanism = plan_by_rows(asked, PersonalBudgetSection(allowance=4.0))
    scores: list[float] = []
    for seed in range(RUNS):
        accounts, state = ArrayAccounts(CellIndex.of(people)), RowsState()
        randomness = SeededRandomness(seed)
        for _ in range(SLOTS):
            drawn, state = mechanism.release(state, accounts, randomness)
        assert not any(state.kept[1]), "somebody was counted again"
        total, publishers = drawn.running_totals
        if total.added == 0:
            assert total.standard_error == publishers.standard_error
            found = (*total.values, *publishers.values)
            scores += [(value - 50) / total.standard_error for value in found]
    assert len(scores) > 2 * RUNS
    assert abs(np.mean(scores)) < 5 / sqrt(len(scores))
    assert abs(np.var(scores) - 1) < 6 * sqrt(2 / len(scores))


@pytest.mark.parametrize("mechanism", ["adsbpc", "personal-budget"])
def test_everything_adds_up(mechanism: str) -> None:
    for drawn in releases(mechanism, Adjacency.ADD_REMOVE, 1):
        for total, publishers, cells in (drawn.answers, drawn.slot_totals, drawn.running_totals):
            rows = np.array(cells.values).reshape(4, 3)
            np.testing.assert_allclose(rows.sum(axis=1), publishers.values, atol=1e-9)
            assert sum(publishers.values) == pytest.approx(total.values[0], abs=1e-9)


@pytest.mark.parametrize("mechanism", ["adsbpc", "personal-budget"])
def test_the_total_is_better_than_a_sum_of_cells(mechanism: str) -> None:
    """Of 12 cells: less than 3.46 times one of them."""
    (last,) = releases(mechanism, Adjacency.ADD_REMOVE, 2)[-1:]
    total, _, cells = last.running_totals
    assert total.added == 0
    assert total.standard_error < 0.75 * sqrt(len(LAYOUT)) * cells.standard_error


def test_plans_state_the_errors_of_every_view() -> None:
    section = AdsBPCSection(bounds="fixed", bound=1)
    mechanism = plan_adsbpc(question(Adjacency.ADD_REMOVE), section)
    drawn = releases("adsbpc", Adjacency.ADD_REMOVE, 1)
    for depth in range(3):
        stated = [error for _, _, error in mechanism.expected_errors(1, depth)]
        assert stated == pytest.approx([each.answers[depth].standard_error for each in drawn])


def test_what_was_cut_is_counted_finely_for_a_total_and_as_ever_without() -> None:
    """It stands in one column, whose cost no view adds to, and in a total with all its noise. A
    conversion that is cut is counted in every view."""
    errors, shares = [], []
    for weights in ((1, 8, 8), (1, 2, 2), (0, 8, 8), (0, 0, 1)):
        asked = replace(question(Adjacency.ADD_REMOVE), layout=Layout(LAYOUT.dimensions, weights))
        own = plan_by_rows(asked, PersonalBudgetSection()).measurement
        errors.append(own.scale / own.multipliers(4.0, 1.0)[1] / own.times_cut)
        shares.append(float(own.shares[1]))
    assert shares == [0.09, 0.2, 0.02, 0.02]
    finer, finest, _, plain = errors
    assert finer == pytest.approx(1.5 * plain * sqrt(0.02 / 0.09), rel=0.01)
    assert finest == pytest.approx(1.5 * plain * sqrt(0.02 / 0.2), rel=0.01)


def test_running_campaigns_count_what_is_cut_as_they_began() -> None:
    asked, section = question(Adjacency.ADD_REMOVE), PersonalBudgetSection()
    new = plan_by_rows(asked, section)
    stored = asdict(new.stored_plan())
    assert stored.pop("has_fine_cut")
    # Nor do those with an allowance that is known to suit people need more.
    assert not plan_by_rows(asked, PersonalBudgetSection(allowance=4.0)).has_fine_cut
    before = plan_by_rows(asked, section, StoredPlan.from_object(stored))
    assert float(before.measurement.shares[1]) == 0.02
    assert before.stored_plan() == StoredPlan.from_object(stored)
    assert plan_by_rows(asked, section, new.stored_plan()).fingerprint == new.fingerprint


def test_an_earlier_campaign_that_told_apart_less() -> None:
    """Its histograms say where to start, whatever its cells were."""
    layout = Layout.of_publishers(["a", "other"])
    people = ArrayContributions(
        [f"u{k}" for k in range(900)], [1 + k % SLOTS for k in range(900)],
        [k % 2 for k in range(900)], [UNIT] * 900, SLOTS, layout,
    )  # fmt: skip
    before = plan_by_rows(
        replace(question(Adjacency.ADD_REMOVE), layout=layout), PersonalBudgetSection()
    )
    accounts, state, earlier = ArrayAccounts(CellIndex.of(people)), RowsState(), []
    for _ in range(SLOTS):
        drawn, state = before.release(state, accounts, SeededRandomness(1))
        earlier.append(Measured(**dict(drawn), measure="conversions", metric="conversions"))
    started = plan_by_rows(
        question(Adjacency.ADD_REMOVE), PersonalBudgetSection(), None, tuple(earlier)
    )
    assert started.allowance is not None
    assert started.allowance > 0
