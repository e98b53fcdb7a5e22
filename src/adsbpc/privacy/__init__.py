"""THE AUDITED ROOM: noise, sensitivity, quantile, sparse vector, histogram, filter, accounting.

No dataframe, no web, no command line, no clock, no files. README.md beside this file maps each
claim to the function that makes it and to the test that would fail.
"""

from typing import TYPE_CHECKING

from adsbpc.fronts import lazy_front

if TYPE_CHECKING:
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
    from adsbpc.privacy.counts import COUNT_UNITS, full_weight, user_weight
    from adsbpc.privacy.filter import (
        LARGEST_CELL,
        LIMIT,
        MOST_CELLS,
        PARTS,
        Account,
        Gram,
        Growth,
        Pace,
        Renewal,
        Terms,
        Tier,
        admit,
        cost,
        largest_cell,
        largest_parts,
        renew,
        square_and_cross,
    )
    from adsbpc.privacy.gaussian import (
        Noisy,
        NoisyRow,
        noisy_counts,
        noisy_histogram,
        noisy_row,
        noisy_totals,
        row_scale,
    )
    from adsbpc.privacy.quantile import private_quantile, unbounded_quantile
    from adsbpc.privacy.randomness import Randomness, SecureRandomness, SeededRandomness, source_of
    from adsbpc.privacy.sensitivity import (
        counts_are_monotone,
        filtered_squared,
        histogram_squared,
        totals_squared,
        weighed_squared,
    )
    from adsbpc.privacy.sparse_vector import SparseVector, sparse_vector_scales
    from adsbpc.privacy.strategies import (
        Strategy,
        equal_columns,
        identity,
        optimised,
        square_root,
        toeplitz,
    )

__all__ = [
    "COUNT_UNITS",
    "LARGEST_CELL",
    "LIMIT",
    "MOST_CELLS",
    "PARTS",
    "Account",
    "Gram",
    "Growth",
    "Noisy",
    "NoisyRow",
    "Pace",
    "Randomness",
    "Renewal",
    "SecureRandomness",
    "SeededRandomness",
    "SparseVector",
    "Strategy",
    "Terms",
    "Tier",
    "admit",
    "composed",
    "cost",
    "counts_are_monotone",
    "epsilon_of",
    "epsilon_of_gaussian",
    "equal_columns",
    "exact_rho",
    "exponential_cost",
    "exponential_epsilon",
    "filtered_squared",
    "full_weight",
    "gaussian_cost",
    "gaussian_scale",
    "histogram_squared",
    "identity",
    "largest_cell",
    "largest_parts",
    "noisy_counts",
    "noisy_histogram",
    "noisy_row",
    "noisy_totals",
    "optimised",
    "private_quantile",
    "pure_cost",
    "pure_epsilon",
    "renew",
    "rho_of",
    "row_scale",
    "source_of",
    "sparse_vector_scales",
    "square_and_cross",
    "square_root",
    "toeplitz",
    "totals_squared",
    "unbounded_quantile",
    "user_weight",
    "weighed_squared",
]

__getattr__ = lazy_front(__name__)
