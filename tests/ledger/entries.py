"""Made-up releases and campaigns to put into a ledger."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from adsbpc.ledger import Ledger, Opening
from adsbpc.model import (
    PICO_RHO,
    Adjacency,
    Budget,
    ChargeLine,
    Dimension,
    Guarantee,
    Measured,
    Release,
    StoredPlan,
)

STEP = {"secret": {"up": [7, 12345]}}


def release_of(
    slot: int,
    *pico_rho: int,
    scope: str = "acme",
    campaign: str = "spring",
    randomness: str = "opendp",
    value: int = 0,
) -> Release:
    measured = Measured(
        measure="conversions",
        metric="conversions",
        dimensions=(Dimension("publisher", ("P-1", "other")),),
        weights=(0, 1),
        slot=slot,
        bound=1,
        scale=1.5,
        values=(value, 2),
        randomness=randomness,
        charges=tuple(
            ChargeLine(f"part {k}", amount / PICO_RHO, amount) for k, amount in enumerate(pico_rho)
        ),
        answers=(),
        slot_totals=(),
        running_totals=(),
    )
    return Release(
        scope=scope,
        campaign=campaign,
        slot=slot,
        starts_at=f"2026-03-{slot:02d}T00:00:00+00:00",
        ends_at=f"2026-03-{slot + 1:02d}T00:00:00+00:00",
        measures=(measured,),
    )


def opening_of(
    rho: Fraction = Fraction(1),
    scope: str = "acme",
    campaign: str = "spring",
    limit: Fraction | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> Opening:
    guarantee = Guarantee(rho, adjacency, scope)
    return Opening(guarantee, campaign, {"campaign": {"name": campaign}}, StoredPlan((1, 2)), limit)


def start(ledger: Ledger, *pico_rho: int, **opening: Any) -> tuple[str, bool]:
    """Release the first slot, for little if nothing else is said."""
    opened = opening_of(**opening)
    first = release_of(
        1, *(pico_rho or (1,)), scope=opened.guarantee.scope, campaign=opened.campaign
    )
    return ledger.commit(first, STEP, opened)


def budgets(ledger: Ledger, campaign: str, scope: str = "acme") -> tuple[Budget, Budget]:
    """Of a campaign that has started, and of its scope."""
    found = ledger.snapshot(scope, campaign)
    assert found.campaign is not None
    assert found.scope is not None
    return (
        Budget(found.campaign.reserved_pico_rho, found.campaign_spent),
        Budget(found.scope.limit_pico_rho, found.scope_spent),
    )
