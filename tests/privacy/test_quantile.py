"""The private quantile: its support, its privacy on all small neighbours, its answers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from math import exp, inf, log

import numpy as np
import pytest

from adsbpc.errors import PrivacyError
from adsbpc.privacy import (
    SecureRandomness,
    SeededRandomness,
    exponential_cost,
    private_quantile,
    unbounded_quantile,
)
from adsbpc.privacy.quantile import quantile_scores

SHARE = Fraction(99, 100)
LIMIT = 5
EPSILON = Fraction(4140, 10_000)


def counts(contributions: tuple[int, ...]) -> list[int]:
    return [sum(min(c, LIMIT) == r for c in contributions) for r in range(1, LIMIT + 1)]


def distribution(contributions: tuple[int, ...], share: Fraction = SHARE) -> list[float]:
    scores = quantile_scores(counts(contributions), share)
    weights = [exp(float(EPSILON) * s / (2 * share.denominator)) for s in scores]
    return [weight / sum(weights) for weight in weights]


def renyi(p: list[float], q: list[float], alpha: float) -> float:
    return log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1)


SMALL = [c for size in range(4) for c in combinations_with_replacement(range(1, LIMIT + 2), size)]


def neighbours() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All small data sets and each with one user added, removed or substituted."""
    pairs = []
    for data in SMALL:
        for k in range(len(data)):
            rest = data[:k] + data[k + 1 :]
            pairs.append((data, rest))
            pairs += [(data, (*rest, other)) for other in range(1, LIMIT + 2)]
    return pairs


@pytest.mark.parametrize("share", [Fraction(99, 100), Fraction(1, 2), Fraction(1, 3)])
def test_every_small_pair_of_neighbours(share: Fraction) -> None:
    rho = float(exponential_cost(EPSILON))
    for one, other in neighbours():
        p, q = distribution(one, share), distribution(other, share)
        assert max(abs(log(a / b)) for a, b in zip(p, q, strict=True)) <= float(EPSILON) + 1e-12
        for alpha in (1.5, 2.0, 8.0, 32.0):
            assert renyi(p, q, alpha) <= alpha * rho + 1e-12
            assert renyi(q, p, alpha) <= alpha * rho + 1e-12


@pytest.mark.parametrize(("one", "other"), [((2, 2), (1, 2)), ((3,), (5,)), ((), (1,)), ((), ())])
def test_the_support_never_depends_on_the_data(
    one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    for data in (one, other):
        assert all(probability > 0 for probability in distribution(data))
        drawn = Counter(
            private_quantile(counts(data), SHARE, EPSILON, SeededRandomness(k)) for k in range(400)
        )
        assert set(drawn) == set(range(1, LIMIT + 1))


def paper_quantile(contributions: tuple[int, ...], low: float, high: float) -> float:
    """P[low <= c < high] by the paper's listing, whose loop starts at interval 1."""
    values = [0, *sorted(contributions), LIMIT]
    k = len(contributions)
    weights = [
        (values[i + 1] - values[i]) * exp(-float(EPSILON) * abs(i - float(SHARE) * k) / 2)
        for i in range(1, k + 1)
    ]
    inside = 0.0
    for i, weight in enumerate(weights, start=1):
        a, b = values[i], values[i + 1]
        if b > a:
            inside += weight * max(0.0, min(b, high) - max(a, low)) / (b - a)
    return inside / sum(weights)


def test_the_listing_of_the_paper_is_found_out() -> None:
    """{2, 2} can never give [1, 2) and {1, 2} can: an infinite ratio."""
    p, q = paper_quantile((2, 2), 1, 2), paper_quantile((1, 2), 1, 2)
    ratio = inf if p == 0 else abs(log(p / q))
    assert p == 0
    assert q > 0.05
    assert ratio > float(EPSILON)


def test_the_answer_is_near_the_quantile() -> None:
    data = [1000, 500, 200, 20, 5, 1, 0, 0, 0, 0]
    cumulative = np.cumsum(data) / sum(data)
    truth = int(np.searchsorted(cumulative, 0.9)) + 1
    for seed in range(20):
        assert private_quantile(data, Fraction(9, 10), Fraction(1), SeededRandomness(seed)) == truth
    assert private_quantile(data, Fraction(9, 10), Fraction(1), SecureRandomness()) == truth


def test_the_unbounded_quantile_needs_no_limit() -> None:
    people = np.repeat([1, 2, 50, 400], [3000, 500, 400, 100])

    def up_to(r: int) -> int:
        return int((people <= r).sum())

    for seed in range(10):
        found = unbounded_quantile(up_to, Fraction(95, 100), Fraction(1), SeededRandomness(seed))
        assert 50 <= found < 60


def test_the_unbounded_quantile_of_nobody_ends() -> None:
    for seed in range(5):
        found = unbounded_quantile(lambda r: 0, SHARE, Fraction(1, 2), SeededRandomness(seed))
        assert 1 <= found <= 1_000_000


def test_the_unbounded_quantile_of_few_stays_near_them() -> None:
    """100 users with one conversion each: the search must not run away into the noise."""
    found = [
        unbounded_quantile(lambda r: 100, SHARE, Fraction(2, 10), SeededRandomness(seed))
        for seed in range(500)
    ]
    assert np.mean(np.array(found) > 100) < 0.002
    assert np.mean(found) < 3


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1), Fraction(3, 2), Fraction(1, 10**7)])
def test_bad_shares(share: Fraction) -> None:
    with pytest.raises(PrivacyError, match="quantile = "):
        private_quantile([1, 2], share, EPSILON, SeededRandomness(1))


def test_no_limit_at_all() -> None:
    with pytest.raises(PrivacyError, match="largest quantile is 0"):
        private_quantile([], SHARE, EPSILON, SeededRandomness(1))
