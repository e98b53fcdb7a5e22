"""Costs and conversions: known figures, other libraries, and rounding that never favours us."""

from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.errors import PrivacyError
from adsbpc.privacy import (
    epsilon_of,
    epsilon_of_gaussian,
    exact_rho,
    exponential_cost,
    exponential_epsilon,
    gaussian_cost,
    gaussian_scale,
    pure_cost,
    pure_epsilon,
    rho_of,
)

rhos = st.fractions(Fraction(1, 10**6), Fraction(50), max_denominator=10**9)
deltas = st.floats(1e-12, 0.1)


def test_known_figures() -> None:
    assert round(float(exponential_epsilon(Fraction(15, 700))), 4) == 0.4140
    assert round(float(pure_epsilon(Fraction(15, 100))), 4) == 0.5547
    assert round(epsilon_of(Fraction(1), 1e-6), 3) == 7.766
    assert round(epsilon_of(Fraction(17, 10), 1e-6), 3) == 10.607
    assert round(epsilon_of_gaussian(Fraction(1), 1e-6), 3) == 7.286
    assert round(epsilon_of(Fraction(1, 2), 1e-6), 5) == 5.22153
    assert round(epsilon_of_gaussian(Fraction(1, 2), 1e-6), 5) == 4.88655


@pytest.mark.parametrize("rho", [0.01, 0.25, 1.0, 1.7, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_other_libraries_agree(rho: float, delta: float) -> None:
    accountant = dp_accounting.rdp.RdpAccountant(
        orders=[1 + 10 ** (k / 200) for k in range(-600, 800)]
    )
    accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
    ours = epsilon_of(exact_rho(rho), delta)
    assert ours == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)
    scale = 1 / math.sqrt(2 * rho)
    theirs = dp_accounting.get_epsilon_gaussian(scale, delta)
    assert epsilon_of_gaussian(exact_rho(rho), delta) == pytest.approx(theirs, rel=1e-6)
    dp.enable_features("contrib")
    space = dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64)
    curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1)
    assert ours == pytest.approx(curve.epsilon(delta), rel=1e-5)


@pytest.mark.parametrize("scale", [0.5, 3.0, 12345.678])
def test_opendp_charges_the_same(scale: float) -> None:
    dp.enable_features("contrib")
    space = dp.atom_domain(T=dp.i64), dp.absolute_distance(T=dp.i64)
    assert dp.m.make_gaussian(*space, scale=scale).map(3) == pytest.approx(
        float(gaussian_cost(9, scale)), rel=1e-12
    )
    scores = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    noisy_max = dp.m.make_noisy_max(*scores, dp.zero_concentrated_divergence(), scale=scale)
    assert noisy_max.map(1) == pytest.approx(float(exponential_cost(Fraction(2 / scale))))


@given(rhos, st.integers(1, 10**12))
def test_gaussian_scales_never_cost_more_than_they_may(rho: Fraction, bound: int) -> None:
    scale = gaussian_scale(bound**2, rho)
    assert gaussian_cost(bound**2, scale) <= rho
    assert gaussian_cost(bound**2, math.nextafter(math.nextafter(scale, 0), 0)) > rho * (
        1 - Fraction(1, 10**14)
    )


@given(rhos)
def test_epsilons_never_cost_more_than_they_may(rho: Fraction) -> None:
    assert rho * (1 - Fraction(1, 10**12)) <= exponential_cost(exponential_epsilon(rho)) <= rho
    assert rho * (1 - Fraction(1, 10**9)) <= pure_cost(pure_epsilon(rho)) <= rho


@given(st.fractions(Fraction(1, 10**6), Fraction(30), max_denominator=10**6))
def test_pure_cost_is_rounded_up(epsilon: Fraction) -> None:
    exact = float(epsilon) * math.tanh(float(epsilon) / 2)
    assert float(pure_cost(epsilon)) >= exact * (1 - 1e-15)
    assert float(pure_cost(epsilon)) <= exact * (1 + 1e-9)


@given(rhos, deltas)
def test_conversions_are_each_others_inverse(rho: Fraction, delta: float) -> None:
    epsilon = epsilon_of(rho, delta)
    if epsilon == 0:
        return
    back = rho_of(epsilon, delta)
    assert epsilon_of(back, delta) <= epsilon
    assert float(back) == pytest.approx(float(rho), rel=1e-5, abs=1e-8)
    assert epsilon_of_gaussian(rho, delta) <= epsilon


@given(rhos, deltas)
def test_the_conversion_holds_at_every_order(rho: Fraction, delta: float) -> None:
    """No alpha gives a smaller epsilon than the one reported: it is the least, rounded up."""
    epsilon, r = epsilon_of(rho, delta), float(rho)
    for power in range(-60, 80):
        alpha = 1 + 10 ** (power / 20)
        bound = alpha * r + (
            alpha * math.log1p(-1 / alpha) - math.log(alpha - 1) - math.log(delta)
        ) / (alpha - 1)
        assert epsilon <= max(bound, 0) * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("rho", [0, -1, float("nan"), float("inf"), 1e-15])
def test_bad_rho(rho: float) -> None:
    with pytest.raises(PrivacyError, match="rho = "):
        exact_rho(rho)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, float("nan")])
def test_bad_delta(delta: float) -> None:
    for convert in (epsilon_of, epsilon_of_gaussian):
        with pytest.raises(PrivacyError, match="delta = "):
            convert(Fraction(1), delta)
    with pytest.raises(PrivacyError, match="delta = "):
        rho_of(1.0, delta)


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan")])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(PrivacyError, match="epsilon = "):
        rho_of(epsilon, 1e-6)
