"""Whether a new campaign finds room beside those that have been created and have not started.

A campaign reserves its budget in the ledger with its first slot. Two that wait for theirs must not
both be let in where there is room for one: the second would fail days after it was created.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from adsbpc.campaign import Campaign
from adsbpc.errors import BudgetError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.model import PICO_RHO, CampaignSpec
from adsbpc.model.toml import place


def check_beside(ledger: Ledger, spec: CampaignSpec, waiting: Sequence[CampaignSpec]) -> None:
    """Refuse a campaign that would not be let in after those of its scope that wait to start, the
    oldest first, or that would keep one of them out."""
    if not waiting:
        return
    own, first, *others = (Campaign(each).promise for each in (spec, *waiting))
    scope, limit = spec.campaign.scope, first.scope_rho
    reserved = sum((each.guarantee.rho for each in others), first.guarantee.rho)
    if ledger.exists():
        reserved += Fraction(ledger.reserved(scope), PICO_RHO)
    if reserved + own.guarantee.rho > limit:
        raise BudgetError(
            f"scope {scope!r} has no room for campaign {spec.campaign.name!r} beside those that "
            "have reserved or will",
            float(own.guarantee.rho), float(reserved), float(limit - reserved),
            "Lower [privacy] rho. Another scope is another promise to the same people",
        )  # fmt: skip
    # Whichever starts first opens the scope, with its own terms for all.
    if own.scope_rho != limit:
        raise SpecError(
            f"scope {scope!r} is to have a limit of {float(limit):.12g}, as campaign "
            f"{waiting[0].campaign.name!r} says, and not of {float(own.scope_rho):.12g}",
            place("privacy", "scope_rho"),
            to_do=f"Say scope_rho = {float(limit):.12g}",
        )
    if own.guarantee.adjacency != first.guarantee.adjacency:
        raise SpecError(
            f"[privacy] adjacency = {own.guarantee.adjacency.value!r}: campaign "
            f"{waiting[0].campaign.name!r} of scope {scope!r} has "
            f"{first.guarantee.adjacency.value!r}, and the two do not add up. Say that one, or "
            "take another scope"
        )
