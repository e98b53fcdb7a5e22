"""Makes released numbers consistent: totals that never fall and are never negative.

Works on released values only, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adsbpc.model import Measured

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Adjustment:
    """Running totals of every sum after slot 0, 1, .., k, by its keys; they start at 0.

    Every sum over slots is a difference of one series, and every total over cells a sum of theirs,
    so answers to different questions never contradict each other. Where people are counted once,
    totals over cells are no sums, and have series of their own.
    """

    running_totals: Mapping[tuple[str, ...], Reals]

    @classmethod
    def of(cls, releases: Sequence[Measured]) -> Adjustment:
        """Fits all slots at once: what a later slot says also moves the earlier ones."""
        layout, totals = releases[-1].layout, dict[tuple[str, ...], Reals]()
        finest = len(layout.dimensions)
        for depth in range(finest + 1) if layout.once else (finest,):
            found = [release.running_totals[depth] for release in releases]
            errors = np.array([each.errors for each in found]).T
            series = np.array([each.values for each in found]).T
            for key, values, own in zip(layout.names(depth), series, errors, strict=True):
                fit = np.concatenate(([0.0], closest_running_total(values, own)))
                for shorter in (depth,) if layout.once else range(depth + 1):
                    totals[key[:shorter]] = totals.get(key[:shorter], 0.0) + fit
        return cls(totals)

    def sum_over(self, keys: tuple[str, ...], span: tuple[int, int]) -> float:
        first, last = span
        series = self.running_totals[keys]
        return float(series[last] - series[first - 1])


def closest_running_total(values: Reals, standard_errors: Reals) -> Reals:
    """The series nearest to `values` that never goes down and is never negative.

    Nearest in squares weighted by 1 / variance. Cutting the isotonic fit off at zero gives the
    nearest one among those that are not negative either: pooled blocks below zero all become 0,
    and blocks above stay as they are.
    """
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(values, weights=standard_errors**-2.0)
    return np.maximum(np.asarray(fit.x, dtype=np.float64), 0.0)
