"""Weights of views from how important each level is. Public: from lists alone, never from data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, product
from math import gcd
from operator import mul

from adsbpc.model.layout import LARGEST_WEIGHT


@cache
def weights_for(importance: tuple[float, ...], lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers under which the variances of levels, from everything together to the cells, add
    up to least, each times its importance: of people with one conversion, and against those of a
    campaign that asks for that level alone."""
    numbers = range(LARGEST_WEIGHT + 1)
    tried = product(*[numbers] * len(lengths), numbers[1:])
    # What matters most counts 1, or the smallest numbers that floats have would all be nothing.
    shares = [each / max(importance) for each in importance]
    # Twice the weights are the same strategy.
    return min(
        (weights for weights in tried if gcd(*weights) == 1),
        key=lambda weights: sum(map(mul, shares, _variances(weights, lengths))),
    )


def _variances(weights: Sequence[int], lengths: Sequence[int]) -> list[float]:
    """Of a sum of each level, by least squares over all columns (workloads/margins.py), for a
    budget that one conversion fills."""
    sizes = list(accumulate(lengths, mul, initial=1))
    unit, cells = sum(weight**2 for weight in weights), sizes[-1]
    parts = [weight**2 * cells / size for weight, size in zip(weights, sizes, strict=True)]
    # Sums of a level say nothing of how the cells below them differ: finer columns do.
    known = [sum(parts[depth:]) for depth in range(len(parts))]
    found, fresh, before = [], 0.0, 0
    for size, precision in zip(sizes, known, strict=True):
        fresh += (size - before) / precision
        found.append(unit * cells / size**2 * fresh)
        before = size
    return found
