"""Private quantiles of users' contributions, counted in whole conversions.

Must never: give outputs a support that depends on the data. The paper's listing leaves out the
first interval, and an output that one data set cannot produce gives its neighbour away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil

from adsbpc.errors import PrivacyError
from adsbpc.privacy.randomness import Integers, Randomness, check_scale
from adsbpc.privacy.sparse_vector import SparseVector

# The search for an unbounded quantile ends here at the latest, whatever the data.
_LARGEST_CANDIDATE = 1_000_000


def _check_share(share: Fraction) -> None:
    """Scores are counts times the denominator, which must leave room in 64 bits for any count."""
    if not 0 < share < 1 or share.denominator > 10**6:
        raise PrivacyError(
            f"quantile = {float(share)}: expected a share between 0 and 1 with at most six decimals"
        )


def quantile_scores(counts: Sequence[int] | Integers, share: Fraction) -> list[int]:
    """Score of each r = 1..len(counts): minus how many users lie on the wrong side of r.

    `counts[r - 1]` are the users with contribution r; the last entry also holds all above. The
    score -max(0, p k - #{c <= r}, #{c < r} - p k) is multiplied by the denominator of p, so that
    it is an integer; its sensitivity is then that denominator.
    """
    _check_share(share)
    people = sum(int(count) for count in counts)
    target = share.numerator * people
    scores, below = [], 0
    for count in counts:
        up_to = below + int(count)
        short, over = target - up_to * share.denominator, below * share.denominator - target
        scores.append(-max(0, short, over))
        below = up_to
    return scores


def private_quantile(
    counts: Sequence[int] | Integers, share: Fraction, epsilon: Fraction, randomness: Randomness
) -> int:
    """A number of conversions r in 1..len(counts) such that a share of users has at most r.

    Formal guarantee: epsilon^2 / 8-zCDP under either adjacency. One user changes p k by at most p
    and each count by at most 1 in the same step, so each score moves by at most 1.
    """
    if len(counts) == 0:
        raise PrivacyError("the largest quantile is 0: expected at least 1")
    # P[r] ~ exp(epsilon score / (2 sensitivity)); rounding the scale up only adds noise.
    scale = check_scale(float(2 * share.denominator / epsilon) * (1 + 2**-50))
    return randomness.choose(quantile_scores(counts, share), scale) + 1


def unbounded_quantile(
    count_up_to: Callable[[int], int],
    share: Fraction,
    epsilon: Fraction,
    randomness: Randomness,
) -> int:
    """The same without a largest value to guess (Durfee 2023, "Unbounded differentially private
    quantile"): candidates grow by an eighth until noisily enough users lie at or below one.

    `count_up_to(r)` counts users with contribution in 1..r, of all when r is the largest.

    Formal guarantee: epsilon-DP. The queries #{c <= r} - p k have sensitivity max(p, 1 - p) <= 1
    and are not monotone; one sparse vector with one report answers them all. Rounding them to
    integers keeps the sensitivity at 1. The threshold lies below 0 by twice the noise, a public
    number: otherwise few users could never lift a query out of the noise, and the search would run
    far past them.
    """
    _check_share(share)
    people = count_up_to(_LARGEST_CANDIDATE)
    search = SparseVector.start(epsilon, 1, randomness, monotone=False)
    threshold = -ceil(2 * search.scales.query)
    candidate = 1
    while candidate < _LARGEST_CANDIDATE:
        shortfall = share.numerator * people - share.denominator * count_up_to(candidate)
        query = -(shortfall // share.denominator)
        if search.passes(query, threshold, randomness):
            return candidate
        candidate = candidate + max(1, candidate // 8)
    return _LARGEST_CANDIDATE
