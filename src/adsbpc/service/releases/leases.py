"""Which of several servers is at work on a campaign."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import or_, select, update

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.model.slots import to_microseconds
from adsbpc.service.logs import log_failure
from adsbpc.service.store import campaigns

LASTS_SECONDS = 60


class Leases:
    """Which of several servers releases a campaign now. A lease spares work and decides nothing.
    Leases run by the system's clock, whatever clock the campaigns run by."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self.holder = uuid4().hex

    def holders(self) -> dict[str, str]:
        wanted = select(campaigns.c.campaign_id, campaigns.c.lease_holder).where(
            campaigns.c.lease_until_us > _now_us()
        )
        with self._store.reading() as connection:
            return {row.campaign_id: row.lease_holder for row in connection.execute(wanted)}

    @contextmanager
    def held(self, campaign_id: str) -> Iterator[bool]:
        """Whether the campaign is ours; it is kept so for as long as the block runs."""
        if not self._take(campaign_id):
            yield False
            return
        done = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(campaign_id, done), daemon=True)
        keeper.start()
        try:
            yield True
        finally:
            done.set()
            keeper.join()
            self._set(campaign_id, "", 0)

    def _keep(self, campaign_id: str, done: threading.Event) -> None:
        while not done.wait(LASTS_SECONDS / 3):
            try:
                self._set(campaign_id, self.holder, _now_us() + _lasts_us())
            except ServiceError as error:
                log_failure("lease not renewed", error, campaign=campaign_id)

    def _take(self, campaign_id: str) -> bool:
        now = _now_us()
        until = now + _lasts_us()
        free = (
            update(campaigns)
            .where(
                campaigns.c.campaign_id == campaign_id,
                # One further ahead than any lease lasts was taken by a wrong clock.
                or_(
                    campaigns.c.lease_until_us <= now, campaigns.c.lease_until_us > 2 * until - now
                ),
            )
            .values(lease_holder=self.holder, lease_until_us=until)
        )
        with self._store.writing("campaigns") as connection:
            return connection.execute(free).rowcount == 1

    def _set(self, campaign_id: str, holder: str, until_us: int) -> None:
        ours = (
            update(campaigns)
            .where(campaigns.c.campaign_id == campaign_id, campaigns.c.lease_holder == self.holder)
            .values(lease_holder=holder, lease_until_us=until_us)
        )
        with self._store.writing("campaigns") as connection:
            connection.execute(ours)


def _now_us() -> int:
    return to_microseconds(datetime.now(UTC))


def _lasts_us() -> int:
    return LASTS_SECONDS * MICROSECONDS_PER_SECOND
