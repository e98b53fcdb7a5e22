"""People in arms: whoever comes, on whichever slot, fits, and the last total is accurate."""

from __future__ import annotations

import numpy as np
import pytest

from adsbpc.lab.lift import RepeatedTrial
from adsbpc.mechanisms import BudgetByRows, plan_measures
from adsbpc.model import UNITS_PER_CONVERSION
from adsbpc.privacy import equal_columns
from adsbpc.privacy.strategies import ONE, Reals


def prefix(slots: int, last: float = 1.0) -> Reals:
    weights = np.ones(slots)
    weights[-1] = last
    queries = np.tril(np.ones((slots, slots)))
    return np.asarray(queries.T @ (weights[:, None] * queries))


@pytest.mark.parametrize("slots", [1, 2, 7, 31])
def test_every_slot_costs_the_same(slots: int) -> None:
    strategy = equal_columns(prefix(slots, slots))
    own = strategy.gram.diagonal() / ONE**2
    assert own.max() / own.min() < 1.01
    assert strategy.gram.min() >= 0


def test_it_beats_the_square_root_where_people_come_once() -> None:
    """Error times the largest cost, of which the square root's is known to be near the best."""
    from adsbpc.privacy import square_root

    queries = np.tril(np.ones((31, 31)))

    def error(matrix: Reals) -> float:
        inverse = queries @ np.linalg.inv(matrix)
        return float((inverse**2).sum() * (matrix**2).sum(axis=0).max())

    ours, root = (
        each.matrix.astype(float) for each in (equal_columns(prefix(31)), square_root(31))
    )
    assert error(ours) < error(root)


@pytest.mark.parametrize("slots", [1, 5, 31])
def test_nobody_is_cut_on_any_slot(slots: int) -> None:
    spec = RepeatedTrial(slots=slots).spec({"name": "buyers", "metric": "converters"})
    ((_, mechanism),) = plan_measures(spec).runs
    assert isinstance(mechanism, BudgetByRows)
    assert mechanism.allowance is not None
    assert mechanism.cuts_nobody
    own = mechanism.measurement
    multipliers = own.multipliers(mechanism.allowance, 1.0)
    for slot in range(1, slots + 1):
        terms = own.terms(slot, multipliers, ())
        cost = 2 * terms.own * (terms.multiplier * UNITS_PER_CONVERSION) ** 2
        assert cost <= terms.kept_limit
        # And hardly anything of the budget is left to nobody.
        assert cost > 0.99 * terms.kept_limit
