"""Sums from noisy columns of several views: against dense algebra and figures known before."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.workloads import Margins, UnlikeSums


def columns_of(margins: Margins) -> np.ndarray:
    """H: a row for each column of each view, with its weight."""
    return np.vstack(
        [
            weight * np.kron(np.eye(size), np.ones((1, margins.cells // size)))
            for size, weight in zip(margins.sizes, margins.weights, strict=True)
            if weight
        ]
    )


def sums_of(margins: Margins, kept: list[int]) -> np.ndarray:
    """A row for each sum that keeps these dimensions."""
    found: np.ndarray = np.ones((1, 1))
    for place, length in enumerate(margins.lengths):
        found = np.kron(found, np.eye(length) if place in kept else np.ones((1, length)))
    return found


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
    lambda lengths: st.tuples(
        st.just(tuple(lengths)),
        st.tuples(*[st.integers(0, 8)] * len(lengths), st.integers(1, 8)),
    )
)


@given(shapes, st.integers(0, 1_000))
def test_the_closed_form_is_dense_least_squares(
    shape: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    margins = Margins(*shape)
    columns = columns_of(margins)
    noisy = np.random.default_rng(seed).normal(0, 100, (2, len(columns)))
    found = margins.estimates(noisy)
    expected = [np.linalg.lstsq(columns, row, rcond=None)[0] for row in noisy]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    # One estimate of the cells, of which everything is a sum.
    for depth in range(len(margins.lengths) + 1):
        total = margins.summed(found, depth).sum(axis=-1)
        np.testing.assert_allclose(total, found.sum(axis=-1), atol=1e-9)


@given(shapes)
def test_variances_are_those_of_dense_least_squares(
    shape: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    margins = Margins(*shape)
    inverse = np.linalg.inv(columns_of(margins).T @ columns_of(margins))
    places = range(len(margins.lengths))
    for kept in ([], [0], list(places), [places[-1]]):
        sums = sums_of(margins, kept)
        variances = np.einsum("ij,jk,ik->i", sums, inverse, sums)
        np.testing.assert_allclose(variances, margins.variance(kept), rtol=1e-9)


def test_three_dimensions() -> None:
    margins = Margins((5, 3, 2), (0.5, 1, 0.7, 1))
    found = [margins.view_variance(depth) for depth in range(4)]
    assert found == pytest.approx([1.938, 0.679, 0.749, 0.687], abs=5e-4)
    # A margin that has no columns of its own.
    assert margins.variance([1]) == pytest.approx(3.582, abs=5e-4)


@pytest.mark.parametrize(
    ("cells", "total", "dearer"), [(6, 2.00, 1.018), (50, 2.92, 1.045), (287, 3.13, 1.052)]
)
def test_a_total_for_little(cells: int, total: float, dearer: float) -> None:
    """Cells, and the total with a squared weight of 0.11, what people cost included: the total is
    far better than the root of the number of cells, for a few percent on cells."""
    margins, cost = Margins((cells,), (sqrt(0.11), 1)), 1.11
    assert sqrt(cost * margins.view_variance(0)) == pytest.approx(total, abs=0.005)
    assert sqrt(cost * margins.view_variance(1)) == pytest.approx(dearer, abs=5e-4)
    alone = Margins((cells,), (0, 1))
    assert alone.view_variance(0) == pytest.approx(cells)


def test_publishers_by_country() -> None:
    """50 x 20 cells with squared weights of 0.05, 0.475 and 0.475: publishers and cells are 1.42
    times what a campaign has that asks for one of them alone, or less."""
    margins = Margins((50, 20), (sqrt(0.05), sqrt(0.475), sqrt(0.475)))
    publishers, cells = (sqrt(margins.view_variance(depth)) for depth in (1, 2))
    assert publishers <= 1.42
    assert cells <= 1.42
    alone = Margins((50, 20), (0, 0, 1))
    assert sqrt(alone.view_variance(1)) == pytest.approx(4.47, abs=0.01)
    assert sqrt(alone.view_variance(0)) == pytest.approx(31.6, abs=0.05)


@given(shapes, st.integers(0, 1_000))
def test_columns_that_are_not_alike_are_dense_weighted_least_squares(
    shape: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    margins, rng = Margins(*shape), np.random.default_rng(seed)
    # Whether a view has columns matters, and how precise each of them is.
    columns = columns_of(Margins(shape[0], tuple(min(weight, 1) for weight in shape[1])))
    noisy, spread = rng.normal(0, 100, (2, len(columns))), rng.uniform(0.1, 9, (2, len(columns)))
    found, variances = UnlikeSums(*shape).solve(noisy, spread)
    for row, own, cells, *of_views in zip(noisy, spread, found, *variances, strict=True):
        inverse = np.linalg.inv(columns.T @ np.diag(1 / own) @ columns)
        np.testing.assert_allclose(cells, inverse @ columns.T @ (row / own), atol=1e-8)
        for depth, of_view in enumerate(of_views):
            sums = sums_of(margins, list(range(depth)))
            expected = np.diag(sums @ inverse @ sums.T)
            np.testing.assert_allclose(of_view, expected, rtol=1e-9, atol=1e-12)


@given(shapes, st.integers(0, 1_000))
def test_columns_that_are_alike_are_no_other_case(
    shape: tuple[tuple[int, ...], tuple[int, ...]], seed: int
) -> None:
    margins = Margins(*shape)
    weights = np.concatenate(
        [np.full(n, w) for n, w in zip(margins.sizes, shape[1], strict=True) if w]
    )
    noisy = np.random.default_rng(seed).normal(0, 100, (1, len(weights)))
    found, variances = UnlikeSums(*shape).solve(noisy / weights, 1 / weights[None, :] ** 2.0)
    np.testing.assert_allclose(found, margins.estimates(noisy), atol=1e-8)
    for depth, of_view in enumerate(variances):
        np.testing.assert_allclose(of_view, margins.view_variance(depth), rtol=1e-9)
