"""Releases slots when they are over for long enough, catches up after a pause.

Several servers may run one each, and take turns by leases. What makes a slot released once is the
ledger, whoever races.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from sqlalchemy import update

from adsbpc.campaign import Campaign, Released
from adsbpc.campaign.together import Asked, releasing_together
from adsbpc.errors import AdsbpcError, ReleaseError
from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.logs import log, log_failure, public_text
from adsbpc.service.releases.campaigns import CampaignBook, Registered
from adsbpc.service.releases.course import State
from adsbpc.service.releases.leases import Leases
from adsbpc.service.releases.publication import Publication
from adsbpc.service.settings import SchedulerSection
from adsbpc.service.store import campaigns

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1, 300


@dataclass(frozen=True)
class Standing:
    """How far a campaign is, for the operator alone: `released` as soon as it is, `visible` from
    its moment on. `lag_seconds` since the oldest slot that waits was due; `holder` is the server
    that releases it now, if any."""

    campaign_id: str
    name: str
    released: int
    visible: int
    due: int
    slots: int
    lag_seconds: int
    problem: str
    holder: str
    state: State


class Scheduler:
    def __init__(
        self,
        store: Database,
        book: CampaignBook,
        publication: Publication,
        clock: Clock,
        settings: SchedulerSection,
    ) -> None:
        self._store, self._book, self._publication = store, book, publication
        self._clock, self._settings = clock, settings
        self._leases = Leases(store)
        # When to try a campaign again that failed, and how often it has.
        self._failures: dict[str, tuple[float, int]] = {}
        # Campaigns whose newest slot is known to be published.
        self._published: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        if self._settings.enabled:
            self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive() or not self._settings.enabled

    def stop(self) -> None:
        """Waits for the slot that is being released."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            # Whatever it was, the next look may go well.
            except Exception as error:  # noqa: BLE001
                log_failure("scheduler", error)
            if self._stopping.wait(self._settings.every / MICROSECONDS_PER_SECOND):
                return

    def look(self) -> None:
        """Release everything that is due, one slot of each campaign after the other."""
        for registered in self._book.all():
            self._publication.note(registered)
        while not self._stopping.is_set():
            # Events stand in files by advertiser: what is due of one may be read together.
            groups: dict[str, list[Registered]] = {}
            for each in self._book.all():
                if self._is_due(each):
                    groups.setdefault(each.advertiser, []).append(each)
            if not [group for group in groups.values() if self._advance(group)]:
                break

    def _is_due(self, registered: Registered) -> bool:
        again, _ = self._failures.get(registered.campaign_id, (0.0, 0))
        return time.monotonic() >= again and self._next(registered) <= self._due(registered)

    def _next(self, registered: Registered) -> int:
        """The slot to release; the last one again if it may not have been published, which a crash
        leaves undone: it is returned as it was."""
        last = self._book.last_slot(registered)
        doubtful = registered.problem or registered.campaign_id not in self._published
        return last if last and doubtful else last + 1

    def _advance(self, group: Sequence[Registered]) -> bool:
        """Release the next slot of each; whether any was, so that there may be more to do."""
        done = False
        with ExitStack() as stack:
            ready: dict[int, Registered] = {}
            asked: list[Asked] = []
            for registered in group:
                with self._guarded(registered):
                    found = self._ready(registered, stack)
                    if found is not None:
                        current, campaign, slot = found
                        ready[id(campaign)] = current
                        asked.append(Asked(campaign, slot))
            for outcome in stack.enter_context(closing(releasing_together(asked))):
                registered = ready[id(outcome.campaign)]
                with self._guarded(registered):
                    if outcome.released is None:
                        assert outcome.failure is not None
                        raise outcome.failure
                    self._note(registered, outcome.released)
                    done = True
                if self._stopping.is_set():
                    break
        return done

    def _ready(
        self, registered: Registered, stack: ExitStack
    ) -> tuple[Registered, Campaign, int] | None:
        """A campaign that is ours for as long as the stack is open, with its next slot; None if
        there is nothing to do, or somebody else does it."""
        if not stack.enter_context(self._leases.held(registered.campaign_id)):
            return None
        # It may have been paused or withdrawn meanwhile.
        found = self._book.get(registered.campaign_id)
        if found is None:
            return None
        slot = self._next(found)
        # Another server may have been faster, and the slot after its one is not over.
        if slot > self._due(found):
            return None
        return found, stack.enter_context(self._book.ready(found, slot)), slot

    @contextmanager
    def _guarded(self, registered: Registered) -> Iterator[None]:
        """What goes wrong with a campaign is noted, and stops neither others nor the thread."""
        try:
            yield
        except AdsbpcError as error:
            self._failed(registered, error, public_text(error))
        except Exception as error:  # noqa: BLE001
            self._failed(registered, error, "it broke. The server's log says where")

    def _failed(self, registered: Registered, error: Exception, problem: str) -> None:
        """Try again later, and later each time."""
        _, failures = self._failures.get(registered.campaign_id, (0.0, 0))
        pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**failures)
        self._failures[registered.campaign_id] = (time.monotonic() + pause, failures + 1)
        log_failure("release failed", error, campaign=registered.campaign_id)
        self._set_problem(registered, problem)

    def release(self, registered: Registered, through: int | None = None) -> list[Released]:
        """By hand: what is due, up to a slot. Safe to repeat."""
        self._publication.note(registered)
        self._book.ledger.check_open(registered.scope, registered.name)
        if registered.paused_us is not None:
            raise ReleaseError(
                f"campaign {registered.name!r}: is paused, and releases nothing. Resume it first"
            )
        due = self._due(registered)
        if through is not None and through > due:
            raise ReleaseError(
                f"slot {through}: is not due yet. Slot {due} is the last that is, "
                f"{self._settings.grace // MICROSECONDS_PER_SECOND} seconds after its end"
                if due
                else f"slot {through}: is not due yet, and no other is"
            )
        done = []
        for slot in range(self._book.last_slot(registered) + 1, (through or due) + 1):
            if self._stopping.is_set():
                break
            done.append(self._release(registered, slot))
            self._note(registered, done[-1])
        return done

    def _release(self, registered: Registered, slot: int) -> Released:
        with self._book.ready(registered, slot) as campaign:
            (released,) = campaign.release(slot)
        return released

    def _note(self, registered: Registered, released: Released) -> None:
        """Says that it is done; what was read of events is not for a log."""
        self._publication.note(registered)
        self._published.add(registered.campaign_id)
        self._failures.pop(registered.campaign_id, None)
        slot = released.release.slot
        if not released.replayed:
            log("released", campaign=registered.campaign_id, slot=slot)
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
        return self._book.course(registered).due(self._settings.grace)

    def standings(self) -> list[Standing]:
        holders, now = self._leases.holders(), now_us(self._clock)
        found = []
        for registered in self._book.all():
            course = self._book.course(registered)
            due, released = course.due(self._settings.grace), course.stage.last_slot
            lag = 0
            if due > released:
                ended = registered.spec.settled_at(released + 1)
                lag = (now - ended - self._settings.grace) // MICROSECONDS_PER_SECOND
            found.append(
                Standing(
                    registered.campaign_id,
                    registered.name,
                    released,
                    self._publication.visible_slot(registered),
                    due,
                    registered.spec.campaign.slots,
                    lag,
                    registered.problem,
                    holders.get(registered.campaign_id, ""),
                    course.state,
                )
            )
        return found
