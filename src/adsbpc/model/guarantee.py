"""What is promised: the unit that is protected, what neighbours are, how much, over what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil, floor

# Budgets are whole numbers of pico-rho, so that charges add up in integers.
PICO_RHO = 10**12
# The part of a release's charges that is for a fit of the attribution model, made beside the
# mechanism.
FIT_PART = "attribution fit"


class Adjacency(StrEnum):
    """Which data sets must be hard to tell apart.

    ADD_REMOVE: one has all events of one more user. SUBSTITUTE: all events of one user are
    replaced by any others.
    """

    ADD_REMOVE = "add-remove"
    SUBSTITUTE = "substitute"


@dataclass(frozen=True)
class Guarantee:
    """rho-zCDP for one user, over everything that a campaign releases. `scope` is whose budgets
    add up."""

    rho: Fraction
    adjacency: Adjacency
    scope: str
    unit: str = "user"


@dataclass(frozen=True)
class Promise:
    """A campaign's guarantee and what it means as (epsilon, delta); the same for the limit of its
    scope, up to which the campaigns about the same people may add up."""

    guarantee: Guarantee
    epsilon: float
    delta: float
    scope_rho: Fraction
    scope_epsilon: float


@dataclass(frozen=True)
class Budget:
    """How much may be spent and how much was, in whole pico-rho."""

    limit_pico_rho: int
    spent_pico_rho: int

    @property
    def limit(self) -> Fraction:
        return Fraction(self.limit_pico_rho, PICO_RHO)

    @property
    def spent(self) -> Fraction:
        return Fraction(self.spent_pico_rho, PICO_RHO)

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent

    def to_object(self) -> dict[str, float]:
        """For machines."""
        return {name: float(getattr(self, name)) for name in ("limit", "spent", "left")}


@dataclass(frozen=True)
class Charge:
    """A part of a release and what it is charged, in whole pico-rho of zCDP."""

    part: str
    pico_rho: int

    @classmethod
    def for_cost(cls, part: str, cost: Fraction) -> Charge:
        """The cost, rounded up."""
        return cls(part, ceil(cost * PICO_RHO))

    @property
    def rho(self) -> Fraction:
        return Fraction(self.pico_rho, PICO_RHO)


def affordable(rho: Fraction) -> Fraction:
    """A budget rounded down to whole pico-rho: a cost within it is charged no more than it."""
    return Fraction(floor(rho * PICO_RHO), PICO_RHO)
