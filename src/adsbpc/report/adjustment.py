"""Makes released numbers consistent: totals that never fall and are never negative.

Works on released values only, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adsbpc.model import Release

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Adjustment:
    """Each publisher's running total after slot 0, 1, .., k; it starts at 0.

    Every sum over slots is a difference of this one series, and every total over publishers a sum
    of such differences, so answers to different questions never contradict each other.
    """

    running_totals: Mapping[str, Reals]

    @classmethod
    def of(cls, releases: Sequence[Release]) -> Adjustment:
        """Fits all slots at once: what a later slot says also moves the earlier ones."""
        values: dict[str, list[float]] = {}
        standard_errors: dict[str, list[float]] = {}
        for release in releases:
            for total in release.running_totals:
                values.setdefault(total.cell, []).append(total.value)
                standard_errors.setdefault(total.cell, []).append(total.standard_error)
        fits = {
            publisher: closest_running_total(
                np.array(values[publisher]), np.array(standard_errors[publisher])
            )
            for publisher in values
        }
        return cls({name: np.concatenate(([0.0], fit)) for name, fit in fits.items()})

    def sum_over(self, publisher: str, span: tuple[int, int]) -> float:
        first, last = span
        series = self.running_totals[publisher]
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
