"""What bounds or budgets cut, added back where it was counted: how much, and how far off that may
be. Post-processing of released figures; the same for every answer and every range of slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log1p, sqrt

# What was cut differs between sums by this part of itself, as a standard deviation.
UNEVEN = 0.75
# From so many standard deviations on, a count shows that something was cut. Less, and the noise of
# coarse columns would be all that intervals tell; more, and a handful of people stay unseen longer.
SHOWN = 2.0
# So many times more may have been cut than is expected.
CAUTION = 5.0
# Of a count that is added, standard errors have the noise, and one standard deviation of it is room
# enough for more; one that is not added may hide so many.
HIDING = 1.65


@dataclass(frozen=True)
class Trust:
    """How much of a noisy count is added: nothing up to a doubt, which is the larger, the more harm
    the count's noise would do and the more counts are taken to be `trembling` rather than to show
    that something was cut. From there on the more nearly all of it, the higher the `power`. Sums
    are `uneven` in what was cut by this part of what is added, as a standard deviation."""

    trembling: float = 3.0
    power: int = 1
    uneven: float = UNEVEN

    def part(self, count: float, variance: float, harm: float) -> float:
        doubt = 2 * log1p(self.trembling * harm) * variance
        return 1 - (doubt / count**2) ** self.power if count > 0 and count**2 > doubt else 0.0

    def slope(self, part: float) -> float:
        """How much more is added for one more in the count, where this part of it is. What was
        added because noise made a count large is less certain than that noise."""
        return 2 * self.power - (2 * self.power - 1) * part if part > 0 else 0.0


# A count that is mostly noise is seldom added by chance, and one that shows something whole.
GRADUAL, DECIDED = Trust(), Trust(10.0, 2, 0.9)


@dataclass(frozen=True)
class Added:
    """What is added to a query's answers together, its variance, and what may be missing still.
    `slopes` say how much more is added for one more in a column's count; `fixed_variance` is what
    the variance would be if the parts of counts that are added did not follow from them. Of that,
    sums are `uneven` by this part."""

    total: float = 0.0
    variance: float = 0.0
    missing: float = 0.0
    slopes: tuple[float, ...] = ()
    fixed_variance: float = 0.0
    uneven: float = UNEVEN


def added_back(
    counts: Iterable[tuple[float, float]],
    squared_spread: float,
    noise: float,
    expected: Sequence[float] = (),
    trust: Trust = GRADUAL,
) -> Added:
    """From noisy counts of what was cut, by column, with their variances. Where they are mostly
    noise, less is added: `noise` is the variance that all cells together have without them, and
    `squared_spread` the sum of the squares of their parts.

    What is not added may be missing, with what noise may hide. If counts do not show that anything
    was cut, no less than what is `expected`, by column, as far as noise can hide it, and no more
    than a few times that; the last figure of it is for what no column counts.
    """
    total = variance = fixed_variance = missing = 0.0
    slopes = []
    for place, (count, own) in enumerate(counts):
        harm = own * squared_spread / noise if noise > 0 else 0.0
        part = trust.part(count, own, harm)
        slopes.append(trust.slope(part))
        total += part * count
        variance += slopes[-1] ** 2 * own
        fixed_variance += part**2 * own
        room = part + (1 - part) * HIDING
        hidden = max((1 - part) * count + room * sqrt(own), 0.0)
        if expected and count <= SHOWN * sqrt(own):
            # A count that noise pulls below nothing does not say that less than usual is missing.
            least = min(expected[place], HIDING * sqrt(own))
            hidden = min(max(hidden, least), CAUTION * expected[place])
        missing += hidden
    if expected:
        missing += CAUTION * expected[-1]
    return Added(total, variance, missing, tuple(slopes), fixed_variance, trust.uneven)


def squared_error(noise: float, part: float, added: Added) -> float:
    """Of a sum that has this part of what was added: its noise, and that the cut of a sum is not
    quite its part of the whole."""
    apart = part * (1 - part) * added.total
    return noise + part**2 * added.variance + (added.uneven * apart) ** 2 + max(apart, 0.0)


def sure_part(part: float) -> float:
    """Of the part of a sum in what may be missing: what is left of it if it is a standard deviation
    smaller than its usual part. That of everything is certain."""
    return 1 - UNEVEN * (1 - part)
