"""What is promised: the unit that is protected, what neighbours are, how much, over what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


class Adjacency(StrEnum):
    """Which data sets must be hard to tell apart.

    ADD_REMOVE: one has all events of one more user. SUBSTITUTE: all events of one user are
    replaced by any others.
    """

    ADD_REMOVE = "add-remove"
    SUBSTITUTE = "substitute"


@dataclass(frozen=True)
class Guarantee:
    """rho-zCDP for one user, over everything that is released in a scope."""

    rho: Fraction
    adjacency: Adjacency
    scope: str
    unit: str = "user"


@dataclass(frozen=True)
class Charge:
    """A part of a release and what it costs in zCDP, exactly."""

    part: str
    rho: Fraction
