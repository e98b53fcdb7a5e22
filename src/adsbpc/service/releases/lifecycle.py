"""What an operator does to a campaign: withdraw it before it starts, pause, resume, close.

Must never: return budget that was charged. What a closed campaign returns is the ledger's to say,
and one that has started cannot be withdrawn.
"""

from __future__ import annotations

import shutil
from fractions import Fraction

from sqlalchemy import delete, update

from adsbpc.errors import ReleaseError
from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.releases.campaigns import CampaignBook, Registered
from adsbpc.service.releases.leases import Leases
from adsbpc.service.store import campaigns


class Lifecycle:
    def __init__(self, store: Database, book: CampaignBook, clock: Clock) -> None:
        self._store, self._book, self._clock = store, book, clock
        self._leases = Leases(store)

    def withdraw(self, registered: Registered) -> None:
        """Forget a campaign that has not started: its room and its name are free again."""
        # Nobody may begin to release it meanwhile.
        with self._leases.held(registered.campaign_id) as ours:
            if not ours:
                raise ReleaseError(
                    f"campaign {registered.name!r}: is being released now. Ask again in a minute"
                )
            with self._store.writing("campaigns") as connection:
                if self._book.has_started(registered.spec):
                    raise ReleaseError(
                        f"campaign {registered.name!r}: has started, and what was released of it "
                        "stays. Close it instead: what it has not spent goes back to its scope"
                    )
                connection.execute(
                    delete(campaigns).where(campaigns.c.campaign_id == registered.campaign_id)
                )
        shutil.rmtree(self._book.folder_of(registered.campaign_id), ignore_errors=True)

    def pause(self, registered: Registered) -> None:
        """Release nothing until it is resumed; the slot that is being released is finished. Events
        are taken as before, and no slot is lost."""
        self._book.ledger.check_open(registered.scope, registered.name)
        if registered.paused_us is None:
            self._set(registered, now_us(self._clock))

    def resume(self, registered: Registered) -> None:
        """Release again, first what would have been released meanwhile."""
        self._set(registered, None)

    def close(self, registered: Registered) -> Fraction:
        """End a campaign for good; how much rho went back to its scope. Safe to repeat."""
        if not self._book.has_started(registered.spec):
            raise ReleaseError(
                f"campaign {registered.name!r}: has not started, and has reserved nothing. "
                "Withdraw it instead"
            )
        returned = registered.campaign.close()
        self._set(registered, None)
        return returned

    def _set(self, registered: Registered, paused_us: int | None) -> None:
        change = (
            update(campaigns)
            .where(campaigns.c.campaign_id == registered.campaign_id)
            .values(paused_us=paused_us)
        )
        with self._store.writing("campaigns") as connection:
            connection.execute(change)
