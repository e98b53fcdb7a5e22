"""Whether arms of a trial have the people that their shares say: a sample ratio mismatch."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, gamma, sqrt
from typing import TYPE_CHECKING

import numpy as np

from adsbpc.report.lift import reach_by_arm
from adsbpc.report.looks import Reals

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# A balance that chance gives this rarely is no chance.
UNBALANCED = 0.001


@dataclass(frozen=True)
class Balance:
    """Whether arms have the people that their shares say: `chance` is how often chance alone gives
    a balance as bad. Counted people have noise, which is part of that."""

    people: dict[str, float]
    shares: dict[str, float]
    chance: float
    counted: bool

    @property
    def is_bad(self) -> bool:
        return self.chance < UNBALANCED


def balance_of(report: Report) -> Balance | None:
    """None where shares or people are not known."""
    lift = report.spec.lift
    if lift is None or not lift.shares:
        return None
    names = list(lift.shares)
    whole = sum(lift.shares.values())
    shares = np.array([lift.shares[name] / whole for name in names])
    reach, noise = reach_by_arm(report), 0.0
    if reach is not None:
        totals = report.of_measure(reach)[-1].running_totals[1]
        people = np.array(totals.values[: len(names)])
        noise = max(totals.errors[: len(names)]) ** 2
    elif lift.people:
        people = np.array([float(lift.people[name]) for name in names])
    else:
        return None
    return Balance(
        dict(zip(names, map(float, people), strict=True)),
        dict(zip(names, map(float, shares), strict=True)),
        chance_of_people(people, shares, noise),
        reach is not None,
    )


def chance_of_people(people: Reals, shares: Reals, noise: float) -> float:
    """How often chance alone gives a balance as bad, if every count has noise of this variance."""
    total = max(float(people.sum()), 1.0)
    # Deviations from the shares of all people; the last follows from the others.
    away = (people - shares * total)[:-1]
    spread = np.eye(len(shares)) - shares[:, None]
    covariance = total * (np.diag(shares) - np.outer(shares, shares)) + noise * spread @ spread.T
    statistic = float(away @ np.linalg.solve(covariance[:-1, :-1], away))
    return chance_of(statistic, len(shares) - 1)


def chance_of(statistic: float, freedom: int) -> float:
    """How often chi-square with so many degrees of freedom is as large, by the recurrence over
    every second of them.

    >>> round(chance_of(3.841, 1), 3), round(chance_of(5.991, 2), 3), round(chance_of(7.815, 3), 3)
    (0.05, 0.05, 0.05)
    """
    half = statistic / 2
    found = erfc(sqrt(half)) if freedom % 2 else exp(-half)
    for k in range(1 if freedom % 2 else 2, freedom, 2):
        found += half ** (k / 2) * exp(-half) / gamma(k / 2 + 1)
    return min(found, 1.0)
