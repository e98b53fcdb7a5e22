"""How to share a budget among slots: noise variances that make a workload's answers best.

Everything is for contributions bounded by 1 and sensitivity 1: slot i gets variance s_i and costs
1 / (2 s_i). A bound r multiplies the standard deviation by r and leaves the cost as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adsbpc.errors import WorkloadError
from adsbpc.workloads.queries import MatrixQueries, RangeSums, Reals, Workload

# A slot that no query asks about still gets a little of the budget, so that it has noise.
_SMALLEST_WEIGHT = 1e-9
_NOT_ASKED = 1e6

# What may be between an answer and the best one; and up to how many slots any form is solved.
_LARGEST_GAP = 1e-4
_MOST_PLAIN = 1_000


@dataclass(frozen=True)
class Scales:
    """Slot variances, the rho they cost, and how far from the best they may be (relative)."""

    variances: Reals
    rho: float
    gap: float

    def with_budget(self, rho: float) -> Scales:
        """The same shape at another budget."""
        return Scales(self.variances * (self.rho / rho), rho, self.gap)


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

    def squared_weights(self, workload: Workload) -> Reals:
        return _weights(self.weights, len(workload.names)) ** 2

    def scales(self, workload: Workload, rho: float) -> Scales:
        asked = workload.column_weights(self.squared_weights(workload))
        roots = np.sqrt(np.maximum(asked, _SMALLEST_WEIGHT * asked.max()))
        return Scales(roots.sum() / (2 * rho * roots), rho, 0.0)

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        return float(self.squared_weights(workload) @ workload.variances(slot_variances))

    def budget_for(self, workload: Workload, error: float) -> Scales:
        at_one = self.scales(workload, 1.0)
        return at_one.with_budget(self.error(workload, at_one.variances) / _positive(error))


@dataclass(frozen=True)
class VarianceTargets:
    """Every query within a multiple of its own target; the multiple is the error."""

    targets: tuple[float, ...]

    def limits(self, workload: Workload) -> Reals:
        """The variances that are aimed at, up to one factor."""
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
        return float((workload.variances(slot_variances) / self.limits(workload)).max())

    def budget_for(self, workload: Workload, error: float) -> Scales:
        return _least_cost(workload, self.limits(workload) * _positive(error))


@dataclass(frozen=True)
class MaxVariance:
    """The largest variance of any query."""

    def _targets(self, workload: Workload) -> VarianceTargets:
        return VarianceTargets((1.0,) * len(workload.names))

    def limits(self, workload: Workload) -> Reals:
        return self._targets(workload).limits(workload)

    def scales(self, workload: Workload, rho: float) -> Scales:
        return self._targets(workload).scales(workload, rho)

    def error(self, workload: Workload, slot_variances: Reals) -> float:
        return float(workload.variances(slot_variances).max())

    def budget_for(self, workload: Workload, error: float) -> Scales:
        return self._targets(workload).budget_for(workload, error)


# What can be asked of noise: `scales` finds the least error for a budget, `error` says what is made
# small, and `budget_for` finds the least budget for an error.
Objective = WeightedSquaredError | VarianceTargets | MaxVariance


def _positive(error: float) -> float:
    if not 0 < error < np.inf:
        raise WorkloadError(f"error = {error}: expected a finite number above 0")
    return error


def _least_cost(workload: Workload, limits: Reals) -> Scales:
    """Minimise sum 1 / s_i subject to Q^2 s <= limits, with a certificate.

    The solver's answer is scaled to be feasible. The gap comes from the dual function
    2 sum sqrt((Q^2)^T y) - y limits, which bounds the optimum from below for every y >= 0.
    """
    asked = workload.column_weights(np.ones(len(limits))) > 0
    typical = _typical_variances(workload, limits)
    s = np.full(workload.slot_count, _NOT_ASKED * typical[asked].max())
    s[asked], y = _solve(workload, limits, asked, typical[asked])
    s[asked] /= (workload.variances(np.where(asked, s, 0)) / limits).max()
    cost = float((1 / s[asked]).sum())
    y = np.maximum(y, 0)
    # Sums that cancel may leave a little less than nothing.
    weights = np.maximum(workload.column_weights(y)[asked], 0)
    bound = float(2 * np.sqrt(weights).sum() - y @ limits)
    gap = (cost - bound) / cost
    if not gap < _LARGEST_GAP:
        raise WorkloadError(
            f"the solver's noise may be {gap:.1%} from the best, more than {_LARGEST_GAP:.2%}: "
            "bring targets or entries of the matrix closer together"
        )
    return Scales(s, float((1 / s).sum()) / 2, gap)


def _typical_variances(workload: Workload, limits: Reals) -> Reals:
    """For each slot the variance it could have if its tightest query gave all slots the same."""
    typical = np.full(workload.slot_count, np.inf)
    if isinstance(workload, RangeSums):
        shares = limits / workload.lengths()
        for first, last, share in zip(workload.first, workload.last, shares, strict=True):
            np.minimum(typical[first - 1 : last], share, out=typical[first - 1 : last])
        return typical
    assert isinstance(workload, MatrixQueries)
    squares = workload.matrix**2
    for row, limit in zip(squares, limits, strict=True):
        inside = row > 0
        typical[inside] = np.minimum(typical[inside], limit / (row[inside] * inside.sum()))
    return typical


def _solve(
    workload: Workload, limits: Reals, asked: NDArray[np.bool_], typical: Reals
) -> tuple[Reals, Reals]:
    """Variances of the slots that are asked about, and multipliers of the limits.

    Rows are divided by their limits and slots by their typical variance, so that all numbers are
    near 1. Where all slots have the same one, ranges are written with running sums of s, in which
    a range has two entries instead of its length: a year of hours takes a second.
    """
    from scipy import sparse

    n = len(typical)
    if isinstance(workload, RangeSums) and (n > _MOST_PLAIN or np.ptp(typical) < 1e-9 * typical[0]):
        typical = np.full(n, float(np.median(typical)))
        place = np.concatenate([[0], np.cumsum(asked)])
        ends, starts = place[workload.last], place[workload.first - 1]
        rows = np.arange(len(limits))
        inner = starts > 0
        constraint = sparse.csc_matrix(
            (np.ones(len(rows)), (rows, ends - 1)), shape=(len(rows), n)
        ) - sparse.csc_matrix(
            (np.ones(inner.sum()), (rows[inner], starts[inner] - 1)), shape=(len(rows), n)
        )
        steps = sparse.eye(n, format="csc") - sparse.eye(n, k=-1, format="csc")
    else:
        identity = np.eye(workload.slot_count)[:, asked]
        constraint = sparse.csc_matrix(
            np.column_stack([workload.variances(column) for column in identity.T])
        )
        steps = sparse.eye(n, format="csc")
    scaled = sparse.diags(1 / limits) @ constraint @ sparse.diags(typical)
    x, multipliers = _solve_cones(sparse.csc_matrix(scaled), steps, 1 / typical)
    return np.asarray(steps @ x) * typical, multipliers / limits


def _solve_cones(constraint: Any, steps: Any, prices: Reals) -> tuple[Reals, Reals]:
    """Minimise sum prices_i t_i over x, t with constraint x <= 1 and t_i (steps x)_i >= 1.

    The last is the cone |(2, t - s)| <= t + s.
    """
    import clarabel
    from scipy import sparse

    n, m = steps.shape[0], constraint.shape[0]
    identity = sparse.eye(n, format="csc")
    head = sparse.hstack([constraint, sparse.csc_matrix((m, n))])
    # One cone a slot: rows (t + s, t - s, 2), as b - A x with the signs turned.
    plus = sparse.hstack([-steps, -identity])
    minus = sparse.hstack([steps, -identity])
    nothing = sparse.csc_matrix((n, 2 * n))
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    cones = sparse.vstack([plus, minus, nothing], format="csr")[order]
    price = float(np.mean(prices))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solved = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * n, 2 * n)),
        np.concatenate([np.zeros(n), prices / price]),
        sparse.vstack([head, cones], format="csc"),
        np.concatenate([np.ones(m), np.tile([0.0, 0.0, 2.0], n)]),
        [clarabel.NonnegativeConeT(m), *[clarabel.SecondOrderConeT(3)] * n],
        settings,
    ).solve()
    x, multipliers = np.asarray(solved.x[:n]), np.asarray(solved.z[:m])
    if not np.isfinite(x).all() or (np.asarray(steps @ x) <= 0).any():
        raise WorkloadError(
            f"the solver found no noise within the limits ({solved.status}): "
            "bring targets or entries of the matrix closer together"
        )
    return x, multipliers * price
