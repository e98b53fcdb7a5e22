"""The one door for randomness.

A release draws from `SecureRandomness`: OpenDP's exact samplers over cryptographic randomness.
`SeededRandomness` is for tests and experiments and must never be used for a release: `source_of`
names a source by its type, whatever it says of itself, and a ledger refuses any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adsbpc.errors import PrivacyError

Integers = NDArray[np.int64]

# Samplers return 64-bit integers and would cut wider noise off. Up to this scale the chance that
# noise comes near their end is below exp(-8000).
LARGEST_SCALE = 2.0**50


def check_scale(scale: float) -> float:
    if not 0 < scale <= LARGEST_SCALE:
        raise PrivacyError(
            f"a noise scale of {scale:.3g} is too wide for integers of 64 bits: "
            "give this part a larger share of the budget, or lower the bound"
        )
    return scale


class Randomness(Protocol):
    """Noise on the integers. A scale is a float, means exactly the number that it is, and has
    passed `check_scale`."""

    def gaussian(self, scale: float, size: int) -> Integers:
        """Discrete Gaussian: P[x] proportional to exp(-x**2 / (2 scale**2))."""

    def laplace(self, scale: float) -> int:
        """Discrete Laplace: P[x] proportional to exp(-|x| / scale)."""

    def choose(self, scores: Sequence[int], scale: float) -> int:
        """Exponential mechanism: P[i] proportional to exp(scores[i] / scale)."""


@cache
def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


class SecureRandomness:
    """Exact samplers over the operating system's randomness."""

    # An instance has nothing of its own that could stand in for a sampler.
    __slots__ = ()

    def gaussian(self, scale: float, size: int) -> Integers:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.i64)
        return np.array(dp.m.make_gaussian(*space, scale=scale)([0] * size), dtype=np.int64)

    def laplace(self, scale: float) -> int:
        dp = _opendp()
        space = dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64)
        return int(dp.m.make_laplace(*space, scale=scale)(0))

    def choose(self, scores: Sequence[int], scale: float) -> int:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
        gumbel = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        return int(gumbel([int(score) for score in scores]))


class SeededRandomness:
    """The same distributions, repeatable and fast. FOR TESTS AND EXPERIMENTS ONLY."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(self, scale: float, size: int) -> Integers:
        """Rejection from a discrete Laplace (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
        kept = np.zeros(0, dtype=np.int64)
        width = int(scale) + 1
        while kept.size < size:
            proposed = self._laplace(float(width), 2 * size + 16)
            excess = np.abs(proposed) - scale**2 / width
            accepted = self._rng.random(proposed.size) < np.exp(-(excess**2) / (2 * scale**2))
            kept = np.concatenate([kept, proposed[accepted]])
        return kept[:size]

    def _laplace(self, scale: float, size: int) -> Integers:
        stop = -np.expm1(-1 / scale)
        return self._rng.geometric(stop, size) - self._rng.geometric(stop, size)

    def laplace(self, scale: float) -> int:
        return int(self._laplace(scale, 1)[0])

    def choose(self, scores: Sequence[int], scale: float) -> int:
        noisy = np.asarray(scores, dtype=np.float64) + self._rng.gumbel(0, scale, len(scores))
        return int(np.argmax(noisy))


def source_of(randomness: Randomness) -> str:
    """The name that a release records: "opendp" for `SecureRandomness` itself, and for nothing
    that is derived from it or only looks like it."""
    kind = type(randomness)
    return "opendp" if kind is SecureRandomness else f"{kind.__module__}.{kind.__qualname__}"
