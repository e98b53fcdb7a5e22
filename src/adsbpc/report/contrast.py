"""Two arms of a trial compared: how much more the treated did than they would have, at every look.

incremental = T - r C, where T and C are the running totals of the treated and of the control, and r
is how many treated people there are for one of the control. Its variance is that of the noise,
which is known exactly, and that of sampling: other people might have been in the arms. Everything
here is a function of released figures and public ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adsbpc.report.looks import (
    DRAWS,
    Reals,
    critical_value,
    going_on,
    over_slots,
)
from adsbpc.report.ratios import fieller

# With fewer people behind an arm's total, nobody knows how far it may be off: the band begins
# after that. One is added to every variance, so that an arm with nobody yet is not thought exact.
# Where people differ it takes more of them.
MOST_UNKNOWN, MOST_UNKNOWN_OF_UNLIKE = 20, 40
_ONE_MORE = 1.0
# Of what may fail, the part that is left for variances which are estimated, and for totals that are
# not quite normal.
_LEFT_FOR_SMALL_COUNTS = 0.1


@dataclass(frozen=True)
class ArmTotals:
    """Running totals at each look. `squares` are those of people's own totals, in the same unit
    squared, None where everybody counts once; `people` is how many there are, if that is known.
    `worth` is what the largest single contribution is worth."""

    totals: Reals
    squares: Reals | None = None
    people: Reals | None = None
    worth: float = 1.0

    @cached_property
    def sampling(self) -> Reals:
        """Variances of the totals: people might have been others."""
        total = np.maximum(self.totals, 0.0)
        if self.squares is None:
            found = total + _ONE_MORE
            chance = 1.0 if self.people is None else 1 - np.minimum(found / self.people, 1.0)
            return np.asarray(found * chance)
        squares = np.maximum(self.squares, 0.0) + _ONE_MORE * self.worth**2
        if self.people is None:
            return squares
        return np.asarray(np.maximum(squares - total**2 / self.people, 0.1 * squares))

    @cached_property
    def behind(self) -> Reals:
        """How many people the total seems to rest on."""
        total = np.maximum(self.totals, 0.0)
        if self.squares is None:
            return total
        return np.asarray(total**2 / (np.maximum(self.squares, 0.0) + self.worth**2))


@dataclass(frozen=True)
class Contrast:
    """`noise` is the covariance of the treated arm's totals over all looks of the campaign, also
    those to come, `control_noise` that of the control's, and `shared` that between the two. `ratio`
    is r at each look so far, with its own covariance `ratio_noise` where people are counted."""

    treated: ArmTotals
    control: ArmTotals
    ratio: Reals
    noise: Reals
    control_noise: Reals
    shared: Reals
    level: float
    reach: float
    ratio_noise: Reals | None = None
    draws: int = DRAWS

    @property
    def looks(self) -> int:
        return len(self.treated.totals)

    @cached_property
    def incremental(self) -> Reals:
        return np.asarray(self.treated.totals - self.ratio * self.control.totals)

    @cached_property
    def _covariance(self) -> Reals:
        """Of all looks of the campaign; of those to come, as if it went on as so far."""
        whole = len(self.noise)
        ratio = np.concatenate([self.ratio, np.full(whole - self.looks, self.ratio[-1])])
        noise = self.noise + self.control_noise * np.outer(ratio, ratio)
        noise = noise - self.shared * (ratio[:, None] + ratio)
        sampling = self.treated.sampling + self.ratio**2 * self.control.sampling
        found = noise + over_slots(going_on(sampling, whole))
        if self.ratio_noise is not None:
            seen = slice(None, self.looks)
            control = self.control.totals
            found[seen, seen] += np.outer(control, control) * self.ratio_noise
        return np.asarray(found)

    @cached_property
    def errors(self) -> Reals:
        return np.sqrt(self._covariance.diagonal()[: self.looks])

    @cached_property
    def begins(self) -> int:
        """The first look, counted from 0, at which enough people are behind both totals; the number
        of all looks if there is none."""
        alike = self.treated.squares is None
        needed = MOST_UNKNOWN if alike else MOST_UNKNOWN_OF_UNLIKE
        enough = np.minimum(self.treated.behind, self.control.behind) >= needed
        return int(enough.argmax()) if enough.any() else self.looks

    @cached_property
    def critical(self) -> float:
        """How many standard errors the band leaves at each look."""
        first = min(self.begins, len(self.noise) - 1)
        level = self.level + _LEFT_FOR_SMALL_COUNTS * (1 - self.level)
        return critical_value(self._covariance[first:, first:], level, self.draws)

    def interval(self, look: int, reach: float) -> tuple[float, float]:
        value, error = float(self.incremental[look]), float(self.errors[look])
        return value - reach * error, value + reach * error

    def relative(self, look: int) -> tuple[float, float, float] | None:
        """T / (r C) - 1 by Fieller, None where the control cannot be told from zero."""
        ratio = float(self.ratio[look])
        treated, control = (
            float(self.treated.totals[look]),
            ratio * float(self.control.totals[look]),
        )
        noise, control_noise, shared = (
            float(each[look, look]) for each in (self.noise, self.control_noise, self.shared)
        )
        more = 0.0
        if self.ratio_noise is not None:
            more = float(self.control.totals[look]) ** 2 * float(self.ratio_noise[look, look])
        found = fieller(
            treated,
            control,
            noise + float(self.treated.sampling[look]),
            ratio**2 * (control_noise + float(self.control.sampling[look])) + more,
            ratio * shared,
            self.reach,
        )
        if found is None:
            return None
        return treated / control - 1, found[0] - 1, found[1] - 1

    @property
    def looks_needed(self) -> float | None:
        """After how many looks the band would exclude 0 if it went on as so far: what is caused
        grows with time, and how far it may be off with its root."""
        value, error = float(self.incremental[-1]), float(self.errors[-1])
        if value == 0:
            return None
        return self.looks * (self.critical * error / value) ** 2
