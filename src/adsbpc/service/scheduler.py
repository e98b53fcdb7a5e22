"""Releases slots when they are over for long enough, catches up after a pause.

Several servers may run one each. What makes a slot released once is the ledger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import update

from adsbpc.campaign import Released
from adsbpc.errors import AdsbpcError, ReleaseError
from adsbpc.events import Reason
from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.campaigns import CampaignBook, Registered
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.leases import Leases
from adsbpc.service.logs import log, log_failure, told
from adsbpc.service.metrics import Metrics
from adsbpc.service.settings import SchedulerSection
from adsbpc.service.store import campaigns

# Rows of other advertisers share files with a campaign's own until they are compacted.
_NOT_BAD = Reason.OTHER_ADVERTISER


@dataclass(frozen=True)
class Standing:
    """How far a campaign is. `lag_seconds` since the oldest slot that waits was due; `holder` is
    the server that releases it now, if any."""

    campaign_id: str
    name: str
    released: int
    due: int
    slots: int
    lag_seconds: int
    problem: str
    holder: str


class Scheduler:
    def __init__(
        self,
        store: Database,
        book: CampaignBook,
        clock: Clock,
        settings: SchedulerSection,
        metrics: Metrics,
    ) -> None:
        self._store, self._book, self._clock = store, book, clock
        self._settings, self._metrics = settings, metrics
        self._leases = Leases(store)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        if self._settings.enabled:
            self._thread.start()

    def stop(self) -> None:
        """Waits for the slot that is being released."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except AdsbpcError as error:
                log_failure("scheduler", error, problem=told(error))
            if self._stopping.wait(self._settings.every / MICROSECONDS_PER_SECOND):
                return

    def look(self) -> None:
        """Release everything that is due, campaign by campaign."""
        waiting = 0
        for registered in self._book.all():
            due, released = self._due(registered), self._book.last_slot(registered)
            if due > released:
                self._advance(registered)
                waiting += due - self._book.last_slot(registered)
            if self._stopping.is_set():
                break
        self._metrics.waiting.set(waiting)
        self._metrics.looked.set(time.time())

    def _advance(self, registered: Registered) -> None:
        with self._leases.held(registered.campaign_id) as ours:
            if not ours:
                return
            try:
                for released in self._releasing(registered, self._due(registered)):
                    self._note(registered, released)
            except AdsbpcError as error:
                self._failed(registered, error, told(error))
            # A mistake in one campaign must not stop the others, nor the thread.
            except Exception as error:  # noqa: BLE001
                self._failed(registered, error, "it broke. The server's log says where")

    def _failed(self, registered: Registered, error: Exception, problem: str) -> None:
        self._metrics.failed.inc()
        log_failure("release failed", error, campaign=registered.campaign_id)
        self._set_problem(registered, problem)

    def release(self, registered: Registered, through: int | None = None) -> list[Released]:
        """By hand: what is due, up to a slot. Safe to repeat."""
        due = self._due(registered)
        if through is not None and through > due:
            raise ReleaseError(
                f"slot {through}: is not due yet. Slot {due} is the last that is, "
                f"{self._settings.grace // MICROSECONDS_PER_SECOND} seconds after its end"
                if due
                else f"slot {through}: is not due yet, and no other is"
            )
        done = []
        for released in self._releasing(registered, due if through is None else through):
            self._note(registered, released)
            done.append(released)
        return done

    def _releasing(self, registered: Registered, through: int) -> Iterator[Released]:
        for slot in range(self._book.last_slot(registered) + 1, through + 1):
            if self._stopping.is_set():
                return
            self._book.prepare(registered)
            (released,) = registered.campaign.release(slot)
            yield released

    def _note(self, registered: Registered, released: Released) -> None:
        """Counts of rows are the operator's, in the store; the log says that it is done."""
        if not released.replayed:
            self._metrics.released.inc()
        bad = sorted({reason for _, reason in released.quarantined if reason != _NOT_BAD})
        log(
            "released",
            campaign=registered.campaign_id,
            slot=released.release.slot,
            replayed=released.replayed,
            quarantine_reasons=bad,
        )
        if registered.problem:
            self._set_problem(registered, "")

    def _set_problem(self, registered: Registered, problem: str) -> None:
        change = (
            update(campaigns)
            .where(campaigns.c.campaign_id == registered.campaign_id)
            .values(problem=problem)
        )
        with self._store.writing("campaigns") as connection:
            connection.execute(change)

    def _due(self, registered: Registered) -> int:
        return self._book.due(registered, self._settings.grace)

    def standings(self) -> list[Standing]:
        holders, now = self._leases.holders(), now_us(self._clock)
        found = []
        for registered in self._book.all():
            due, released = self._due(registered), self._book.last_slot(registered)
            lag = 0
            if due > released:
                ended = registered.spec.grid.boundaries[released + 1]
                lag = (now - ended - self._settings.grace) // MICROSECONDS_PER_SECOND
            found.append(
                Standing(
                    registered.campaign_id,
                    registered.name,
                    released,
                    due,
                    registered.spec.campaign.slots,
                    lag,
                    registered.problem,
                    holders.get(registered.campaign_id, ""),
                )
            )
        return found
