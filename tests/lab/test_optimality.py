"""The closed form against a solver that may choose any strategy."""

from __future__ import annotations

import numpy as np
import pytest

from adsbpc.errors import WorkloadError
from adsbpc.lab.optimality import compare_with_solver
from adsbpc.model import Adjacency


@pytest.mark.parametrize(
    "n", [*range(2, 12), *(pytest.param(n, marks=pytest.mark.slow) for n in (12, 13, 14))]
)
def test_the_diagonal_strategy_is_best(n: int) -> None:
    found = compare_with_solver(np.random.default_rng(n).uniform(1, 10, n))
    assert found.solver == pytest.approx(found.closed_form, rel=1e-3)
    # The solver's strategy is feasible, so it cannot be below the best by more than its rounding.
    assert found.solver >= found.closed_form * (1 - 1e-6)
    assert found.largest_off_diagonal < 1e-2


def test_under_add_remove_one_publisher_can_do_better() -> None:
    """Differences have no signs then, so noise may be made to cancel; some tenth is to be had."""
    for n, share in ((2, 0.910), (4, 0.880), (6, 0.871)):
        found = compare_with_solver(np.ones(n), Adjacency.ADD_REMOVE)
        assert found.solver / found.closed_form == pytest.approx(share, abs=0.03)
        assert found.largest_off_diagonal > 0.01


def test_too_many_corners_are_refused() -> None:
    with pytest.raises(WorkloadError, match="17 slots: the solver takes 2 to 16"):
        compare_with_solver(np.ones(17))
