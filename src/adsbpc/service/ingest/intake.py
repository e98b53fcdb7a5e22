"""Storing batches: all that wait at a moment in one transaction, each answered after it.

Must never: answer before a row is on the disk, store a batch twice, or store a row as arrived in
a slot that may have been released.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.batches import (
    Answer,
    Batch,
    BatchId,
    Settled,
    StoragePlan,
    settled_before,
)
from adsbpc.service.ingest.event_files import LOCK, EventFiles, OvertakenError, closed_until
from adsbpc.service.ingest.event_ids import EventIds, Sender
from adsbpc.service.ingest.lateness import Lateness
from adsbpc.service.ingest.rows import Source
from adsbpc.service.logs import log_failure

__all__ = ["Answer", "Batch", "Intake"]

_CHECKED_AT_ONCE = 4
_MOST_ROWS = 100_000
_GATHER_SECONDS = 0.005
_AGAIN_SECONDS = "1"


class Intake:
    """`waiting` batches may wait, others are sent away. Impressions that come late, by `lateness`,
    are counted apart."""

    def __init__(
        self,
        store: Database,
        files: EventFiles,
        clock: Clock,
        waiting: int,
        lateness: Lateness,
    ) -> None:
        self._store, self._files, self._clock, self._limit = store, files, clock, waiting
        self._lateness = lateness
        self._closed_until_us = 0
        self._inside: Counter[str] = Counter()
        # How many bodies are unpacked and checked at once.
        self.checking = asyncio.Semaphore(_CHECKED_AT_ONCE)
        self._queue: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._closed = self._busy = False
        self._event_ids = EventIds(store)
        self._writer = threading.Thread(target=self._write, name="intake", daemon=True)

    def start(self) -> None:
        self._writer.start()

    def is_alive(self) -> bool:
        return self._writer.is_alive() and not self._closed

    @contextmanager
    def entered(self, owner: str) -> Iterator[None]:
        """Around a batch that is here whole; those beyond the limit are sent away. One sender has
        at most half of the room."""
        with self._changed:
            self._check_room(owner)
            self._inside[owner] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[owner] -= 1
                # Keeps nothing of who is not here.
                self._inside += Counter()

    def check_room(self, owner: str) -> None:
        """Send a batch away before it is read, if it would find no room now."""
        with self._changed:
            self._check_room(owner)

    def _check_room(self, owner: str) -> None:
        full = self._inside.total() >= self._limit
        if full or self._inside[owner] >= max(1, self._limit // 2):
            raise self._too_many()

    def _too_many(self) -> Problem:
        return Problem(
            429, "Too many batches", f"{self._limit} batches wait already",
            "Send the same batch again, with the same key.", {"Retry-After": _AGAIN_SECONDS},
        )  # fmt: skip

    async def add(self, batch: Batch) -> Answer:
        """Store a batch and return its answer, or the one that it got before."""
        waiting = _Waiting(batch)
        with self._changed:
            if self._closed:
                raise _unavailable("the server takes no more batches")
            if len(self._queue) >= self._limit:
                raise self._too_many()
            self._queue.append(waiting)
            self._changed.notify()
        return await asyncio.wrap_future(waiting.future)

    def close(self) -> None:
        """Store what waits, answer it, and take nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._writer.is_alive():
            self._writer.join()

    def _write(self) -> None:
        group: list[_Waiting] = []
        try:
            while group := self._next():
                self._settle(group)
        finally:
            # Only a mistake in this program leaves any. They must not wait for ever.
            with self._changed:
                self._closed = True
                left = [*group, *self._queue]
            for waiting in left:
                if not waiting.future.done():
                    waiting.future.set_exception(_unavailable("the server cannot store batches"))

    def _next(self) -> list[_Waiting]:
        """All that wait, up to a number of rows; none when closed."""
        group: list[_Waiting] = []
        rows = 0
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
        if self._busy:
            # A transaction costs as much as some batches: under load a little wait saves more.
            time.sleep(_GATHER_SECONDS)
        with self._changed:
            while self._queue and (not group or rows + self._queue[0].rows <= _MOST_ROWS):
                waiting = self._queue.popleft()
                rows += waiting.rows
                group.append(waiting)
        self._busy = len(group) > 1
        return group

    def _settle(self, group: list[_Waiting]) -> None:
        # Who hung up by now is not stored; who hangs up later may ask again with the same key.
        heard = [waiting for waiting in group if waiting.future.set_running_or_notify_cancel()]
        first: dict[BatchId, _Waiting] = {}
        for waiting in heard:
            first.setdefault(waiting.batch.id, waiting)
        try:
            settled = self._stored({key: waiting.batch for key, waiting in first.items()})
        # Whatever it was, they are told, and the next ones may go well.
        except Exception as error:  # noqa: BLE001
            log_failure("batches were not stored", error)
            for waiting in heard:
                waiting.future.set_exception(_unavailable("the batch could not be stored"))
            return
        for waiting in heard:
            batch, found = waiting.batch, settled[waiting.batch.id]
            if batch.body_hash != found.body_hash:
                waiting.future.set_exception(_another_body(batch.batch_key))
            elif waiting is not first[batch.id]:
                waiting.future.set_result(found.answer.model_copy(update={"repeated": True}))
            else:
                waiting.future.set_result(found.answer)

    def _stored(self, group: Mapping[BatchId, Batch]) -> dict[BatchId, Settled]:
        """What each batch is answered, once all of them are stored."""
        batches = list(group.values())
        senders = {batch.sender for batch in batches}
        # A clock may be behind what was released; rows then count as arrived after it.
        moment_us = max(now_us(self._clock), self._closed_until_us)
        self._lateness.renew(moment_us)
        # Written without the lock, so that other servers can store meanwhile.
        used, marker = self._event_ids.held(senders), self._event_ids.marker
        plan = StoragePlan(batches, moment_us, used, marker, self._late_counts)
        written = self._written(plan)
        try:
            with self._store.writing(LOCK) as connection:
                self._closed_until_us = closed_until(connection)
                used = self._event_ids.follow(connection, senders)
                if moment_us < self._closed_until_us or not plan.record(connection, used):
                    raise OvertakenError
                self._list(connection, written)
        except OvertakenError:
            # Only now: after any other failure the files may be listed all the same.
            for _, name, _ in written:
                self._files.discard(name)
            return self._stored_alone(batches, senders)
        self._event_ids.keep(plan.used)
        return plan.settled

    def _stored_alone(self, batches: list[Batch], senders: set[Sender]) -> dict[BatchId, Settled]:
        """The same with the lock from the beginning: nobody can come in between again."""
        with self._store.writing(LOCK) as connection:
            self._closed_until_us = closed_until(connection)
            moment_us = max(now_us(self._clock), self._closed_until_us)
            before = settled_before(connection, batches, moment_us)
            fresh = [batch for batch in batches if batch.id not in before]
            if not fresh:
                return before
            used = self._event_ids.follow(connection, senders)
            plan = StoragePlan(fresh, moment_us, used, self._event_ids.marker, self._late_counts)
            written = self._written(plan)
            if not plan.record(connection, used):
                raise ServiceError("a batch was stored by somebody who did not hold the lock")
            self._list(connection, written)
        self._event_ids.keep(plan.used)
        return before | plan.settled

    def _late_counts(self, impressions: pa.Table, moment_us: int) -> tuple[int, int]:
        if self._closed_until_us == 0:
            with self._store.reading() as connection:
                self._closed_until_us = closed_until(connection)
        return self._lateness.counts_of(impressions, moment_us, self._closed_until_us)

    def _written(self, plan: StoragePlan) -> list[tuple[Source, str, pa.Table]]:
        return [
            (source, self._files.write(source, table), table)
            for source, table in plan.tables().items()
        ]

    def _list(self, connection: Connection, written: list[tuple[Source, str, pa.Table]]) -> None:
        for source, name, table in written:
            advertisers = pc.unique(table.column("advertiser_id")).to_pylist()
            advertiser = advertisers[0] if len(advertisers) == 1 else ""
            self._files.list_new(connection, source, name, advertiser, table.num_rows)


@dataclass(frozen=True)
class _Waiting:
    batch: Batch
    future: Future[Answer] = field(default_factory=Future)

    @property
    def rows(self) -> int:
        return int(self.batch.checked.table.num_rows)


def _unavailable(why: str) -> Problem:
    return Problem(
        503, "Not stored", why, "Send the same batch again, with the same key.",
        {"Retry-After": _AGAIN_SECONDS},
    )  # fmt: skip


def _another_body(batch_key: str) -> Problem:
    return Problem(
        409, "Key used before", f"another body was stored under the key {batch_key!r}",
        "Send this batch under a key of its own.",
    )  # fmt: skip
