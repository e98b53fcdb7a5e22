"""How much of a person is let in: the allowance, chosen from noisy histograms of expected needs.

The allowance is the norm, in conversions, up to which a person fits. Too small, and people who
convert often are cut; too large costs noise in proportion. The choice weighs predicted noise
against what would be cut and cannot be added back.

Everything here is post-processing of released figures: it can be wrong, but not unsafe. Constants
are those of a prototype that was tuned on the sets of docs/personal-budgets.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from adsbpc.mechanisms.by_rows.cut import Column
from adsbpc.mechanisms.by_rows.needs import conversions_of, norm_of
from adsbpc.workloads.queries import Reals

# Norms in conversions, an eighth of an octave apart; bin i of a histogram begins at norm i. An odd
# start, so that no usual need lies on an edge. The last bin of a histogram has no end.
STEPS_PER_OCTAVE = 8
NORMS: Reals = 0.52 * 2.0 ** (np.arange(15 * STEPS_PER_OCTAVE + 2) / STEPS_PER_OCTAVE)
EDGES = NORMS[:-1]
_ALLOWANCES: Reals = 0.52 * 2.0 ** (np.arange(16 * 24) / 24)
# And those between the best of these and its neighbours.
_NEARBY: Reals = 2.0 ** (np.arange(-3, 4) / 96)

# An octave of bins counts as seen from so many standard deviations of its noise on.
_SEEN = 6.0
# Beyond what is seen, counts fall like a power of the norm: the powers that are weighed, and what
# is expected of them beforehand.
_POWERS: Reals = np.array([2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 40.0, 160.0])
_USUAL_POWER, _POWER_SPREAD = 5.0, 0.5
_OCTAVES_FITTED, _OCTAVES_BEYOND = 5, 4
# A bin far out is people, and not noise, from so many standard deviations on that this would be as
# unlikely as e to that power; more by what each octave costs.
_SURE = 8.0
# Looks with so many times the noise of the newest do not count beside it.
_BLUR = 2.0
# Steeper than this, nearly all of a tail falls into its first bin: nobody is beyond it.
_STEEP = 40.0
# How far off forecasts are, as a factor, and how likely that is, from a slot on.
_DOUBTS: dict[int, tuple[tuple[float, float], ...]] = {
    1: ((0.7, 0.3), (1.0, 0.4), (1.6, 0.3)),
    2: ((0.8, 0.25), (1.0, 0.45), (1.35, 0.3)),
    4: ((0.9, 0.25), (1.0, 0.5), (1.2, 0.25)),
    8: ((1.0, 0.75), (1.1, 0.25)),
    16: ((1.0, 0.75), (1.05, 0.25)),
}
# Somebody with the public guess of conversions fits, more or less, whatever histograms show.
HEAVY_USER = 30
_SPREAD_OUT, _LOYAL = 0.35, 1.5
# What is added back is wrong by this part of it; and what is cut is worse than it seems.
_ALLOCATION, _FEAR = 0.35, 1.3
# Of somebody who is paced not everything above the allowance is lost, but more than without.
_LOST_BY_PACE = 0.6


@dataclass(frozen=True)
class Look:
    """A noisy histogram of people by expected norm, with the standard deviation of its noise."""

    slot: int
    counts: tuple[int, ...]
    deviation: float


@dataclass(frozen=True)
class Crowd:
    """Norms and how many people have them, with the weight of this guess among others."""

    weight: float
    norms: Reals
    counts: Reals


@dataclass(frozen=True)
class Sums:
    """A view as allowances see it: how many columns, their share of what a conversion costs, and
    the variance of an estimate beside that of a row of their own. `has_all` says that it is the
    total of further views, of which what was cut is counted finely."""

    columns: int
    stride: int
    share: float
    variance: float
    has_all: bool = False


@dataclass(frozen=True)
class Standing:
    """What was released so far: totals by cell, and how coarsely each is measured. `doubt` says how
    far forecasts may be off: 1 where anybody may come or stay away, 0 where those come who came."""

    totals: Reals
    coarseness: Reals
    doubt: float = 1.0

    @property
    def shares(self) -> Reals | None:
        positive = np.maximum(self.totals, 0)
        return positive / positive.sum() if positive.any() else None

    @property
    def mean_coarseness(self) -> float:
        """Of what people do, rather than of cells."""
        if self.shares is None:
            return 1.0
        return float(1 / np.sqrt((self.shares / self.coarseness**2).sum()))


@dataclass(frozen=True)
class Past:
    """What released rows have left of budgets, for people who go on evenly until the end. A norm of
    one conversion then has used up `spent` of a budget, nobody more than `most`, and the coming
    rows are `coming` of what all rows cost. All of that counts to a power of `weight`."""

    spent: float = 0.0
    most: float = 0.0
    coming: float = 1.0
    weight: float = 1.0

    def reach(self, norms: Reals) -> Reals:
        """By norm at the end, how many times an allowance fits that holds for the coming rows."""
        spent = np.minimum(norms**2 * self.spent, self.most)
        return np.asarray(((1 - spent) / self.coming) ** (self.weight / 2))


NOTHING_SPENT = Past()


@dataclass(frozen=True)
class Chooser:
    """Chooses allowances. `noise` is the weighted sum of variances of answers for one column under
    an allowance of one conversion; `spans` is sum_j weight_j^2 (share of the slots that query j
    covers)^2; `met_again` what two conversions cost that meet; `kept_share` the part of budgets
    that is for cells; `heavy_user` is the public guess of conversions. What was cut of one
    conversion is counted so many `times_cut`."""

    cells: int
    views: tuple[Sums, ...]
    noise: float
    spans: float
    met_again: float
    cuts: tuple[Column, ...]
    kept_share: float
    heavy_user: int
    times_cut: int = 1

    def least(self, standing: Standing) -> float:
        """The allowance whatever is seen."""
        spread_out = _SPREAD_OUT * self.heavy_user
        loyal = _LOYAL * self.met_again * self.heavy_user**2 / self.cells
        return standing.doubt * float(np.sqrt(spread_out + loyal)) / standing.mean_coarseness

    def fitting(self, conversions: float) -> float:
        """The norm of somebody with so many conversions, spread over cells."""
        return norm_of(conversions, self.met_again / self.cells)

    def choose(
        self, looks: Sequence[Look], standing: Standing, past: Past = NOTHING_SPENT
    ) -> float:
        """From looks with the same sizes of cells."""
        least, crowds = self.least(standing), _crowds(tuple(looks))
        if not crowds:
            return max(least, float(_ALLOWANCES[0]))
        best, slot = 1.0, looks[-1].slot
        for steps in (_ALLOWANCES, _NEARBY):
            tried = best * steps
            expected = self._expected_error(tried, crowds, slot, standing, past)
            best = float(tried[np.argmin(expected)])
        return max(least, best)

    def expected_cut(
        self, looks: Sequence[Look], standing: Standing, allowance: float, past: Past
    ) -> tuple[float, ...]:
        """Under an allowance, what of the whole campaign is cut and counted in each column for
        that, and at the end what none of them counts: in conversions, on average over guesses."""
        crowds, found = _crowds(tuple(looks), even_unseen=True), [0.0] * (len(self.cuts) + 1)
        for weight, cut, people in self._cuts(
            crowds, looks[-1].slot, standing, np.array([allowance]), past
        ):
            left = cut
            for place, column in enumerate(self.cuts):
                ratio = column.ratio * standing.mean_coarseness / self.times_cut
                most = conversions_of(np.array([allowance * ratio]), self.met_again)
                counted = np.minimum(left, most[:, None])
                found[place] += weight * float((counted @ people)[0])
                left = left - counted
            found[-1] += weight * float((left @ people)[0])
        return tuple(found)

    def _cuts(
        self, crowds: list[Crowd], slot: int, standing: Standing, allowances: Reals, past: Past
    ) -> Iterator[tuple[float, Reals, Reals]]:
        """For every guess of who is there at the end: its weight, what is cut of a person by
        allowance and norm, and how many people there are."""
        widened = standing.mean_coarseness**2
        met_again = self.met_again * self._concentration(standing, 1.0)
        doubts = _DOUBTS[max(known for known in _DOUBTS if known <= slot)]
        for crowd in crowds:
            for factor, chance in doubts:
                norms = crowd.norms * (1 + standing.doubt * (factor - 1))
                finally_ = conversions_of(norms, met_again) * widened
                fitting = allowances[:, None] * past.reach(norms)[None, :]
                kept = conversions_of(fitting, met_again) * widened
                cut = np.maximum(finally_[None, :] - kept, 0)
                part = cut / np.maximum(finally_[None, :], 1e-9)
                cut = cut * (_LOST_BY_PACE + (1 - _LOST_BY_PACE) * part)
                yield crowd.weight * chance, cut, crowd.counts

    def _expected_error(
        self, allowances: Reals, crowds: list[Crowd], slot: int, standing: Standing, past: Past
    ) -> Reals:
        """By allowance: noise, and what is cut and not added back in the right place."""
        wrong: Reals = np.zeros_like(allowances)
        counted: Reals = np.zeros_like(allowances)
        for weight, cut, people in self._cuts(crowds, slot, standing, allowances, past):
            lost, found = self._not_added_back(allowances, cut, people, standing)
            wrong += weight * lost
            counted += weight * found
        felt = self._felt(standing)
        rough = sum(self._part(view) / view.columns for view in self._guessed)
        bias = self.spans * (felt * _FEAR * wrong**2 + rough * counted)
        return np.asarray(bias + self.noise * allowances**2)

    def _not_added_back(
        self, allowances: Reals, cut: Reals, people: Reals, standing: Standing
    ) -> tuple[Reals, Reals]:
        """Of what is cut by allowance and norm: what stays wrong, and what is counted."""
        wrong: Reals = np.zeros(len(cut))
        counted: Reals = np.zeros(len(cut))
        crowding = self._concentration(standing, 0.5)
        for column in self.cuts:
            ratio = column.ratio * standing.mean_coarseness / self.times_cut
            most = conversions_of(allowances * ratio, self.met_again)
            found = np.minimum(cut, most[:, None])
            cut = cut - found
            harm = ratio**2 / column.share * crowding / (self.cells / self.kept_share)
            doubt = np.sqrt(_ALLOCATION**2 + (1 - _ALLOCATION**2) * harm / (1 + harm))
            wrong += doubt * (found @ people)
            counted += found @ people
        return wrong + cut @ people, counted

    @property
    def _guessed(self) -> list[Sums]:
        """Views of which it is a guess what part of what was cut is in which column. Everything
        together has all of it, and its count: histograms overstate what people who convert often
        have there, by far more than that count is off."""
        return [view for view in self.views if not view.has_all]

    def _part(self, view: Sums) -> float:
        """How much errors of a view matter, beside their noise."""
        return view.share / sum(each.share for each in self._guessed) / view.variance

    def _felt(self, standing: Standing) -> float:
        """How much one conversion that is missing moves estimates beside their noise, squared."""
        return sum(
            self._part(view) * self._in_view(view, standing, 0.5) / view.columns
            for view in self._guessed
        )

    def _concentration(self, standing: Standing, power: float) -> float:
        return sum(view.share * self._in_view(view, standing, power) for view in self.views)

    def _in_view(self, view: Sums, standing: Standing, power: float) -> float:
        """The sum of squared shares of a view's columns, of what was released to a power; what is
        usual before there is any."""
        if standing.shares is None:
            return float(view.columns ** (-0.7 if power == 1 else -0.85))
        of_cells = np.maximum(standing.totals, 1e-3) ** power if power < 1 else standing.shares
        summed = np.add.reduceat(of_cells, np.arange(0, len(of_cells), view.stride))
        parts = summed / summed.sum()
        return max(float((parts**2).sum()), 1 / view.columns)


def in_bins(histogram: tuple[int, ...]) -> tuple[int, ...]:
    """As bins of today: those of earlier campaigns are twice as wide, or four times."""
    while len(histogram) < len(EDGES) + 1:
        first, *wide, last = histogram
        halves = [half for count in wide for half in (count // 2, count - count // 2)]
        histogram = (first, *halves, last)
    return histogram


# Between two looks every slot asks the same.
@lru_cache(maxsize=8)
def _crowds(looks: tuple[Look, ...], even_unseen: bool = False) -> list[Crowd]:
    """From looks with the same sizes of cells, of which the newest and those not older than half of
    its slot count together, but for those with far more noise, which would only blur it."""
    newest = looks[-1]
    pooled = [
        look
        for look in looks
        if look.slot >= max(newest.slot / 2, 4) and look.deviation <= _BLUR * newest.deviation
    ] or [newest]
    precisions = np.array([1 / look.deviation**2 for look in pooled])
    counts = np.average([look.counts for look in pooled], axis=0, weights=precisions)
    return crowds_of(counts, float(1 / np.sqrt(precisions.sum())), even_unseen)


def crowds_of(counts: Reals, deviation: float, even_unseen: bool = False) -> list[Crowd]:
    """What a noisy histogram may be of: what is seen, and tails beyond it, each as likely as it
    fits the noisy bins. Nothing where nothing is seen, unless those are asked for who may be there
    all the same."""
    bins = np.array(counts, dtype=np.float64)
    bins[1] += bins[0]
    bins = bins[1:]
    octaves = np.convolve(bins, np.ones(STEPS_PER_OCTAVE), "full")[STEPS_PER_OCTAVE - 1 :]
    seen = np.flatnonzero(octaves > _SEEN * deviation * np.sqrt(STEPS_PER_OCTAVE))
    if not seen.size and not even_unseen:
        return []
    edge = int(seen[-1]) if seen.size else 0
    fitted = bins[edge : edge + _OCTAVES_FITTED * STEPS_PER_OCTAVE]
    steps = np.arange(fitted.size) / STEPS_PER_OCTAVE
    powers, levels, logs = [], [], []
    for power in _POWERS:
        shape = 2.0 ** (-power * steps) - 2.0 ** (-power * (steps + 1 / STEPS_PER_OCTAVE))
        level = max(float(fitted @ shape / (shape @ shape)), deviation)
        misfit = float(((fitted - level * shape) ** 2).sum()) / (2 * deviation**2)
        surprise = float(np.log(min(power, _STEEP) / _USUAL_POWER)) / _POWER_SPREAD
        powers.append(float(power))
        levels.append(level)
        logs.append(-misfit - surprise**2 / 2)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    found = [
        _crowd(bins[:edge], edge, power, level, float(weight))
        for power, level, weight in zip(powers, levels, weights, strict=True)
        if weight >= 0.01
    ]
    total = sum(crowd.weight for crowd in found)
    apart = _lumps(bins, edge, deviation)
    return [
        Crowd(
            crowd.weight / total,
            np.r_[crowd.norms, apart.norms],
            np.r_[crowd.counts, apart.counts],
        )
        for crowd in found
    ]


def _lumps(bins: Reals, edge: int, deviation: float) -> Crowd:
    """People far beyond everybody else, who are alike: bins that stand out by themselves, the more
    the farther out, where taking noise for people costs more."""
    norms, counts = list[float](), list[float]()
    taken = np.zeros(bins.size, dtype=bool)
    for width in (1, 2, 3):
        summed = np.convolve(bins, np.ones(width), "valid")
        for place in range(edge + STEPS_PER_OCTAVE, summed.size):
            octaves = (place - edge) / STEPS_PER_OCTAVE
            needed = deviation * np.sqrt(width * 2 * (_SURE + octaves * np.log(4)))
            inside = slice(place, place + width)
            if summed[place] <= needed or taken[inside].any():
                continue
            taken[inside] = True
            for each in range(place, place + width):
                if bins[each] > 0:
                    norms += list(NORMS[each] * _WITHIN_BIN)
                    counts += [float(bins[each]) / 3] * 3
    return Crowd(1.0, np.array(norms), np.array(counts))


# Within a bin, people are taken to be at three norms.
_WITHIN_BIN: Reals = 2.0 ** (np.array([1, 3, 5]) / (6 * STEPS_PER_OCTAVE))


def _crowd(bins: Reals, edge: int, power: float, level: float, weight: float) -> Crowd:
    """What is seen below an edge, and a tail above it until a third of a person is left."""
    # A tail that falls into its first bin may be anywhere in it.
    steps = STEPS_PER_OCTAVE if power > _STEEP else 2 * STEPS_PER_OCTAVE
    begins = np.arange(_OCTAVES_BEYOND * steps) / steps
    left = level * 2.0 ** (-power * begins)
    tail = left * (1 - 2.0 ** (-power / steps))
    beyond = left > 0.3
    taken_at = 2.0 ** (1 / steps if power > _STEEP else 1 / (2 * steps))
    return Crowd(
        weight,
        np.r_[
            np.outer(NORMS[:edge], _WITHIN_BIN).ravel(),
            NORMS[edge] * taken_at * 2.0 ** begins[beyond],
        ],
        np.r_[np.repeat(np.maximum(bins, 0) / 3, 3), tail[beyond]],
    )
