"""Personal budgets tried out on data that may be looked at, to find a good guess of a heavy user.

What comes out is about the pilot's people, without any noise: the data must be public, or so old or
so far away that nobody minds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.errors import SpecError
from adsbpc.lab.baselines.bounded import question_of
from adsbpc.lab.baselines.personal import one_trial
from adsbpc.lab.datasets import read_own_data
from adsbpc.lab.evaluation import Prepared, Setting
from adsbpc.mechanisms import fit_rho, guarantee_of, privacy_of
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.model import CampaignSpec
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.model.toml import place

GUESSES = (5, 10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000)
# What a fixed allowance may be.
_LEAST, _MOST = 0.5, 10_000.0


@dataclass(frozen=True)
class Guess:
    """What a guess would have meant for a publisher's total at the end, as root mean squares over
    publishers: noise, what budgets cut, and both together."""

    heavy_user: int
    noise: float
    cut: float

    @property
    def error(self) -> float:
        return hypot(self.noise, self.cut)


@dataclass(frozen=True)
class Pilot:
    """`heavy_user` is said for a campaign of its own length, whatever the pilot's."""

    data: str
    people: int
    slots: int
    guesses: tuple[Guess, ...]

    @property
    def best(self) -> Guess:
        return min(self.guesses, key=lambda guess: guess.error)

    def to_object(self) -> dict[str, Any]:
        return {
            "data": self.data,
            "people": self.people,
            "slots": self.slots,
            "heavy_user": self.best.heavy_user,
            "guesses": [{**asdict(guess), "error": guess.error} for guess in self.guesses],
        }


def try_out(
    spec: CampaignSpec,
    data: Path,
    guesses: Sequence[int] = GUESSES,
    step: Callable[[], None] = lambda: None,
) -> Pilot:
    """Release the pilot under each guess, with the campaign's budget and adjacency. Running totals
    are asked for, whatever the campaign asks."""
    if privacy_of(spec).mechanism != "personal-budget":
        raise SpecError(
            "a pilot finds heavy_user, a parameter of personal budgets",
            place("privacy", "mechanism"),
            repr(privacy_of(spec).mechanism),
            'Leave the pilot out, or take mechanism = "personal-budget"',
        )
    pilot = Prepared(read_own_data(data))
    guarantee = guarantee_of(spec)
    setting = Setting(guarantee.rho - fit_rho(spec), guarantee.adjacency, pilot.slots)
    longer = spec.campaign.slots / pilot.slots
    found = []
    for guess in guesses:
        found.append(_released(pilot, setting, guess, guess / longer))
        step()
    return Pilot(data.name, pilot.dataset.users, pilot.slots, tuple(found))


def _released(pilot: Prepared, setting: Setting, guess: int, of_the_pilot: float) -> Guess:
    question = question_of(pilot, setting)
    chooser = plan_by_rows(question, PersonalBudgetSection()).chooser
    assert chooser is not None
    allowance = min(max(chooser.fitting(of_the_pilot), _LEAST), _MOST)
    mechanism = plan_by_rows(question, PersonalBudgetSection(allowance=allowance))
    bias, _, variances = one_trial(mechanism, pilot, setting, seed=1)
    return Guess(guess, sqrt(variances[-1]), float(np.sqrt((bias[-1] ** 2).mean())))
