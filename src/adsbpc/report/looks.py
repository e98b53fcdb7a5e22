"""Estimates that are looked at again and again: intervals for one look, and a band for all of them.

A plain 95% interval is right for a look that was chosen beforehand. Whoever looks every morning and
stops when it excludes 0 is wrong far more often. Estimates of all looks together are close to
jointly normal, with a covariance that is known: noise from the strategy, and sampling, which adds
up over slots. So there is a number c of standard errors within which *all* of them are, with the
probability of the level; it is found by drawing from that distribution, always with the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

DRAWS = 100_000
_SEED = 20_260_301
# Draws are gone through in parts, so that memory stays low; those of short campaigns are kept.
_PART = 20_000
_FEW_LOOKS = 64
# More looks would make a page slow: of hours those at the ends of days are shown, say.
_MOST_LOOKS = 400


def look_slots(slots: int) -> list[int]:
    """After which slots of a campaign people look: all of them, or every so many."""
    every = -(-slots // _MOST_LOOKS)
    return sorted({*range(every, slots + 1, every), slots})


def critical_value(covariance: Reals, level: float, draws: int = DRAWS) -> float:
    """The c for which all estimates are within c standard errors with this probability."""
    deviations = np.sqrt(covariance.diagonal())
    correlations = covariance / deviations[:, None] / deviations
    values, vectors = np.linalg.eigh((correlations + correlations.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(np.float32)
    largest = [np.abs(root @ part).max(axis=0) for part in _draws(len(covariance), draws)]
    return float(np.quantile(np.concatenate(largest), level))


def _draws(looks: int, draws: int) -> Iterable[NDArray[np.float32]]:
    return _kept_draws(looks, draws) if looks <= _FEW_LOOKS else _new_draws(looks, draws)


@lru_cache(maxsize=4)
def _kept_draws(looks: int, draws: int) -> tuple[NDArray[np.float32], ...]:
    return tuple(_new_draws(looks, draws))


def _new_draws(looks: int, draws: int) -> Iterator[NDArray[np.float32]]:
    rng = np.random.default_rng(_SEED)
    for _ in range(draws // _PART):
        yield np.ascontiguousarray(rng.standard_normal((_PART, looks), dtype=np.float32).T)


def over_slots(variances: Reals) -> Reals:
    """The covariance of sums over slots whose variances are these: of two sums, the variance of the
    shorter one."""
    growing = np.maximum.accumulate(variances)
    return np.asarray(np.minimum(growing[:, None], growing[None, :]))


def going_on(variances: Reals, looks: int) -> Reals:
    """The same for looks that are to come: as if it went on as it did so far."""
    seen = len(variances)
    per_look = max(float(np.max(variances)), 1e-12) / seen
    return np.concatenate([variances, per_look * np.arange(seen + 1, looks + 1)])


def chance_beyond(covariance: Reals, means: Reals, reach: float) -> float:
    """How often some estimate is more than so many standard errors away from 0, on the side of its
    mean: the chance to see an effect by looking at all of them."""
    deviations = np.sqrt(covariance.diagonal())
    correlations = covariance / deviations[:, None] / deviations
    values, vectors = np.linalg.eigh((correlations + correlations.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(np.float32)
    drift = (means / deviations).astype(np.float32)[:, None]
    parts = _draws(len(covariance), DRAWS)
    return float(np.mean([((root @ part + drift).max(axis=0) > reach).mean() for part in parts]))
