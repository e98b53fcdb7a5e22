"""The parts of a plan that a running campaign goes on with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from adsbpc.model.guarantee import PICO_RHO


@dataclass(frozen=True)
class StoredPlan:
    """What another version of a solver might not find again. Personal budgets have a strategy, and
    an allowance to start with where an earlier campaign gave one. `fit` has the parameters of an
    attribution model that the campaign file declared public."""

    slot_pico_rho: tuple[int, ...]
    strategy: tuple[tuple[int, ...], ...] = ()
    start: float | None = None
    fit: str | None = None

    @property
    def slot_rho(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(part, PICO_RHO) for part in self.slot_pico_rho)
