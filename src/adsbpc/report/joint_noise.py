"""Covariances of running totals at several looks, from how they follow from rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from adsbpc.model import RunningNoise

Reals = NDArray[np.float64]


def of_sum(noise: RunningNoise, depth: int, place: int) -> Reals:
    """Of one sum of a view, for all boundaries."""
    times = [each.times[depth] for each in noise.stretches]
    return _joint(noise, [each[place] if len(each) > 1 else each[0] for each in times])


def between_sums(noise: RunningNoise, depth: int, sums: int) -> Reals:
    """Of two sums of a view: of least-squares estimates, what is left of the sum of all of them."""
    found = []
    for each in noise.stretches:
        of_view, (total, *_) = each.times[depth], each.times[0]
        own = sum(of_view) if len(of_view) > 1 else sums * of_view[0]
        found.append((total - own) / (sums * (sums - 1)) if sums > 1 else 0.0)
    return _joint(noise, found)


def _joint(noise: RunningNoise, times: list[float]) -> Reals:
    ends = [each.first for each in noise.stretches] + [len(noise.variances)]
    of_rows = np.repeat(times, [end - first for first, end in pairwise(ends)])
    weights = np.array(noise.weights, dtype=np.float64)
    return np.asarray((weights * (of_rows * np.array(noise.variances))) @ weights.T)
