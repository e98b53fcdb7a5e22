"""Workloads and objectives: ranges against matrices, closed forms against a convex solver."""

from __future__ import annotations

from pathlib import Path

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from adsbpc.errors import WorkloadError
from adsbpc.workloads import (
    MatrixQueries,
    MaxVariance,
    Objective,
    RangeSums,
    VarianceTargets,
    WeightedSquaredError,
    Workload,
    matrix_queries,
    per_slot,
    prefix_sums,
    sliding_windows,
    slot_ranges,
)
from adsbpc.workloads.queries import Reals


def as_matrix(workload: RangeSums) -> MatrixQueries:
    columns = np.arange(1, workload.slot_count + 1)
    inside = (columns >= workload.first[:, None]) & (columns <= workload.last[:, None])
    return MatrixQueries(
        workload.slot_count, workload.names, workload.slots, inside.astype(np.float64)
    )


range_workloads = st.integers(2, 12).flatmap(
    lambda n: st.one_of(
        st.just(prefix_sums(n)),
        st.just(per_slot(n)),
        st.integers(1, n).map(lambda w: sliding_windows(n, w)),
        st.lists(
            st.tuples(st.integers(1, n), st.integers(1, n)).map(lambda t: (min(t), max(t))),
            min_size=1,
            max_size=8,
        ).map(lambda ranges: slot_ranges(n, tuple(ranges))),
    )
)


@given(range_workloads, st.integers(0, 2**32 - 1))
def test_ranges_are_matrices(workload: RangeSums, seed: int) -> None:
    rng, matrix = np.random.default_rng(seed), as_matrix(workload)
    weights, slots = rng.random(len(workload.names)), rng.random(workload.slot_count)
    values = rng.normal(size=(workload.slot_count, 3))
    np.testing.assert_allclose(
        workload.column_weights(weights), matrix.column_weights(weights), atol=1e-12
    )
    np.testing.assert_allclose(workload.variances(slots), matrix.variances(slots), atol=1e-12)
    np.testing.assert_allclose(workload.answers(values), matrix.answers(values), atol=1e-12)


def test_answers_come_while_slots_are_missing() -> None:
    values = np.arange(1.0, 4.0)[:, None]
    assert prefix_sums(5).answers(values)[:3, 0].tolist() == [1, 3, 6]


def random_matrix(seed: int, n: int) -> MatrixQueries:
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.normal(size=(n, n))) + np.eye(n)
    return MatrixQueries(n, tuple(f"q{k}" for k in range(n)), np.arange(1, n + 1), matrix)


def solved_weighted_error(a: Reals, rho: float) -> float:
    """min a s subject to sum 1 / s <= 2 rho, by a cone solver: t_i s_i >= 1, sum t <= 2 rho."""
    n = len(a)
    eye = sparse.eye(n, format="csc")
    budget = sparse.csc_matrix(np.concatenate([np.zeros(n), np.ones(n)])[None, :])
    cones = sparse.vstack(
        [sparse.hstack([-eye, -eye]), sparse.hstack([eye, -eye]), sparse.csc_matrix((n, 2 * n))],
        format="csr",
    )[np.arange(3 * n).reshape(3, n).T.ravel()]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * n, 2 * n)),
        np.concatenate([a, np.zeros(n)]),
        sparse.vstack([budget, cones], format="csc"),
        np.concatenate([[2 * rho], np.tile([0.0, 0.0, 2.0], n)]),
        [clarabel.NonnegativeConeT(1), *[clarabel.SecondOrderConeT(3)] * n],
        settings,
    ).solve()
    return float(solution.obj_val)


@pytest.mark.parametrize("seed", range(12))
def test_the_closed_form_is_the_solvers_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    workload = random_matrix(seed, int(rng.integers(2, 25)))
    objective = WeightedSquaredError(tuple(rng.uniform(0.5, 7, len(workload.names))))
    rho = float(rng.uniform(0.1, 3))
    scales = objective.scales(workload, rho)
    ours = objective.error(workload, scales.variances)
    weights = workload.column_weights(np.asarray(objective.weights) ** 2)
    assert ours == pytest.approx(solved_weighted_error(weights, rho), rel=1e-6)
    assert (1 / (2 * scales.variances)).sum() == pytest.approx(rho, rel=1e-12)


def test_the_papers_scenario_one() -> None:
    """n = 31, gamma_n = 7, rho = 1: sqrt(sum gamma^2 var) / n is 5.643 for a bound of 1."""
    workload, objective = prefix_sums(31), WeightedSquaredError((1.0,) * 30 + (7.0,))
    error = objective.error(workload, objective.scales(workload, 1.0).variances)
    assert round(np.sqrt(error) / 31, 3) == 5.643


@pytest.mark.parametrize(
    "workload",
    [sliding_windows(31, 7), sliding_windows(365, 7), prefix_sums(365), per_slot(31),
     random_matrix(3, 20), slot_ranges(31, ((1, 7), (5, 20), (21, 31), (1, 31)))],
    ids=["sliding-31", "sliding-365", "prefix-365", "slot-31", "matrix-20", "ranges-31"],
)  # fmt: skip
def test_max_variance_is_optimal_with_a_certificate(workload: Workload) -> None:
    scales = MaxVariance().scales(workload, 1.0)
    assert abs(scales.gap) < 1e-6
    assert (1 / (2 * scales.variances)).sum() == pytest.approx(1, rel=1e-9)


def test_max_variance_of_a_year_of_hours() -> None:
    """n = 8,760 and a window of 168 hours, with a gap below 1e-4."""
    scales = MaxVariance().scales(sliding_windows(8_760, 168), 1.0)
    assert 0 <= scales.gap + 1e-12 < 1e-4
    assert (scales.variances > 0).all()


@given(st.integers(0, 50), st.floats(0.01, 10), st.floats(0.1, 100))
@settings(max_examples=40)
def test_least_budget_and_least_error_are_each_others_inverse(
    seed: int, rho: float, error: float
) -> None:
    workload = random_matrix(seed, 6)
    rng = np.random.default_rng(seed)
    objectives: list[Objective] = [
        WeightedSquaredError(), MaxVariance(), VarianceTargets(tuple(rng.uniform(0.5, 5, 6))),
    ]  # fmt: skip
    for objective in objectives:
        needed = objective.budget_for(workload, error)
        assert objective.error(workload, needed.variances) == pytest.approx(error, rel=1e-6)
        reached = objective.scales(workload, needed.rho)
        assert objective.error(workload, reached.variances) == pytest.approx(error, rel=1e-6)
        assert objective.scales(workload, rho).rho == rho


def test_variance_targets_are_met_exactly() -> None:
    targets = tuple(float(k) for k in range(1, 8))
    workload = prefix_sums(7)
    scales = VarianceTargets(targets).budget_for(workload, 1.0)
    assert (workload.variances(scales.variances) <= np.array(targets) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("workload", "targets"),
    [
        (per_slot(31), np.logspace(-4, 4, 31)),
        (per_slot(31), np.array([1e6, 1.0] * 15 + [1e6])),
        (per_slot(2), np.array([1e9, 1.0])),
    ],
)
def test_far_apart_targets_are_solved_to_the_optimum(workload: RangeSums, targets: Reals) -> None:
    """Each slot by itself: the best variances are the targets."""
    scales = VarianceTargets(tuple(targets)).budget_for(workload, 1.0)
    assert scales.rho == pytest.approx(float((1 / targets).sum()) / 2, rel=1e-4)
    assert abs(scales.gap) < 1e-4


def test_slots_that_nobody_asks_about_cost_nearly_nothing() -> None:
    scales = MaxVariance().scales(slot_ranges(8_760, ((3, 7),)), 1.0)
    asked = scales.variances[2:7]
    assert (1 / (2 * asked)).sum() == pytest.approx(1, rel=0.01)
    assert np.isfinite(scales.variances).all()


def test_a_badly_scaled_matrix() -> None:
    rng = np.random.default_rng(0)
    matrix = np.tril(rng.normal(size=(60, 60))) * np.logspace(-3, 3, 60)
    matrix = np.where(matrix == 0, 0, np.sign(matrix) * np.maximum(np.abs(matrix), 1e-5))
    names = tuple(f"q{k}" for k in range(60))
    workload = MatrixQueries(60, names, np.arange(1, 61), matrix)
    assert abs(MaxVariance().scales(workload, 1.0).gap) < 1e-4


def test_lengths_are_what_a_constant_adds_up_to() -> None:
    workload = sliding_windows(9, 4)
    np.testing.assert_allclose(workload.lengths(), as_matrix(workload).lengths())
    assert workload.lengths().tolist() == [1, 2, 3, 4, 4, 4, 4, 4, 4]


BAD_OBJECTIVES: list[tuple[Objective, str]] = [
    (VarianceTargets((1.0, 1.0, 0.0)), "which no noise can reach"),
    (VarianceTargets((1.0, 1.0, -1.0)), "which no noise can reach"),
    (VarianceTargets((1.0, 1.0, float("nan"))), "which no noise can reach"),
    (VarianceTargets((1.0,)), "targets has 1 entries: expected 3"),
    (WeightedSquaredError((1.0, 2.0)), "weights has 2 entries: expected 3"),
    (WeightedSquaredError((1.0, 2.0, 0.0)), "all above 0"),
]


@pytest.mark.parametrize(("objective", "message"), BAD_OBJECTIVES)
def test_bad_objectives(objective: Objective, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        objective.scales(prefix_sums(3), 1.0)


@pytest.mark.parametrize("error", [0, -1, float("inf"), float("nan")])
def test_an_error_that_cannot_be_reached(error: float) -> None:
    with pytest.raises(WorkloadError, match="error = "):
        MaxVariance().budget_for(prefix_sums(3), error)


BAD_FILES = [
    ("1,0,0\n1,1,0\n1,nan,1\n", "'q row 3' has an entry that is no finite number"),
    ("1,0,0\n1,1,1\n1,1,1\n", "'q row 2' is answered at slot 2 but looks at slot 3"),
    ("1,0,0\n0,0,0\n1,1,1\n", "'q row 2' is all zeros"),
    ("1,0\n1,1\n", "found 2 rows and 2 columns; expected 3 of both"),
    ("1,0,0\n1,x,0\n1,1,1\n", "is not a table of numbers"),
    ("1,0,0\n1,1e200,0\n1,1,1\n", "entries from 1 to 1e\\+200 in size"),
    ("4,1,0,0\n", "the first column must hold slot numbers from 1 to 3"),
    ("1.5,1,0,0\n", "the first column must hold slot numbers"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_bad_matrix_files(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(WorkloadError, match=message):
        matrix_queries(tmp_path / "q.csv", 3)


def test_a_missing_matrix_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="cannot be read"):
        matrix_queries(tmp_path / "q.csv", 3)


def test_matrix_files(tmp_path: Path) -> None:
    (tmp_path / "square.csv").write_text("1,0,0\n0,2,0\n-1,0,1\n")
    square = matrix_queries(tmp_path / "square.csv", 3)
    assert square.answers(np.array([[1.0], [10.0], [100.0]]))[:, 0].tolist() == [1, 20, 99]
    (tmp_path / "any.csv").write_text("3,1,0,1\n2,1,1,0\n")
    chosen = matrix_queries(tmp_path / "any.csv", 3)
    assert (chosen.slots.tolist(), chosen.names) == ([2, 3], ("any row 2", "any row 1"))


@pytest.mark.parametrize("ranges", [((0, 1),), ((2, 1),), ((1, 4),), ()])
def test_bad_ranges(ranges: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(WorkloadError, match="range"):
        slot_ranges(3, ranges)


@pytest.mark.parametrize("window", [0, 4])
def test_bad_windows(window: int) -> None:
    with pytest.raises(WorkloadError, match="window = "):
        sliding_windows(3, window)
