"""How many standard errors the ends of an interval leave for noise.

A sum may have anything from nothing to all of a `room` more than was counted, so its interval is
[value - q s, value + room + q s], with the standard error s. Its two ends cannot both be close to
what is true. With m of the room missing, the low end fails with probability Phi(-q - m / s) and the
high end with Phi(-q - (room - m) / s). Both are convex in m, so that together they are largest with
nothing or with everything missing, and

    Phi(-q) + Phi(-q - room / s) = 1 - level

is enough (Imbens and Manski 2004): q is the usual 1.96 of 95% without any room, and falls to 1.645
with plenty. Where the ends have errors of their own, that holds with s the larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Self

# The page has the same figures, so they stand in a table; lines between them are above the curve,
# which is convex. With more room than the last there is no more to gain.
STEP, _STEPS = 0.125, 33
_HALVINGS = 60


@dataclass(frozen=True)
class Reach:
    """By the room, in so many steps of standard errors; without any at first."""

    by_room: tuple[float, ...]

    @classmethod
    @lru_cache
    def of(cls, level: float) -> Self:
        return cls(tuple(_enough(level, STEP * step) for step in range(_STEPS)))

    @property
    def plain(self) -> float:
        """For the noise alone."""
        return self.by_room[0]

    def with_room(self, room: float, error: float) -> float:
        if room <= 0:
            return self.plain
        if room >= error * STEP * (_STEPS - 1):
            return self.by_room[-1]
        place = room / error / STEP
        before = int(place)
        less, more = self.by_room[before], self.by_room[before + 1]
        return less + (place - before) * (more - less)


def _enough(level: float, room: float) -> float:
    """The least q with Phi(-q) + Phi(-q - room) <= 1 - level."""
    normal = NormalDist()
    if room == 0:
        return normal.inv_cdf((1 + level) / 2)
    low, high = 0.0, normal.inv_cdf((1 + level) / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if normal.cdf(-middle) + normal.cdf(-middle - room) > 1 - level:
            low = middle
        else:
            high = middle
    return high
