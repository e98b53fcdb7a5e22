"""How noisy a fit says it is, beside how far off it is."""

from __future__ import annotations

import numpy as np
import pytest

from adsbpc.attribution import count_set, fit_of
from adsbpc.attribution.fits import Integers
from adsbpc.model import Fit
from tests.attribution.fits import MODELS, exact_counts, names
from tests.effort import first

PLAYERS, WEIGHT = 6, 1_000


def fits(model: str, order: int, noise: float, count: int) -> list[Fit]:
    """Of 4,000 people with up to three touches each, under noise of so many users."""
    rng = np.random.default_rng(3)
    appeal = np.linspace(0.1, 0.5, PLAYERS)
    users = []
    for _ in range(4_000):
        journey = tuple(map(int, rng.integers(0, PLAYERS, rng.integers(1, 4))))
        users.append((journey, bool(rng.random() < max(appeal[list(journey)]))))
    counts = count_set(model, order, PLAYERS)
    exact = np.rint(exact_counts(counts, users).values * WEIGHT).astype(np.int64)
    scale = noise * WEIGHT

    def gaussian(scale: float, size: int) -> Integers:
        return np.rint(rng.normal(0, scale, size)).astype(np.int64)

    return [
        fit_of(
            model, order, names(PLAYERS), 7, counts, exact + gaussian(scale, exact.size), WEIGHT,
            scale, gaussian,
        )
        for _ in range(count)
    ]  # fmt: skip


def weights(fit: Fit) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    own = tuple(share.share for share in fit.comparison if share.model == fit.model)
    parameters: tuple[float, ...] = next(iter(fit.parameters.values()))
    return np.array(own or parameters, dtype=np.float64)


TOLD = [(model, order) for model, order in MODELS if model != "shapley_ordered"]


@pytest.mark.parametrize(("model", "order"), first(3, TOLD))
def test_it_is_about_as_far_off_as_it_says(model: str, order: int) -> None:
    (exact,) = fits(model, order, 0.0, 1)
    assert exact.relative_noise == 0
    noisy = fits(model, order, 4.0, 6)
    truth = weights(exact)
    off = np.mean([np.abs(weights(fit) - truth).sum() / truth.sum() for fit in noisy])
    said = np.mean([fit.relative_noise or 0.0 for fit in noisy])
    assert off > 0
    assert 0.4 * off < said < 2.5 * off


@pytest.mark.parametrize(("model", "order"), first(3, TOLD))
def test_more_noise_is_said_to_be_more(model: str, order: int) -> None:
    said = [fits(model, order, noise, 1)[0].relative_noise or 0.0 for noise in (0.5, 8.0)]
    assert said[0] < said[1]


@pytest.mark.parametrize(("model", "order"), first(3, MODELS))
def test_a_fit_of_noise_alone_is_not_called_sure(model: str, order: int) -> None:
    for fit in fits(model, order, 5_000.0, 4):
        assert fit.relative_noise is None or 0.1 < fit.relative_noise <= 1
