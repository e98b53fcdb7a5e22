"""What several campaigns together have spent of their scopes' budgets, as far as it is visible."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from adsbpc.errors import AdsbpcError
from adsbpc.model import Budget
from adsbpc.service.releases.campaigns import CampaignBook, Registered
from adsbpc.service.releases.publication import Publication


@dataclass(frozen=True)
class Spending:
    """`budget` is the sum over `scopes`: what is promised to somebody who is measured in all."""

    scopes: int
    budget: Budget


def spending_of(
    book: CampaignBook, publication: Publication, readable: Iterable[Registered]
) -> Spending:
    """Of the scopes of campaigns, each once."""
    budgets = []
    for registered in {each.scope: each for each in readable}.values():
        # One that cannot be read is told where it is shown.
        with suppress(AdsbpcError):
            budgets.append(_scope_budget(book, publication, registered))
    return Spending(
        len(budgets),
        Budget(
            sum(each.limit_pico_rho for each in budgets),
            sum(each.spent_pico_rho for each in budgets),
        ),
    )


def _scope_budget(book: CampaignBook, publication: Publication, registered: Registered) -> Budget:
    visible = publication.visible(registered)
    stage = book.course(registered, visible).stage
    if stage.scope_limit:
        return Budget(stage.scope_limit, stage.scope_spent)
    return registered.campaign.status(visible).scope_budget
