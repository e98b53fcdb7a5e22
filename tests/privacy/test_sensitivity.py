"""Sensitivities by enumeration of everything one user can do; the paper's factor must fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from adsbpc.errors import PrivacyError
from adsbpc.model import Adjacency, Dimension, Layout
from adsbpc.privacy import (
    SeededRandomness,
    gaussian_cost,
    histogram_squared,
    noisy_histogram,
    noisy_totals,
    totals_squared,
)
from adsbpc.privacy.gaussian import Noisy


def capped_vectors(publishers: int, bound: int) -> list[tuple[int, ...]]:
    return [v for v in product(range(bound + 1), repeat=publishers) if sum(v) <= bound]


def largest_squared(adjacency: Adjacency, vectors: list[tuple[int, ...]]) -> int:
    nothing = tuple([0] * len(vectors[0]))
    others = vectors if adjacency is Adjacency.SUBSTITUTE else [nothing]
    return max(
        sum((a - b) ** 2 for a, b in zip(v, w, strict=True)) for v in vectors for w in others
    )


def layout_of(publishers: int) -> Layout:
    return Layout.of_publishers([f"P-{k}" for k in range(publishers)])


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("publishers", [1, 2, 3])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_totals_by_enumeration(adjacency: Adjacency, publishers: int, bound: int) -> None:
    largest = largest_squared(adjacency, capped_vectors(publishers, bound))
    assert totals_squared(adjacency, layout_of(publishers), bound) == largest


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("lengths", [(1,), (3,), (2, 2), (1, 3), (2, 1)], ids=str)
@pytest.mark.parametrize("weights", [(1, 3, 3), (2, 0, 1), (0, 1, 1)], ids=str)
def test_views_by_enumeration(
    adjacency: Adjacency, lengths: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    """All users with cells that add up to at most the bound, in the columns of all views."""
    lists = tuple(
        Dimension(f"d{place}", tuple(map(str, range(length))))
        for place, length in enumerate(lengths)
    )
    layout = Layout(lists, weights[-len(lengths) - 1 :])
    vectors = [tuple(layout.in_columns(cells)) for cells in capped_vectors(len(layout), 2)]
    assert totals_squared(adjacency, layout, 2) == largest_squared(adjacency, vectors)


def test_the_papers_claim_for_substitution_is_too_small() -> None:
    """Many publishers: r_i is claimed, sqrt(2) r_i is true."""
    assert largest_squared(Adjacency.SUBSTITUTE, capped_vectors(2, 3)) == 2 * 3**2 > 3**2


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_histograms_by_enumeration(adjacency: Adjacency) -> None:
    one_hot = [tuple(int(i == j) for i in range(4)) for j in range(4)]
    assert histogram_squared(adjacency) == largest_squared(adjacency, [(0, 0, 0, 0), *one_hot])


@pytest.mark.parametrize("bound", [0, -1, 1.5, 1.0, True, None])
def test_a_bound_that_is_no_whole_number(bound: object) -> None:
    """Keeping ceil(1.01) = 2 while scaling noise to 1.01 would cost 3.9 times the promise."""
    with pytest.raises(PrivacyError, match="whole number"):
        totals_squared(Adjacency.ADD_REMOVE, layout_of(2), bound)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_noise_is_paid_for_and_on_the_grid(adjacency: Adjacency) -> None:
    rho = Fraction(3, 100)
    noisy = noisy_totals([5, 0, 7], layout_of(3), 720_720, rho, adjacency, SeededRandomness(1))
    assert noisy.values.dtype == np.int64
    squared = totals_squared(adjacency, layout_of(3), 720_720)
    assert noisy.cost == gaussian_cost(squared, noisy.scale) <= rho
    histogram = noisy_histogram([5, 0, 7], rho, adjacency, SeededRandomness(1))
    assert histogram.values.dtype == np.int64
    assert histogram.cost <= rho


def totals(values: Any, bound: int, rho: Fraction) -> Noisy:
    """Of one publisher."""
    return noisy_totals(values, layout_of(1), bound, rho, Adjacency.ADD_REMOVE, SeededRandomness(1))


def test_floating_point_values_are_refused() -> None:
    with pytest.raises(PrivacyError, match="expected integers on the grid"):
        totals(np.array([1.5]), 1, Fraction(1))


def test_noise_too_wide_for_64_bits_is_refused() -> None:
    """Samplers would cut it off, and the wrapped sum would show the exact total."""
    with pytest.raises(PrivacyError, match="too wide"):
        totals([37], 10**12, Fraction(1, 10**13))


def test_huge_totals_are_cut_off_and_not_refused() -> None:
    """An error would tell that they were reached; without a cut the sum could wrap around."""
    noisy = totals([2**62], 1, Fraction(1))
    assert abs(int(noisy.values[0]) - 2**60) < 100
