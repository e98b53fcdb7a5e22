"""The sparse vector technique: report which queries pass a threshold, at most k times.

Must never: draw the threshold's noise a second time. The paper redraws it after each report, which
costs up to (k + 1) / 2 times what it claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

from adsbpc.errors import PrivacyError
from adsbpc.privacy.randomness import Randomness, check_scale


@dataclass(frozen=True)
class SparseVectorScales:
    """Noise scales for threshold and queries, and the epsilon that they exactly cost."""

    threshold: float
    query: float
    epsilon: Fraction


def sparse_vector_scales(epsilon: Fraction, reports: int, *, monotone: bool) -> SparseVectorScales:
    """Scales for queries of sensitivity 1 (Lyu, Su and Li 2017, Theorems 4 and 5).

    The threshold costs 1 / scale once; each report costs 2 / scale of the query noise, or
    1 / scale if a user moves all queries the same way. The split that makes the difference of the
    two noises smallest gives the queries (2k)^(2/3) times the threshold's part, k^(2/3) if
    monotone.
    """
    if epsilon <= 0 or reports < 1:
        raise PrivacyError(
            f"epsilon = {float(epsilon)}, reports = {reports}: expected both above 0"
        )
    weight = reports if monotone else 2 * reports
    parts = 1 + weight ** (2 / 3)
    threshold = _not_below(parts / float(epsilon), 1 / (epsilon * Fraction(1 / parts)))
    left = epsilon - 1 / Fraction(threshold)
    query = _not_below(weight / float(left), weight / left)
    spent = 1 / Fraction(threshold) + weight / Fraction(query)
    return SparseVectorScales(check_scale(threshold), check_scale(query), spent)


def _not_below(scale: float, exact: Fraction) -> float:
    while Fraction(scale) < exact:
        scale = nextafter(scale, inf)
    return scale


@dataclass
class SparseVector:
    """One run over a stream of queries.

    Formal guarantee: `scales.epsilon`-DP for all answers together, however many there are, given
    queries of sensitivity 1 (and monotone, if the scales say so) that may depend on earlier
    answers. `threshold_noise` is secret state.
    """

    scales: SparseVectorScales
    reports_left: int
    threshold_noise: int

    @classmethod
    def start(
        cls, epsilon: Fraction, reports: int, randomness: Randomness, *, monotone: bool
    ) -> SparseVector:
        scales = sparse_vector_scales(epsilon, reports, monotone=monotone)
        return cls(scales, reports, randomness.laplace(scales.threshold))

    def passes(self, query: int, threshold: int, randomness: Randomness) -> bool:
        """Whether a query is, noisily, above the threshold; False for good once k are reported."""
        if self.reports_left == 0:
            return False
        noisy = query + randomness.laplace(self.scales.query)
        if noisy <= threshold + self.threshold_noise:
            return False
        self.reports_left -= 1
        return True
