"""Totals and histograms with discrete Gaussian noise.

Must never: use a scale below what its cost pays for, or return a value off the integer grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from adsbpc.errors import PrivacyError
from adsbpc.model.guarantee import Adjacency
from adsbpc.model.layout import Layout
from adsbpc.privacy.accounting import gaussian_cost, gaussian_scale
from adsbpc.privacy.counts import COUNT_UNITS
from adsbpc.privacy.filter import LIMIT
from adsbpc.privacy.randomness import LARGEST_SCALE, Integers, Randomness, check_scale
from adsbpc.privacy.sensitivity import (
    filtered_squared,
    histogram_squared,
    totals_squared,
    weighed_squared,
)

# Larger totals are cut off here, which leaves room for noise: a sum that wrapped around would show
# the exact total. Cutting moves no two totals further apart, so the sensitivity stays, and unlike
# an error it tells nothing.
_LARGEST_VALUE = 2**60


@dataclass(frozen=True)
class Noisy:
    """Noisy integers, the scale of their noise, and what they cost."""

    values: Integers
    scale: float
    cost: Fraction


def noisy_totals(
    totals: Sequence[int] | Integers,
    layout: Layout,
    bound: int,
    rho: Fraction,
    adjacency: Adjacency,
    randomness: Randomness,
) -> Noisy:
    """The columns of all views, from totals per cell, zeros included, of users capped at exactly
    `bound`.

    Formal guarantee: rho-zCDP, given that each user adds a vector >= 0 of L1 norm <= bound. The
    scale is proportional to the bound, so releases with bounds that depend on earlier outputs
    compose (Bun and Steinke 2016, Lemma 7) to the sum of their rho.
    """
    sensitivity = totals_squared(adjacency, layout, bound)
    columns = layout.in_columns([int(total) for total in _whole(totals)])
    return _noisy([_within(column) for column in columns], sensitivity, rho, randomness)


def noisy_histogram(
    counts: Sequence[int] | Integers, rho: Fraction, adjacency: Adjacency, randomness: Randomness
) -> Noisy:
    """Users by bin, each user in at most one bin.

    Formal guarantee: rho-zCDP.
    """
    return _noisy(counts, histogram_squared(adjacency), rho, randomness)


def noisy_counts(
    counts: Sequence[int] | Integers, rho: Fraction, adjacency: Adjacency, randomness: Randomness
) -> Noisy:
    """Sums of users' weighed vectors, zeros included, for a set of cells that was declared.

    Formal guarantee: rho-zCDP, given that each user adds a vector >= 0 of L2 norm <= COUNT_UNITS.
    """
    return _noisy(counts, weighed_squared(adjacency, COUNT_UNITS), rho, randomness)


@dataclass(frozen=True)
class NoisyRow:
    """A row of a strategy with noise: whole numbers of any width, and the scale of their noise."""

    values: tuple[int, ...]
    scale: float


def row_scale(rho: Fraction, adjacency: Adjacency) -> float:
    """The noise of every row, for users whose filter holds them to `LIMIT` over all rows.

    Formal guarantee: all rows of a campaign together are rho-zCDP; those up to a slot at which
    users were held to a smaller limit are (that limit / LIMIT) rho-zCDP.
    """
    scale = gaussian_scale(filtered_squared(adjacency, LIMIT), rho)
    if scale > LARGEST_SCALE:
        least = filtered_squared(adjacency, LIMIT) / (2 * LARGEST_SCALE**2)
        raise PrivacyError(
            f"rho = {float(rho):.3g} for measurement: personal budgets need {least:.2g} or more. "
            'Give the campaign a larger rho or epsilon, or take mechanism = "adsbpc"'
        )
    return scale


def noisy_row(sums: Sequence[int], scale: float, randomness: Randomness) -> NoisyRow:
    """sum_s B_ts m_s X_s of every column, zeros included, with fresh noise. Python's integers do
    not wrap around, so nothing is cut off."""
    if not all(type(value) is int for value in sums):
        raise PrivacyError("a row of a strategy that holds no whole numbers")
    noise = randomness.gaussian(check_scale(scale), len(sums))
    return NoisyRow(
        tuple(value + int(drawn) for value, drawn in zip(sums, noise, strict=True)), scale
    )


def _noisy(
    values: Sequence[int] | Integers, sensitivity: int, rho: Fraction, randomness: Randomness
) -> Noisy:
    scale = check_scale(gaussian_scale(sensitivity, rho))
    kept = np.array([_within(int(value)) for value in _whole(values)], dtype=np.int64)
    return Noisy(
        kept + randomness.gaussian(scale, kept.size), scale, gaussian_cost(sensitivity, scale)
    )


def _whole(values: Sequence[int] | Integers) -> Integers:
    exact = np.asarray(values)
    if not np.issubdtype(exact.dtype, np.integer):
        raise PrivacyError(f"values of type {exact.dtype}: expected integers on the grid")
    return exact


def _within(value: int) -> int:
    return max(-_LARGEST_VALUE, min(_LARGEST_VALUE, value))
