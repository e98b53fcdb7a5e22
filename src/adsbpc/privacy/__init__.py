"""THE AUDITED ROOM: noise, sensitivity, quantile, sparse vector, histogram, accounting.

No dataframe, no web, no command line, no clock, no files. README.md beside this file maps each
claim to the function that makes it and to the test that would fail.
"""

from adsbpc.privacy.accounting import (
    composed,
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
from adsbpc.privacy.gaussian import Noisy, noisy_histogram, noisy_totals
from adsbpc.privacy.quantile import private_quantile, unbounded_quantile
from adsbpc.privacy.randomness import Randomness, SecureRandomness, SeededRandomness
from adsbpc.privacy.sensitivity import counts_are_monotone, histogram_squared, totals_squared
from adsbpc.privacy.sparse_vector import SparseVector, sparse_vector_scales

__all__ = [
    "Noisy",
    "Randomness",
    "SecureRandomness",
    "SeededRandomness",
    "SparseVector",
    "composed",
    "counts_are_monotone",
    "epsilon_of",
    "epsilon_of_gaussian",
    "exact_rho",
    "exponential_cost",
    "exponential_epsilon",
    "gaussian_cost",
    "gaussian_scale",
    "histogram_squared",
    "noisy_histogram",
    "noisy_totals",
    "private_quantile",
    "pure_cost",
    "pure_epsilon",
    "rho_of",
    "sparse_vector_scales",
    "totals_squared",
    "unbounded_quantile",
]
