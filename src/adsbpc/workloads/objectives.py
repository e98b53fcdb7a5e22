"""How to share a budget among slots: noise variances that make a workload's answers best.

Everything is for contributions bounded by 1 and sensitivity 1: slot i gets variance s_i and costs
1 / (2 s_i). A bound r multiplies the standard deviation by r and leaves the cost as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adsbpc.errors import WorkloadError
from adsbpc.workloads.queries import MatrixQueries, RangeSums, Reals, Workload

# A slot that no query asks about still gets this share of the largest weight, so that it has noise.
_SMALLEST_WEIGHT = 1e-9


@dataclass(frozen=True)
class Scales:
    """Slot variances, the rho they cost, and how far from the best they may be (relative)."""

    variances: Reals
    rho: float
    gap: float

    def with_budget(self, rho: float) -> Scales:
        """The same shape at another budget."""
        return Scales(self.variances * (self.rho / rho), rho, self.gap)


class Objective(Protocol):
    def scales(self, workload: Workload, rho: float) -> Scales:
        """Least error for this budget."""

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        """What is made small."""

    def budget_for(self, workload: Workload, error: float) -> Scales:
        """Least budget for this error."""


def _weights(weights: tuple[float, ...] | None, queries: int) -> Reals:
    chosen = np.ones(queries) if weights is None else np.asarray(weights, dtype=np.float64)
    if chosen.shape != (queries,) or not np.isfinite(chosen).all() or (chosen <= 0).any():
        raise WorkloadError(
            f"weights has {chosen.size} entries: expected {queries}, one per query, all above 0"
        )
    return chosen


@dataclass(frozen=True)
class WeightedSquaredError:
    """sum_j gamma_j^2 Var_j, for weights gamma (all 1 if there are none).

    Closed form for every linear workload: with a_i = sum_j gamma_j^2 Q_ji^2, Cauchy-Schwarz gives
    s_i = sum_k sqrt(a_k) / (2 rho sqrt(a_i)).
    """

    weights: tuple[float, ...] | None = None

    def scales(self, workload: Workload, rho: float) -> Scales:
        gammas = _weights(self.weights, len(workload.names))
        asked = workload.column_weights(gammas**2)
        roots = np.sqrt(np.maximum(asked, _SMALLEST_WEIGHT * asked.max()))
        return Scales(roots.sum() / (2 * rho * roots), rho, 0.0)

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        gammas = _weights(self.weights, len(workload.names))
        return float(gammas**2 @ workload.variances(slot_variances))

    def budget_for(self, workload: Workload, error: float) -> Scales:
        at_one = self.scales(workload, 1.0)
        return at_one.with_budget(self.error(workload, at_one.variances) / _positive(error))


@dataclass(frozen=True)
class VarianceTargets:
    """Every query within a multiple of its own target; the multiple is the error."""

    targets: tuple[float, ...]

    def _targets(self, workload: Workload) -> Reals:
        targets = np.asarray(self.targets, dtype=np.float64)
        if targets.shape != (len(workload.names),):
            raise WorkloadError(
                f"targets has {targets.size} entries: expected {len(workload.names)}, one per query"
            )
        if not np.isfinite(targets).all() or (targets <= 0).any():
            raise WorkloadError(
                "a variance target is 0, negative or not finite, which no noise can reach: "
                "expected numbers above 0"
            )
        return targets

    def scales(self, workload: Workload, rho: float) -> Scales:
        return self.budget_for(workload, 1.0).with_budget(rho)

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        return float((workload.variances(slot_variances) / self._targets(workload)).max())

    def budget_for(self, workload: Workload, error: float) -> Scales:
        return _least_cost(workload, self._targets(workload) * _positive(error))


@dataclass(frozen=True)
class MaxVariance:
    """The largest variance of any query."""

    def _targets(self, workload: Workload) -> VarianceTargets:
        return VarianceTargets((1.0,) * len(workload.names))

    def scales(self, workload: Workload, rho: float) -> Scales:
        return self._targets(workload).scales(workload, rho)

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        return float(workload.variances(slot_variances).max())

    def budget_for(self, workload: Workload, error: float) -> Scales:
        return self._targets(workload).budget_for(workload, error)


def _positive(error: float) -> float:
    if not 0 < error < np.inf:
        raise WorkloadError(f"error = {error}: expected a finite number above 0")
    return error


def _least_cost(workload: Workload, limits: Reals) -> Scales:
    """Minimise sum 1 / s_i subject to Q^2 s <= limits, with a certificate.

    For ranges the solver works on running sums S of s, where a range has two entries instead of
    its length. Its answer is scaled to be feasible; the gap comes from the dual function
    2 sum sqrt((Q^2)^T y) - y limits, which bounds the optimum from below for every y >= 0.
    """
    if isinstance(workload, RangeSums):
        s, y = _solve_ranges(workload, limits)
    else:
        assert isinstance(workload, MatrixQueries)
        s, y = _solve_matrix(workload, limits)
    s = s / (workload.variances(s) / limits).max()
    cost = float((1 / s).sum())
    pressed = np.maximum(workload.column_weights(np.maximum(y, 0)), 0)
    bound = float(2 * np.sqrt(pressed).sum() - np.maximum(y, 0) @ limits)
    return Scales(s, cost / 2, (cost - bound) / cost)


def _solve_ranges(workload: RangeSums, limits: Reals) -> tuple[Reals, Reals]:
    from scipy import sparse

    n, m = workload.slot_count, len(limits)
    rows = np.arange(m)
    ends = sparse.csc_matrix((np.ones(m), (rows, workload.last - 1)), shape=(m, n))
    inner = workload.first > 1
    starts = sparse.csc_matrix(
        (np.ones(inner.sum()), (rows[inner], workload.first[inner] - 2)), shape=(m, n)
    )
    steps = sparse.eye(n, format="csc") - sparse.eye(n, k=-1, format="csc")
    lengths = workload.last - workload.first + 1
    sums, duals = _solve_cones(ends - starts, steps, limits, float(np.median(lengths)))
    return np.asarray(steps @ sums), duals


def _solve_matrix(workload: MatrixQueries, limits: Reals) -> tuple[Reals, Reals]:
    from scipy import sparse

    squares = sparse.csc_matrix(workload.matrix**2)
    steps = sparse.eye(workload.slot_count, format="csc")
    return _solve_cones(squares, steps, limits, float(np.median((workload.matrix**2).sum(axis=1))))


def _solve_cones(
    constraint: Any, steps: Any, limits: Reals, slots_per_query: float
) -> tuple[Reals, Reals]:
    """Minimise sum t_i over x, t with constraint x <= limits and t_i (steps x)_i >= 1.

    The last is the cone |(2, t - s)| <= t + s. Limits are scaled so that s is about 1.
    """
    import clarabel
    from scipy import sparse

    size = float(np.median(limits)) / slots_per_query
    n, m = steps.shape[0], len(limits)
    zero = sparse.csc_matrix((m, n))
    identity = sparse.eye(n, format="csc")
    head = sparse.hstack([constraint, zero])
    # One cone a slot: rows (t + s, t - s, 2), as b - A x with the signs turned.
    plus = sparse.hstack([-steps, -identity])
    minus = sparse.hstack([steps, -identity])
    nothing = sparse.csc_matrix((n, 2 * n))
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    cones = sparse.vstack([plus, minus, nothing], format="csr")[order]
    matrix = sparse.vstack([head, cones], format="csc")
    right = np.concatenate([limits / size, np.tile([0.0, 0.0, 2.0], n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solved = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * n, 2 * n)),
        np.concatenate([np.zeros(n), np.ones(n)]),
        matrix,
        right,
        [clarabel.NonnegativeConeT(m), *[clarabel.SecondOrderConeT(3)] * n],
        settings,
    ).solve()
    x, duals = np.asarray(solved.x[:n]), np.asarray(solved.z[:m])
    if not np.isfinite(x).all() or (np.asarray(steps @ x) <= 0).any():
        raise WorkloadError(
            f"the solver found no noise within the variance targets ({solved.status}): "
            "loosen the tightest one, or bring them closer together"
        )
    return x * size, duals / size**2
