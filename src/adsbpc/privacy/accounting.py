"""zCDP: what each kind of noise costs, and what a total means as (epsilon, delta).

Costs are exact rationals. Where a formula is transcendental, the cost is rounded up and what it
buys is rounded down: never for the one who spends.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import erfc, exp, inf, log, log1p, nextafter, sqrt, tanh

from adsbpc.errors import PrivacyError

# Relative room for the rounding of a handful of floating-point operations.
_ROUNDING = Fraction(1, 2**40)
_SMALLEST_RHO = Fraction(1, 10**12)


def exact_rho(value: float | str | Fraction) -> Fraction:
    """A positive budget as the decimal that a person wrote: 0.1 is one tenth."""
    try:
        rho = Fraction(value) if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, OverflowError):
        rho = Fraction(0)
    if rho < _SMALLEST_RHO:
        raise PrivacyError(f"rho = {value}: expected a number above 0, for example 1")
    return rho


def check_delta(delta: float) -> float:
    if not 0 < delta < 1:
        raise PrivacyError(f"delta = {delta}: expected a number between 0 and 1, for example 1e-6")
    return delta


# ---- what noise costs --------------------------------------------------------------------------


def gaussian_cost(sensitivity_squared: int, scale: float) -> Fraction:
    """rho = D2^2 / (2 sigma^2), for the discrete Gaussian too (Canonne et al. 2020, Theorem 14)."""
    return Fraction(sensitivity_squared) / (2 * Fraction(scale) ** 2)


def gaussian_scale(sensitivity_squared: int, rho: Fraction) -> float:
    """The smallest float whose cost does not pass rho."""
    scale = sqrt(Fraction(sensitivity_squared) / (2 * rho))
    while gaussian_cost(sensitivity_squared, scale) > rho:
        scale = nextafter(scale, inf)
    return scale


def exponential_cost(epsilon: Fraction) -> Fraction:
    """rho = epsilon^2 / 8: the exponential mechanism has bounded range (Cesar and Rogers 2021)."""
    return epsilon**2 / 8


def exponential_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon, on a grid, whose `exponential_cost` does not pass rho.

    >>> round(float(exponential_epsilon(Fraction(15, 700))), 4)
    0.414
    """
    epsilon = sqrt(8 * rho)
    while exponential_cost(Fraction(epsilon)) > rho:
        epsilon = nextafter(epsilon, 0)
    return Fraction(epsilon)


def pure_cost(epsilon: Fraction) -> Fraction:
    """rho = epsilon tanh(epsilon / 2), which is tight for epsilon-DP, rounded up."""
    e = float(epsilon)
    return min(Fraction(e * tanh(e / 2)) * (1 + _ROUNDING), epsilon**2 / 2)


def pure_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon, on a grid, whose `pure_cost` does not pass rho.

    >>> round(float(pure_epsilon(Fraction(15, 100))), 4)
    0.5547
    """
    low, high = 0.0, 1.0 + 2 * sqrt(2 * rho) + 2 * float(rho)
    while high - low > high * 2**-45:
        middle = (low + high) / 2
        low, high = (middle, high) if pure_cost(Fraction(middle)) <= rho else (low, middle)
    return Fraction(low)


# ---- what a total means ------------------------------------------------------------------------


def epsilon_of(rho: Fraction, delta: float) -> float:
    """epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Canonne, Kamath and Steinke 2020, Corollary 13, the conversion that the paper uses:
    the least over alpha > 1 of alpha rho + (alpha log(1 - 1/alpha) - log(alpha - 1) - log delta)
    / (alpha - 1).

    >>> round(epsilon_of(Fraction(1), 1e-6), 3)
    7.766
    """
    check_delta(delta)
    r = float(rho)

    def bound(log_excess: float) -> float:
        excess = exp(log_excess)  # alpha - 1
        alpha = 1 + excess
        return alpha * r + (-alpha * log1p(1 / excess) - log_excess - log(delta)) / excess

    return max(0.0, _least(bound, -20.0, 40.0)) * (1 + 1e-9)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Least value of a unimodal function by golden section; every point is a valid bound."""
    golden = (sqrt(5) - 1) / 2
    while high - low > 1e-9:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if function(left) <= function(right):
            high = right
        else:
            low = left
    return function((low + high) / 2)


def epsilon_of_gaussian(rho: Fraction, delta: float) -> float:
    """The tighter epsilon when all noise is continuous Gaussian, rounded up (Balle and Wang 2018).

    Discrete Gaussian noise comes close to it but is not covered by the theorem, so no promise of
    this package is stated with it.

    >>> round(epsilon_of_gaussian(Fraction(1), 1e-6), 3)
    7.286
    """
    check_delta(delta)
    mu = sqrt(2 * float(rho))
    low, high = 0.0, epsilon_of(rho, delta)
    if _gaussian_delta(mu, low) <= delta:
        return 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(mu, middle) > delta else (low, middle)
    return high * (1 + 1e-9)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    def below(x: float) -> float:
        return erfc(-x / sqrt(2)) / 2

    rest = below(-mu / 2 - epsilon / mu)
    return below(mu / 2 - epsilon / mu) - (exp(epsilon + log(rest)) if rest > 0 else 0.0)


def rho_of(epsilon: float, delta: float) -> Fraction:
    """The largest rho, on a grid, for which `epsilon_of` does not pass epsilon."""
    check_delta(delta)
    if not 0 < epsilon < inf:
        raise PrivacyError(f"epsilon = {epsilon}: expected a number above 0, for example 8")
    low, high = Fraction(0), Fraction(epsilon)
    while epsilon_of(high, delta) <= epsilon:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return exact_rho(Fraction(int(low * 10**12), 10**12))


def composed(costs: list[Fraction]) -> Fraction:
    """zCDP adds up, also when later parts depend on earlier outputs (Bun and Steinke 2016), and
    when interactive parts such as sparse vectors run between the others (Vadhan and Wang 2021)."""
    return sum(costs, Fraction(0))
