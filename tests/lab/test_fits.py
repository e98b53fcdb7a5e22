"""Private fits on made-up people: close to the plain ones where documents say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adsbpc.lab.fits import Fits

MODELS = [
    ("shapley", 1), ("shapley_ordered", 1), ("incremental_value", 1), ("probabilistic", 1),
    ("probabilistic", 2), ("logistic", 1), ("markov", 1), ("markov", 2), ("markov", 3),
]  # fmt: skip


@pytest.fixture(scope="module")
def fits() -> Iterator[Fits]:
    found = Fits(100_000)
    yield found
    found.close()


@pytest.mark.parametrize(("model", "order"), MODELS)
def test_shares_differ_by_less_than_a_percentage_point(model: str, order: int, fits: Fits) -> None:
    assert len(fits.publishers) == 6
    trials = fits.trials(model, order, 0.05, range(5))
    assert max(trial.distance for trial in trials) < 1
    # Noise moves them: this is no comparison of a thing with itself.
    assert min(trial.distance for trial in trials) > 0


@pytest.mark.parametrize(("model", "order"), MODELS)
def test_more_budget_is_closer(model: str, order: int, fits: Fits) -> None:
    little, much = (
        sum(trial.distance for trial in fits.trials(model, order, rho, range(5)))
        for rho in (0.001, 1.0)
    )
    assert much < little
