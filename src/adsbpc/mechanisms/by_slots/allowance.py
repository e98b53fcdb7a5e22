"""How much of a user is let in: the allowance, chosen from noisy histograms of what users need.

The allowance of a slot is the norm, in conversions, up to which a user fits if every slot has the
same. Too small, and people who convert often run dry, all of what they do later is cut, and no
noise is as bad. Too large costs noise in proportion. So the choice weighs predicted noise against
predicted cut, over a range of forecasts of how needs will grow until the end.

Everything here is post-processing of released figures: it can be wrong, but not unsafe. The
constants were set on made-up data of other shapes than those that docs/personal-budgets.md shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log, log2, sqrt

import numpy as np

from adsbpc.mechanisms.by_slots.mixes import NoiseForecast
from adsbpc.workloads.queries import Reals

# Norms in conversions, a quarter of an octave apart; bin i of a histogram begins at norm i. An odd
# start, so that no usual need lies on an edge. The last bin of a histogram has no end.
STEPS_PER_OCTAVE = 4
_NORMS: Reals = 0.52 * 2.0 ** (np.arange(15 * STEPS_PER_OCTAVE + 2) / STEPS_PER_OCTAVE)
EDGES = _NORMS[:-1]

# A bin counts as seen from this many standard deviations of its noise, if it is near others that
# are beyond doubt; far out it has to be beyond doubt itself. One false bin must not blow up noise.
_SEEN, _BEYOND_DOUBT = 4.0, 7.0
_NEAR, _NOT_FAR = STEPS_PER_OCTAVE, 3 * STEPS_PER_OCTAVE
_WIDTHS = (1, 2, 4)
# Where counts drop from many to nothing between two bins, this much may still hide in the noise.
_HIDDEN, _RESOLVED = 2.0, 8.0
# Tails of counts fall like a power of the norm; what is expected before anything is seen.
_USUAL_POWER, _LEAST_POWER, _LARGEST_POWER = 4.0, 2.5, 20.0
# How needs grow: norm ~ slot^a, with a = 1/2 for people who never meet a cell twice and more
# for loyal ones. Apparent growth is less, because chance evens out; with one cell everybody is
# loyal to it.
_GROWTH, _LESS_IF_ONE_PUBLISHER, _GROWTH_SPREAD = 0.2, 0.2, 0.12
_GROWTH_ERROR, _GROWTH_DRIFT = 0.15, 0.05
# Forecasts that are weighed: how many spreads off, and with what weight. Too low is worse.
_FORECASTS = ((-1.0, 0.25), (0.0, 0.4), (1.0, 0.25), (1.8, 0.1))
# Or everybody is loyal: the same people meet the same cell on slot after slot. Not likely
# beforehand, and weighed only once two looks speak for it, because it would be costly to provide
# for; but if it is so and nobody notices, everything of the last slots is cut.
_LOYAL_SPREAD = 0.1
_LOYAL_CHANCE, _WORTH_WEIGHING = 0.05, 0.05
# A minor look changes the allowance only if it asks for this much more.
_ALARM = 1.5
# Somebody with the public guess of conversions fits, more or less, whatever the histograms show.
_SPREAD_OUT, _LOYAL = 0.7, 1.5
# Nobody guessed: so many conversions, or so many times the mean of a person where histograms hide
# more than this part of the people. Who is hidden converts more often than anybody who is seen.
_HEAVY_USER, _TIMES_THE_MEAN, _HIDDEN_PART = 30, 10.0, 0.012
# Nobody is, unless those who are seen differ by more than chance makes them: from so much on.
_ALIKE, _UNLIKE = 1.2, 1.6
# How many have converted grows like slot^b, with b this before it is seen, and later so much less.
_NEW_PEOPLE, _FEWER_ARE_NEW = 0.65, 0.65
# Earlier looks show too few to go by, and not much more than usual may be chance.
_FIRST_GUESS, _CLEARLY_MORE = 4, 2.0


@dataclass(frozen=True)
class Look:
    """A noisy histogram of users by norm, with the standard deviation of its noise. `major` looks
    have little noise; minor ones are there to notice a surge."""

    slot: int
    counts: tuple[int, ...]
    deviation: float
    major: bool


@dataclass(frozen=True)
class _Tail:
    """How many users are above each of the first edges, as far as that can be seen."""

    slot: int
    above: Reals
    deviation: float

    @property
    def end(self) -> tuple[float, int]:
        """Count and edge from which on the tail is extrapolated."""
        last = float(self.above[-1])
        if last <= _RESOLVED * self.deviation:
            return last, len(self.above) - 1
        return _HIDDEN * self.deviation, len(self.above)

    def norm_at(self, count: float) -> float:
        """The norm that so many users are above, interpolated."""
        enough = np.flatnonzero(self.above >= count)
        if not enough.size:
            return float(_NORMS[0])
        place = int(enough[-1])
        here = float(self.above[place])
        following = min(here, _HIDDEN * self.deviation)
        if place + 1 < len(self.above):
            following = float(self.above[place + 1])
        share = min(1.0, log(here / count) / log(here / following)) if here > following else 0.0
        return float(_NORMS[place] * 2 ** (share / STEPS_PER_OCTAVE))


@dataclass(frozen=True)
class Level:
    """A view as allowances see it: sums of `stride` cells each, which have `share` of what a
    conversion costs; `variance` is that of an estimated sum, beside that of a row of their own."""

    columns: int
    stride: int
    share: float
    variance: float


@dataclass(frozen=True)
class Forecast:
    """Chooses allowances. `noise` tells the weighted sum of variances of answers for one column
    under allowances; `spans` is sum_j weight_j^2 (share of the slots
    that query j covers)^2; `own` and `recurring` are the mean cost of a slot, and of a pair of
    slots, of one conversion each; `heavy_user` is the public guess of conversions, if there is one.
    """

    slots: int
    levels: tuple[Level, ...]
    noise: NoiseForecast
    spans: float
    own: float
    recurring: float
    heavy_user: int | None

    @property
    def least(self) -> float:
        """The allowance before anything is seen."""
        return self.fitting(self.heavy_user or _HEAVY_USER)

    @property
    def _crowding(self) -> float:
        """How often two conversions meet in a cell, if all are alike; histograms show sums."""
        return 1 / self.levels[-1].columns

    def choose(self, looks: Sequence[Look], past: Sequence[float], released: Reals) -> float:
        """The allowance of the next slot. `past` has those of earlier slots, and `released` what
        was released of them, a row a slot and a column a cell, in conversions."""
        concentrations = self._concentrations(released)
        major = [look for look in looks if look.major]
        chosen = self._weigh(major, past, concentrations, strict=False) or 0.0
        if looks and not looks[-1].major:
            alarmed = self._weigh([*major, looks[-1]], past, concentrations, strict=True)
            if alarmed is not None and alarmed > _ALARM * chosen:
                chosen = alarmed
        return max(self.fitting(self._heavy_user(major, released)), chosen)

    def fitting(self, conversions: float) -> float:
        """The norm of somebody with so many conversions."""
        spread_out = _SPREAD_OUT * self.own * conversions
        loyal = _LOYAL * self.recurring * conversions**2 * self._crowding
        return sqrt(spread_out + loyal)

    def _heavy_user(self, looks: Sequence[Look], released: Reals) -> float:
        """The public guess, or one from what was released before the last look: until the next one
        it stays as it is, because noise cancels only between slots of the same allowance."""
        if self.heavy_user is not None:
            return self.heavy_user
        tails = [tail for look in looks if (tail := _tail(look, strict=False)) is not None]
        before = released[: tails[-1].slot - 1] if tails else released[:0]
        if len(before) < _FIRST_GUESS - 1:
            return _HEAVY_USER
        newest, pace = tails[-1], max(0.0, float(before.sum()) / len(before))
        hidden = _SEEN * newest.deviation / float(newest.above[0])
        uneven = self._unevenness(newest, pace, self._concentrations(before))
        unlike = (uneven - _ALIKE) / (_UNLIKE - _ALIKE)
        share = min(1.0, hidden / _HIDDEN_PART) ** 3 * min(max(unlike, 0.0), 1.0)
        guess = _TIMES_THE_MEAN * share * pace * self.slots / self._people(tails)
        return guess if guess > _CLEARLY_MORE * _HEAVY_USER else _HEAVY_USER

    def _unevenness(self, tail: _Tail, pace: float, concentrations: Sequence[float]) -> float:
        """How many times as much the most active people who can be seen have, beside the middle, as
        they would if all were alike and chance alone made the difference."""
        seen = float(tail.above[0])
        count = min(max(_RESOLVED * tail.deviation, float(tail.above[-1])), seen / 4)
        norms = np.array([tail.norm_at(count), tail.norm_at(seen / 2)])
        top, middle = self._conversions(norms, concentrations)
        mean = _mean_of_all(pace * tail.slot / seen)
        by_chance = _poisson_at(mean, count / seen) / _poisson_at(mean, 0.5)
        return float(top / middle / by_chance)

    def _people(self, tails: Sequence[_Tail]) -> float:
        """How many will have converted by the end: fewer and fewer are new."""
        first, newest = tails[0], tails[-1]
        growth = _NEW_PEOPLE
        if newest.slot > first.slot:
            times = max(1.0, float(newest.above[0] / first.above[0]))
            growth = min(1.0, log2(times) / log2(newest.slot / first.slot))
        return float(newest.above[0] * (self.slots / newest.slot) ** (_FEWER_ARE_NEW * growth))

    def _concentrations(self, released: Reals) -> list[float]:
        """The sum of squared shares of columns by level; what is usual before there are any."""
        totals = np.maximum(released.sum(axis=0), 0)
        if not totals.any():
            return [level.columns**-0.7 for level in self.levels]
        shares = totals / totals.sum()
        return [
            float((np.add.reduceat(shares, np.arange(0, shares.size, level.stride)) ** 2).sum())
            for level in self.levels
        ]

    def _weigh(
        self,
        looks: Sequence[Look],
        past: Sequence[float],
        concentrations: list[float],
        strict: bool,
    ) -> float | None:
        """The allowance with the least expected error, None if the looks show nothing."""
        tails = [
            tail
            for place, look in enumerate(looks)
            if (tail := _tail(look, strict and place == len(looks) - 1)) is not None
        ]
        if not tails or (strict and tails[-1].slot != looks[-1].slot):
            return None
        exponents = self._growth(tails)
        norms, counts = _population(tails[-1], _power(tails))
        allowances = _NORMS[0] * 2.0 ** (np.arange(16 * 8) / 8)
        squared_cut = np.zeros_like(allowances)
        for exponent, weight in exponents:
            finally_ = self._conversions(
                norms * (self.slots / tails[-1].slot) ** exponent, concentrations
            )
            kept = self._conversions(allowances, concentrations)
            cut = np.maximum(finally_[None, :] - kept[:, None], 0) @ counts
            squared_cut += weight * cut**2
        # What is cut is missing in proportion to what columns have, and counts beside their noise.
        pairs = zip(self.levels, concentrations, strict=True)
        felt = sum(each.share * part / (each.columns * each.variance) for each, part in pairs)
        bias = felt * self.spans * squared_cut
        return float(allowances[np.argmin(bias + self._variance(allowances, past))])

    def _variance(self, allowances: Reals, past: Sequence[float]) -> Reals:
        """The noise of the whole campaign if the rest of it has one allowance. A change costs:
        noise of neighbouring slots cancels only where they have the same."""
        fixed, mixed, rest = self.noise.parts(past)
        return np.asarray(fixed + 2 * mixed * allowances + rest * allowances**2)

    def _conversions(self, norms: Reals, concentrations: Sequence[float]) -> Reals:
        """Those w of a user with this norm, if columns repeat: own w + recurring h w^2 = norm^2."""
        pairs = zip(self.levels, concentrations, strict=True)
        met_again = sum(each.share * max(part, 1 / each.columns) for each, part in pairs)
        repeated = self.recurring * met_again
        if repeated < 1e-9:
            return np.asarray(norms**2 / self.own)
        root = np.sqrt(self.own**2 + 4 * repeated * norms**2)
        return np.asarray((root - self.own) / (2 * repeated))

    def _growth(self, tails: Sequence[_Tail]) -> list[tuple[float, float]]:
        """Exponents of growth with their weights: what is usual, corrected by each pair of looks
        in proportion to how much they can tell, and that of loyal people if looks speak for it."""
        loyal_growth = self._loyal_growth()
        alone = loyal_growth - _LESS_IF_ONE_PUBLISHER
        growth = _GROWTH + max(0.0, alone - _GROWTH) * sqrt(self._crowding)
        variance = _GROWTH_SPREAD**2
        odds = _LOYAL_CHANCE / (1 - _LOYAL_CHANCE) if len(tails) > 1 else 0.0
        before = tails[0]
        for tail in tails[1:]:
            octaves = log2(tail.slot / before.slot)
            if octaves < 0.35:
                continue
            # Where both counts can be seen, and neither lies in a drop from many to nothing.
            seen_by_both = 0.9 * min(float(tail.above[0]), float(before.above[0]))
            resolved = 0.9 * max(float(tail.above[-1]), float(before.above[-1]))
            noise = 8 * max(tail.deviation, before.deviation)
            count = min(max(noise, resolved), seen_by_both)
            seen = _growth_between(before, tail, count)
            # Loyal people all grow; among others a tail may appear above the many who stay.
            seen_of_half = _growth_between(before, tail, float(before.above[0]) / 2)
            variance += _GROWTH_DRIFT**2
            error = (_GROWTH_ERROR / octaves) ** 2
            odds *= _density(seen_of_half - loyal_growth, _LOYAL_SPREAD**2 + error)
            odds /= _density(seen_of_half - growth, variance + error)
            trust = variance / (variance + error)
            growth, variance = growth + trust * (seen - growth), (1 - trust) * variance
            before = tail
        loyal = odds / (1 + odds)
        if loyal < _WORTH_WEIGHING:
            loyal = 0.0
        usual = [
            (
                min(loyal_growth + _LOYAL_SPREAD, max(0.0, growth + offset * sqrt(variance))),
                weight * (1 - loyal),
            )
            for offset, weight in _FORECASTS
        ]
        ends = [loyal_growth - _LOYAL_SPREAD / 2, loyal_growth + _LOYAL_SPREAD / 2]
        return usual + [(exponent, loyal / 2) for exponent in ends]

    def _loyal_growth(self) -> float:
        """How the norm of somebody grows who converts once on every slot in one cell."""
        if self.slots == 1:
            return 1.0
        whole = self.slots * (self.own + (self.slots - 1) * self.recurring)
        return log(sqrt(whole / self.own)) / log(self.slots)


def _growth_between(before: _Tail, after: _Tail, count: float) -> float:
    """The exponent with which the norm grew that so many users are above."""
    octaves = log2(after.slot / before.slot)
    return log2(after.norm_at(count) / before.norm_at(count)) / octaves


def _mean_of_all(mean_of_seen: float) -> float:
    """Conversions of a person so far, those included who have none, if all are alike: the m with
    m / (1 - exp(-m)) = the mean of those who have any."""
    mean = mean_of_seen
    for _ in range(50):
        mean = mean_of_seen * (1 - exp(-mean))
    return max(mean, 1e-3)


def _poisson_at(mean: float, part: float) -> float:
    """What this part of those have at least who have any, under a Poisson distribution; between
    whole numbers interpolated."""
    term = mean * exp(-min(mean, 700.0)) / -expm1(-mean)
    count, above = 1, 1.0
    while above - term > part and count < 10_000:
        above -= term
        count += 1
        term *= mean / count
    return count + (above - part) / max(term, above - part) - 0.5


def _density(distance: float, variance: float) -> float:
    """Of a normal distribution, with a floor so that no look settles a question for good."""
    return max(exp(-(distance**2) / (2 * variance)) / sqrt(variance), 1e-3)


def _tail(look: Look, strict: bool) -> _Tail | None:
    counts = np.array(look.counts, dtype=np.float64)
    counts[1] += counts[0]
    counts = counts[1:]
    seen, certain = (_bins_above(counts, level * look.deviation) for level in _LEVELS)
    for place in np.flatnonzero(seen)[::-1]:
        near = seen[max(place - _NEAR, 0) : place].any()
        not_far = certain[max(place - _NOT_FAR, 0) : place].any()
        if certain[place] or (near and not_far and not strict):
            break
    else:
        return None
    above = np.cumsum(counts[: place + _WIDTHS[-1]][::-1])
    above = np.maximum.accumulate(np.maximum(above, 0))[::-1][: place + 1]
    if above[0] <= 0:
        # Bins beside the one that stands out may have more noise below zero than it has above.
        return None
    visible = int(np.count_nonzero(above >= _SEEN * look.deviation))
    return _Tail(look.slot, above[: max(visible, 1)], look.deviation)


_LEVELS = (_SEEN, _BEYOND_DOUBT)


def _bins_above(counts: Reals, level: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Bins that begin a stretch whose sum is above the level for its width. Only the first bin of
    a stretch is said to be seen: those after it may be empty beside a large one."""
    found = np.zeros(len(counts), dtype=np.bool_)
    for width in _WIDTHS:
        sums = np.convolve(counts, np.ones(width), "valid")
        found[: len(sums)] |= sums > level * sqrt(width)
    return found


def _power(tails: Sequence[_Tail]) -> float:
    """How steeply counts fall with the norm, from all looks, the newest counting half."""
    power = log(_USUAL_POWER)
    for tail in tails:
        count, edge = tail.end
        enough = np.flatnonzero(tail.above >= 4 * count)
        if enough.size and enough[-1] < edge:
            fall = log(float(tail.above[enough[-1]]) / count)
            seen = fall / log(float(_NORMS[edge] / _NORMS[enough[-1]]))
            power = (power + log(min(max(seen, _LEAST_POWER), _LARGEST_POWER))) / 2
    return exp(power)


def _population(tail: _Tail, power: float) -> tuple[Reals, Reals]:
    """Norms and how many users have them: what is seen, and a tail beyond it until less than a
    third of a user is left."""
    count, edge = tail.end
    above = np.append(tail.above[:edge], count)
    seen = np.maximum(above[:-1] - above[1:], 0)
    beyond = _NORMS[edge] * 2.0 ** (np.arange(80) / 8)
    left = count * (beyond / beyond[0]) ** -power
    hidden = np.where(left > 0.3, left * (1 - 2 ** (-power / 8)), 0.0)
    middle = 2 ** (0.5 / STEPS_PER_OCTAVE)
    return (
        np.concatenate([_NORMS[:edge] * middle, beyond * 2 ** (1 / 16)]),
        np.concatenate([seen, hidden]),
    )
