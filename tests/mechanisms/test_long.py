"""Long campaigns: strategies of decaying powers come near the square root's error, nothing is lost
for want of a matrix, and rows, answers and charges are what they should be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from adsbpc.contributions import CellIndex
from adsbpc.contributions.long_arrays import LongArrayAccounts
from adsbpc.contributions.reference import Row
from adsbpc.mechanisms.by_rows.planning import _paced, split_personal
from adsbpc.mechanisms.by_slots.decay_fit import (
    Decays,
    best_decays,
    largest_error,
    near_toeplitz,
    on_long_grid,
    toeplitz_entries,
    typical_cost,
    variances,
)
from adsbpc.mechanisms.by_slots.mechanism import BudgetBySlots
from adsbpc.mechanisms.by_slots.mixes import DecayingMix, DenseForecast, LongForecast, query_row
from adsbpc.mechanisms.by_slots.planning import plan_long
from adsbpc.mechanisms.by_slots.state import SlotsState
from adsbpc.mechanisms.interface import Question
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Adjacency, Guarantee, Layout, StoredPlan
from adsbpc.model.release import Drawn
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import LIMIT, SeededRandomness
from adsbpc.workloads import (
    MatrixQueries,
    MaxVariance,
    WeightedSquaredError,
    per_slot,
    prefix_sums,
    sliding_windows,
    slot_ranges,
)
from tests.contributions.rows import arrays_of
from tests.mechanisms.campaigns import Given
from tests.mechanisms.test_adoption import release_of

LAYOUT = Layout.of_publishers(("P-1", "P-2", "other"))


def above_the_square_root(decays: Decays, slots: int) -> float:
    """By how much the largest error of running totals is above that of the square root."""
    wished = float((toeplitz_entries(slots, 0.5) ** 2).sum()) ** 2
    return float(np.sqrt(largest_error(decays.entries(slots), decays.inverse(slots)) / wished)) - 1


@pytest.mark.parametrize(
    ("slots", "sums", "most"),
    [
        (31, 2, 0.0003),
        (365, 3, 0.001),
        pytest.param(8_760, 4, 0.0022, marks=pytest.mark.slow),
    ],
)
def test_a_few_powers_are_as_good_as_the_square_root(slots: int, sums: int, most: float) -> None:
    assert -0.001 < above_the_square_root(near_toeplitz(slots, 0.5, sums), slots) < most


@pytest.mark.slow
def test_a_year_of_hours_in_integers_is_within_three_percent_of_the_square_root() -> None:
    """As it is charged: what somebody costs who comes once is exact, and rows are whole numbers."""
    slots = 8_784
    strategy = on_long_grid(near_toeplitz(slots, 0.5), slots)
    own, last = strategy.crossing(1).own, DecayingMix(strategy).variances(prefix_sums(slots))[-1]
    assert np.sqrt(own * last) < 1.03 * (toeplitz_entries(slots, 0.5) ** 2).sum()


def test_strategies_follow_what_is_asked() -> None:
    """Single slots want independent noise, and everything else some of it."""
    slots = 200
    alone = best_decays(per_slot(slots), WeightedSquaredError(), 2.0, sums=2)
    together = best_decays(prefix_sums(slots), MaxVariance(), 2.0, sums=2)
    assert alone.entries(slots)[1:].sum() < 0.05
    assert together.entries(slots)[1:].sum() > 2
    root, workload = toeplitz_entries(slots, 0.5), prefix_sums(slots)
    inverse = toeplitz_entries(slots, -0.5)
    ours = variances(together.inverse(slots), workload).max()
    ours *= typical_cost(together.entries(slots), 2.0)
    assert ours <= variances(inverse, workload).max() * typical_cost(root, 2.0)


# ---- without a matrix ----------------------------------------------------------------------------

SLOTS = 40
DECAYS = Decays(np.array([0.2, 0.1]), np.array([0.5, 0.95]))
STRATEGY = on_long_grid(DECAYS, SLOTS)
MIX = DecayingMix(STRATEGY)


def matrix() -> np.ndarray:
    full = np.zeros((SLOTS, SLOTS))
    for slot, row in enumerate(STRATEGY.rows):
        full[slot, : slot + 1] = row
    return full


INVERSE = np.linalg.inv(matrix())
WORKLOADS = (
    prefix_sums(SLOTS),
    per_slot(SLOTS),
    sliding_windows(SLOTS, 7),
    slot_ranges(SLOTS, ((1, 9), (5, 9), (12, 40), (40, 40))),
    MatrixQueries(SLOTS, ("odd", "late"), np.array([SLOTS, SLOTS]), np.array(
        [[k % 2 + 0.5 for k in range(SLOTS)], [0.0] * 30 + [-1.0] * 10])),
)  # fmt: skip


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.names[-1])
def test_variances_are_those_of_dense_algebra(workload: object) -> None:
    queries = workload.answers(np.eye(SLOTS))  # type: ignore[attr-defined]
    expected = ((queries @ INVERSE) ** 2).sum(axis=1)
    assert np.allclose(MIX.variances(workload), expected)  # type: ignore[arg-type]
    for row, query in enumerate(queries):
        assert np.allclose(query_row(workload, row, SLOTS), query)  # type: ignore[arg-type]
        assert np.allclose(MIX.mixed(query), query @ INVERSE)


def test_rows_are_solved_as_by_dense_algebra() -> None:
    values = np.random.default_rng(0).normal(size=(25, 3))
    assert np.allclose(MIX.solved(values), INVERSE[:25, :25] @ values)


def test_forecasts_are_those_of_dense_algebra() -> None:
    """With fewer queries than stand for all, every one counts."""
    workload, weights = prefix_sums(SLOTS), np.arange(1.0, SLOTS + 1)
    queries = workload.answers(np.eye(SLOTS))
    noise = (queries.T @ (weights[:, None] * queries)) * (INVERSE @ INVERSE.T) * 3.0**2
    past = [2.0] * 5 + [3.5] * 7
    ours = LongForecast(MIX, workload, weights, 3.0).parts(past)
    assert np.allclose(ours, DenseForecast(noise).parts(past))


# ---- a run ---------------------------------------------------------------------------------------


class Quiet(SeededRandomness):
    """Histograms have noise, rows have none: answers must be what was let in."""

    def gaussian(self, scale: float, size: int) -> np.ndarray:
        drawn = super().gaussian(scale, size)
        return drawn if size > 10 else 0 * drawn


def planned(slots: int, **section: object) -> BudgetBySlots:
    question = Question(
        Guarantee(Fraction(1), Adjacency.ADD_REMOVE, "acme"),
        LAYOUT,
        (prefix_sums(slots),),
        WeightedSquaredError(),
        1 / UNIT,
    )
    own = PersonalBudgetSection.model_validate(section)
    split, strategy = (
        split_personal(Fraction(1), own, slots, len(LAYOUT)),
        on_long_grid(DECAYS, slots),
    )
    decays = ((strategy.first,), strategy.weights, strategy.rates)
    slot_rho = _paced(split["measurement"], slots)
    return plan_long(question, own, split, slot_rho, StoredPlan((), decays=decays))


def world(slots: int) -> list[Row]:
    rng = np.random.default_rng(4)
    return [
        Row(f"u{user}", int(slot), int(rng.integers(0, 3)), UNIT * int(rng.integers(1, 4)))
        for user in range(3000)
        for slot in rng.integers(1, slots + 1, 1 + user % 6)
    ]


def run(mechanism: BudgetBySlots, rows: Sequence[Row], seed: int) -> tuple[list[Drawn], SlotsState]:
    accounts = LongArrayAccounts(CellIndex.of(arrays_of(rows, mechanism.slots, LAYOUT)))
    state, released = SlotsState(), list[Drawn]()
    for _ in range(mechanism.slots):
        drawn, state = mechanism.release(state, accounts, Quiet(seed))
        released.append(drawn)
    return released, state


def test_answers_are_what_was_let_in() -> None:
    """Through changes of the allowance: every slot is divided by the multiplier that it had."""
    released, state = run(planned(24), world(24), seed=1)
    assert len(set(state.multipliers)) > 1, "the allowance never changed: this tests little"
    running = np.cumsum(np.array(state.kept)[:, :3], axis=0) / UNIT
    for drawn, exact in zip(released, running, strict=True):
        (answer,) = [each for each in drawn.running_totals if each.view == ("publisher",)]
        assert np.allclose(answer.values, exact, rtol=1e-6, atol=1e-6)
        assert answer.standard_error > 0


def test_nobody_moves_a_row_by_more_than_was_charged() -> None:
    """Totals with somebody less totals without: squared over all rows, within the limit."""
    mechanism, rows = planned(24, allowance=2.0), world(24)
    heavy = [Row("heavy", slot, 0, 9 * UNIT) for slot in range(1, 25)]
    (_, without), (_, with_them) = run(mechanism, rows, 1), run(mechanism, rows + heavy, 1)
    shift = np.array(with_them.values, dtype=object) - np.array(without.values, dtype=object)
    squared = sum(int(each) ** 2 for each in shift.ravel())
    assert LIMIT * 8 // 10 < squared <= LIMIT


def test_charges_are_within_the_promise_and_looks_are_paid() -> None:
    mechanism = planned(24)
    released, state = run(mechanism, world(24), seed=2)
    assert Fraction(state.spent, 10**12) <= 1
    for drawn in released:
        looked = any(line.part == "histogram" for line in drawn.charges)
        assert looked == (drawn.slot in mechanism.looks) == bool(drawn.histogram)


def test_a_campaign_goes_on_from_what_was_released() -> None:
    """Users are admitted again under the terms that were published, and nothing is drawn."""
    mechanism, index = planned(12), CellIndex.of(arrays_of(world(12), 12, LAYOUT))
    accounts, again = LongArrayAccounts(index), LongArrayAccounts(index)
    state, randomness = SlotsState(), SeededRandomness(3)
    for _ in range(mechanism.slots):
        drawn, after = mechanism.release(state, accounts, randomness)
        assert mechanism.adopt(state, Given(again), release_of(drawn)) == [after]
        state = after
    steps = json.loads(json.dumps([state.last_step()]))
    assert mechanism.resume(steps).kept == [state.kept[-1]]


def test_another_strategy_is_another_plan() -> None:
    mechanism = planned(24)
    other = replace(
        mechanism,
        mix=DecayingMix(replace(mechanism.mix.strategy, first=100)),  # type: ignore[arg-type]
    )
    assert other.fingerprint != mechanism.fingerprint
