"""Tells who listens when a slot becomes visible, whichever server released it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from adsbpc.service.campaigns import Registered
from adsbpc.service.publication import Publication

_LOOK_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15


class Watch:
    """However many listen, the database is asked once in a while for each campaign."""

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._known: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()
        self.stopping = False

    async def slots(self, registered: Registered, after: int) -> AsyncIterator[int | None]:
        """Each visible slot after one, as it comes; None now and then, to see who still listens.
        Ends after the last slot, or when the server stops."""
        quiet_since = time.monotonic()
        yield None
        while not self.stopping:
            newest = await run_in_threadpool(self._newest, registered)
            for slot in range(after + 1, newest + 1):
                yield slot
                quiet_since = time.monotonic()
            after = max(after, newest)
            if after >= registered.spec.campaign.slots:
                return
            if time.monotonic() - quiet_since > _KEEP_ALIVE_SECONDS:
                quiet_since = time.monotonic()
                yield None
            await asyncio.sleep(_LOOK_SECONDS)

    def _newest(self, registered: Registered) -> int:
        with self._lock:
            looked, newest = self._known.get(registered.campaign_id, (0.0, 0))
            if time.monotonic() - looked < _LOOK_SECONDS / 2:
                return newest
            newest = self._publication.visible_slot(registered)
            self._known[registered.campaign_id] = (time.monotonic(), newest)
            return newest
