"""When a released slot becomes visible: at a declared moment, never when its work happens to end;
and what campaigns have spent, as far as it is visible.

Must never: let readers see anything of a slot, or that it is late, change between the moments
end + settle + k * publish_after. How long a release takes, and whether it fails, follows from
events.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Select, and_, bindparam, func, insert, select
from starlette.concurrency import run_in_threadpool

from adsbpc.errors import AdsbpcError
from adsbpc.ledger.database import Database
from adsbpc.model import Budget
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.releases.campaigns import CampaignBook, Registered
from adsbpc.service.store import campaigns, published

# Until then every server can read that a slot is done. Without that, who asks again and again
# around a moment would see a slot that was done just before it appear just after it.
_KNOWN_US = 10 * MICROSECONDS_PER_SECOND


_VISIBLE = (
    select(campaigns.c.name, func.coalesce(func.max(published.c.slot), 0).label("slot"))
    .outerjoin(
        published,
        and_(
            published.c.campaign_id == campaigns.c.campaign_id,
            published.c.published_us <= bindparam("now_us"),
        ),
    )
    .where(campaigns.c.scope == bindparam("scope"))
    .group_by(campaigns.c.name)
)


def moment_of(ended_us: int, publish_after_us: int, done_us: int) -> int:
    """The first of the moments ended + publish_after, ended + 2 publish_after, ... by which the
    work on a slot is done.

    >>> [moment_of(100, 15, done_us) for done_us in (103, 115, 116, 131)]
    [115, 115, 130, 145]
    """
    steps = -(-(done_us - ended_us) // publish_after_us)
    return ended_us + max(1, steps) * publish_after_us


class Totals(NamedTuple):
    """Of all campaigns: slots that are visible, and slots that should be by now and are not."""

    published: int
    late: int


class Publication:
    """What everything that is shown asks how far a campaign is."""

    def __init__(
        self, store: Database, book: CampaignBook, clock: Clock, publish_after_us: int
    ) -> None:
        self._store, self._book, self._clock = store, book, clock
        self.publish_after_us = publish_after_us

    def visible(self, registered: Registered) -> dict[str, int]:
        """The newest visible slot, or 0, of each campaign of its scope, by name."""
        given = {"scope": registered.scope, "now_us": now_us(self._clock)}
        with self._store.reading() as connection:
            return {row.name: row.slot for row in connection.execute(_VISIBLE, given)}

    def visible_slot(self, registered: Registered) -> int:
        # None of one that was withdrawn meanwhile.
        return self.visible(registered).get(registered.name, 0)

    def due_slot(self, registered: Registered) -> int:
        """The last slot that should be visible by now."""
        return self._book.course(registered).due(self.publish_after_us)

    def last_slot(self, registered: Registered) -> int:
        """The last slot that will be visible."""
        return self._book.course(registered).slots

    def totals(self) -> Totals:
        visible = late = 0
        for registered in self._book.all():
            slot = self.visible_slot(registered)
            visible += slot
            late += max(0, self.due_slot(registered) - slot)
        return Totals(visible, late)

    def note(self, registered: Registered) -> None:
        """Write down the moments of slots that the ledger has, and that nobody has noted yet. What
        a crash left without one counts as done now."""
        released = self._book.last_slot(registered)
        newest = _newest(registered)
        with self._store.reading() as connection:
            known = connection.execute(newest).one_or_none()
        if released == (known.slot if known else 0):
            return
        with self._store.writing("campaigns") as connection:
            # Another server may have been faster.
            known = connection.execute(newest).one_or_none()
            last, moment_us = (known.slot, known.published_us) if known else (0, 0)
            done_us = now_us(self._clock) + _KNOWN_US
            for slot in range(last + 1, released + 1):
                ended_us = registered.spec.settled_at(slot)
                # Slots become visible in their order.
                moment_us = max(moment_us, moment_of(ended_us, self.publish_after_us, done_us))
                connection.execute(
                    insert(published).values(
                        campaign_id=registered.campaign_id, slot=slot, published_us=moment_us
                    )
                )

    def moment(self, registered: Registered, slot: int) -> int:
        """When a released slot becomes visible, or did."""
        wanted = select(published.c.published_us).where(
            published.c.campaign_id == registered.campaign_id, published.c.slot == slot
        )
        with self._store.reading() as connection:
            return int(connection.execute(wanted).scalar_one())


def _newest(registered: Registered) -> Select[tuple[int, int]]:
    return (
        select(published.c.slot, published.c.published_us)
        .where(published.c.campaign_id == registered.campaign_id)
        .order_by(published.c.slot.desc())
        .limit(1)
    )


_LOOK_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15


class Watch:
    """However many listen, the database is asked once in a while for each campaign."""

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._known: dict[str, tuple[float, int, int]] = {}
        self._lock = threading.Lock()
        self.stopping = False

    async def slots(self, registered: Registered, after: int) -> AsyncIterator[int | None]:
        """Each visible slot after one, as it comes; None now and then, to see who still listens.
        Ends after the last slot, or when the server stops."""
        quiet_since = time.monotonic()
        yield None
        while not self.stopping:
            newest, last = await run_in_threadpool(self._seen, registered)
            for slot in range(after + 1, newest + 1):
                yield slot
                quiet_since = time.monotonic()
            after = max(after, newest)
            if after >= last:
                return
            if time.monotonic() - quiet_since > _KEEP_ALIVE_SECONDS:
                quiet_since = time.monotonic()
                yield None
            await asyncio.sleep(_LOOK_SECONDS)

    def _seen(self, registered: Registered) -> tuple[int, int]:
        """The newest visible slot, and the last that will be."""
        with self._lock:
            looked, newest, last = self._known.get(registered.campaign_id, (0.0, 0, 0))
            if time.monotonic() - looked >= _LOOK_SECONDS / 2:
                visible = self._publication.visible(registered)
                # Of one that was withdrawn meanwhile nothing will come.
                is_there = registered.name in visible
                newest = visible.get(registered.name, 0)
                last = self._publication.last_slot(registered) if is_there else 0
                self._known[registered.campaign_id] = (time.monotonic(), newest, last)
            return newest, last


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
        # One that cannot be read is reported where it is shown.
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
