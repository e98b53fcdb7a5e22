"""What the ledger hands out and takes in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adsbpc.model import PICO_RHO, Guarantee, StoredPlan


@dataclass(frozen=True)
class ScopeRecord:
    """`identity` is unique to this opening of the scope: a ledger begun afresh has another."""

    limit_pico_rho: int
    adjacency: str
    identity: str


@dataclass(frozen=True)
class CampaignRecord:
    """What a campaign promised when its first slot was released, and the plan that it runs by. One
    that is `closed` has reserved what it has spent, and never spends more; its books may have been
    `erased` since."""

    reserved_pico_rho: int
    promise: dict[str, Any]
    plan: StoredPlan
    closed: bool = False
    erased: bool = False


@dataclass(frozen=True)
class Stage:
    """How far a campaign is: `last_slot` is the newest that was released, or 0. `scope_limit`
    and `scope_spent` are its scope's, in pico-rho, the latter up to the slots that were asked for.
    """

    started: bool = False
    closed: bool = False
    last_slot: int = 0
    scope_limit: int = 0
    scope_spent: int = 0


@dataclass(frozen=True)
class Opening:
    """A campaign that is about to start, and the limit that its file states for the scope."""

    guarantee: Guarantee
    campaign: str
    promise: dict[str, Any]
    plan: StoredPlan
    scope_limit: Fraction | None

    @property
    def reserved(self) -> int:
        return int(self.guarantee.rho * PICO_RHO)

    @property
    def limit(self) -> int:
        return int((self.scope_limit or self.guarantee.rho) * PICO_RHO)


@dataclass(frozen=True)
class Head:
    """The newest entry of a scope: everything before it hangs on its hash."""

    position: int
    hash: str


@dataclass(frozen=True)
class Verification:
    """`head` is the hash of the last entry: noted elsewhere, it also shows entries cut off."""

    entries: int
    head: str
    problem: str | None
