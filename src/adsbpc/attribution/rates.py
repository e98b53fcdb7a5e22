"""Conversion rates from counts that may have noise."""

from __future__ import annotations

import numpy as np

from adsbpc.attribution.games import Reals

# How far a rate may lie from what is expected of it, relative to that: half as much, or twice.
_SPREAD = 0.5


def rate(converting: Reals, users: Reals, expected: Reals, noise: Reals | float) -> Reals:
    """Converting users / users, drawn to what is expected as far as the noise of the counts asks.

    `noise` is the standard deviation of the number of converting users. Without any, this is the
    plain rate, or what is expected where there are no users. With it, the plain rate and what is
    expected are weighed by their variances. Unlike counts that are cut off at 0, the result has no
    lean to one side. Rates stay between 0 and 1.
    """
    expected = np.clip(expected, 0.0, 1.0)
    known = np.maximum(users, 0.0)
    doubt = (np.asarray(noise) / np.maximum(_SPREAD * expected, 1e-12)) ** 2
    weight = np.divide(known, known**2 + doubt, out=np.zeros_like(known), where=known > 0)
    return np.clip(expected + (converting - expected * users) * weight, 0.0, 1.0)


def total_rate(converting: float, users: float) -> float:
    """A rate of so many users that noise hardly matters; 0 without any."""
    return float(np.clip(converting / users, 0.0, 1.0)) if users > 0 else 0.0
