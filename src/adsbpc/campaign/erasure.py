"""Erasing the books of campaigns that are over: old ones, and those that name somebody who is to be
forgotten.

Must never: erase the books of a campaign that may release another slot, because then everybody
would have a new budget; or erase before the ledger says so, because books that are merely gone are
lost, and stop everything.
"""

from __future__ import annotations

from typing import Any, Literal

from adsbpc.campaign.books import BookFolder
from adsbpc.campaign.campaign import Campaign
from adsbpc.campaign.release_folder import ReleaseFolder
from adsbpc.engines import open_engine
from adsbpc.ledger import Ledger
from adsbpc.model import CampaignSpec

# What became of somebody in the books of a campaign; "kept" until it is over.
Fate = Literal["absent", "erased", "kept"]


def forget_in_books(spec: CampaignSpec, user: str) -> Fate:
    """Erase the books that name somebody, whole: without a person's rows they prove nothing."""
    if not is_named(spec, user):
        return "absent"
    if not is_over(spec):
        return "kept"
    erase_books(spec)
    return "erased"


def is_named(spec: CampaignSpec, user: str) -> bool:
    """Whether the books of a campaign name somebody."""
    if not has_books(spec):
        return False
    engine = open_engine("duckdb", {})
    try:
        steps = _steps(spec)
        return any(each.holds(user, engine, steps) for each in BookFolder.all_of(spec))
    finally:
        engine.close()


def is_over(spec: CampaignSpec) -> bool:
    """Whether nothing more is released of it."""
    ledger, key = _ledger(spec), (spec.campaign.scope, spec.campaign.name)
    record = ledger.campaign(*key) if ledger.exists() else None
    return record is not None and (record.closed or ledger.last_slot(*key) >= spec.campaign.slots)


def erase_books(spec: CampaignSpec) -> None:
    """Of a campaign that is over. It is closed first, so that the ledger refuses another slot, and
    then the ledger says that there are no books; only then they go. Safe to repeat, and what a
    crash left is erased by the next time."""
    ledger = _ledger(spec)
    Campaign(spec).close()
    ledger.erase_books(spec.campaign.scope, spec.campaign.name)
    ReleaseFolder(spec, ledger).mark()
    steps = _steps(spec)
    for folder in BookFolder.all_of(spec):
        folder.erase(steps)
    ledger.seal()


def has_books(spec: CampaignSpec) -> bool:
    steps = _steps(spec)
    return not all(each.is_empty(steps) for each in BookFolder.all_of(spec))


def _steps(spec: CampaignSpec) -> list[dict[str, Any]]:
    """SECRET: what the ledger keeps of the campaign's slots, which names their books."""
    ledger = _ledger(spec)
    return ledger.steps(spec.campaign.scope, spec.campaign.name) if ledger.exists() else []


def _ledger(spec: CampaignSpec) -> Ledger:
    return Ledger(spec.ledger.location, spec.directory)
