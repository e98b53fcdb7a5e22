"""Is a diagonal strategy best for users who may contribute every day? The paper's appendix, solved.

Among all strategies B, which makes the weighted squared error of the workload least, when one user
of one publisher may contribute up to r_i on every slot i? With X = B^T B, a semidefinite program:

    least tr(M X^-1)  over  u^T X u <= 2 rho  for every corner u of the box of differences

(corners are enough, because a norm is convex). A difference of neighbours has entries from -r_i to
r_i under substitution, which is the paper's adjacency, and from 0 to r_i under add/remove. A cone
solver finds the best strategy, and AdsBPC's closed form is compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from adsbpc.errors import WorkloadError
from adsbpc.lab.baselines.strategies import query_matrix
from adsbpc.lab.evaluation import Reals
from adsbpc.model import Adjacency
from adsbpc.workloads import prefix_sums

# The corners of the box double with every slot.
_MOST_SLOTS = 16


@dataclass(frozen=True)
class Optimum:
    """Objectives of the solver's strategy and of AdsBPC's, and the solver's off-diagonal entries,
    as shares of its largest entry."""

    slots: int
    adjacency: str
    solver: float
    closed_form: float
    largest_off_diagonal: float
    smallest_off_diagonal: float
    mean_off_diagonal: float


def compare_with_solver(
    bounds: Reals, adjacency: Adjacency = Adjacency.SUBSTITUTE, rho: float = 1.0
) -> Optimum:
    """Prefix sums with equal weights, for bounds r_1..r_n."""
    n = len(bounds)
    if not 2 <= n <= _MOST_SLOTS:
        raise WorkloadError(f"{n} slots: the solver takes 2 to {_MOST_SLOTS}")
    queries = query_matrix(prefix_sums(n))
    gram = queries.T @ queries
    strategy = _solve(gram, bounds, rho, adjacency)
    roots = np.sqrt(np.diag(gram)) * bounds
    factor = np.linalg.cholesky(strategy[::-1, ::-1])[::-1, ::-1].T
    off = np.abs(factor[np.tril_indices(n, -1)]) / np.abs(factor).max()
    # Scaled so that the tightest corner is met exactly: what the solver left over is not counted.
    corners = _corners(bounds, adjacency)
    tightest = np.einsum("ui,ij,uj->u", corners, strategy, corners).max() / (2 * rho)
    return Optimum(
        n,
        adjacency.value,
        float(np.trace(gram @ np.linalg.inv(strategy)) * tightest),
        float(roots.sum() ** 2 / (2 * rho)),
        float(off.max()),
        float(off.min()),
        float(off.mean()),
    )


def _corners(bounds: Reals, adjacency: Adjacency) -> Reals:
    """Opposite corners count the same, so under substitution the first entry keeps its sign."""
    if adjacency is Adjacency.SUBSTITUTE:
        signs = [(1.0, *rest) for rest in product((1.0, -1.0), repeat=len(bounds) - 1)]
    else:
        signs = list(product((0.0, 1.0), repeat=len(bounds)))[1:]
    return np.array(signs) * bounds


def _solve(gram: Reals, bounds: Reals, rho: float, adjacency: Adjacency) -> Reals:
    """X and Y with [[X, I], [I, Y]] >= 0, that is Y >= X^-1, and tr(M Y) least.

    The bounds and the budget are scaled away first, which keeps the numbers of one size.
    """
    import clarabel
    from scipy import sparse

    n = len(bounds)
    scaled = gram * np.outer(bounds, bounds) / np.trace(gram)
    rows, columns = np.triu_indices(n)
    count = rows.size
    corners = _corners(np.ones(n), adjacency)
    # u^T X u with the upper triangle of X as variables.
    twice = np.where(rows == columns, 1.0, 2.0)
    limits = sparse.csc_matrix(corners[:, rows] * corners[:, columns] * twice)
    # The solver wants a triangle column after column.
    block_columns, block_rows = np.tril_indices(2 * n)
    place = np.zeros((2 * n, 2 * n), dtype=np.intp)
    place[block_rows, block_columns] = np.arange(block_rows.size)
    weight = np.where(block_rows == block_columns, 1.0, np.sqrt(2.0))
    places = np.r_[place[rows, columns], place[rows + n, columns + n]]
    cone = sparse.csc_matrix(
        (-weight[places], (places, np.arange(2 * count))), shape=(weight.size, 2 * count)
    )
    constant = np.zeros(weight.size)
    constant[place[np.arange(n), np.arange(n) + n]] = np.sqrt(2.0)
    matrix = sparse.vstack([sparse.hstack([limits, sparse.csc_matrix(limits.shape)]), cone]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((2 * count, 2 * count)),
        np.r_[np.zeros(count), scaled[rows, columns] * twice],
        matrix,
        np.r_[np.ones(len(corners)), constant],
        [clarabel.NonnegativeConeT(len(corners)), clarabel.PSDTriangleConeT(2 * n)],
        settings,
    )
    found = np.asarray(solver.solve().x)[:count]
    strategy = np.zeros((n, n))
    strategy[rows, columns] = found
    strategy[columns, rows] = found
    return np.asarray(2 * rho * strategy / np.outer(bounds, bounds))
