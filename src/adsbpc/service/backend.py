"""Everything behind the pages and the API, put together from the settings."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import pyarrow as pa

from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.auth.audit import AuditLog
from adsbpc.service.auth.keys import KeyRing
from adsbpc.service.auth.sessions import Sessions
from adsbpc.service.clock import Clock, SystemClock, now_us
from adsbpc.service.data_folder import Disk, disk_of, enter
from adsbpc.service.http.limits import Throttle
from adsbpc.service.http.monitoring import Metrics
from adsbpc.service.http.sharing import Sharing
from adsbpc.service.http.strangers import Strangers
from adsbpc.service.ingest.batches import Counts, forget_batches
from adsbpc.service.ingest.bodies import NDJSON, BodyRoom, check_body
from adsbpc.service.ingest.compaction import compact
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.event_ids import tidy_event_ids
from adsbpc.service.ingest.intake import Intake
from adsbpc.service.ingest.lateness import Lateness, Waiting
from adsbpc.service.ingest.rows import SCHEMAS
from adsbpc.service.logs import log, log_failure
from adsbpc.service.releases.campaigns import CampaignBook
from adsbpc.service.releases.lifecycle import Lifecycle
from adsbpc.service.releases.publication import Publication, Watch
from adsbpc.service.releases.retention import Retention
from adsbpc.service.releases.scheduler import Scheduler
from adsbpc.service.releases.signed_statements import Signer, signer_of
from adsbpc.service.settings import Settings
from adsbpc.service.store import open_store


@dataclass(frozen=True)
class Backend:
    settings: Settings
    clock: Clock
    presence: FileIO
    written_folders: frozenset[Path]
    store: Database
    keys: KeyRing
    sessions: Sessions
    audit: AuditLog
    # Whose refusals, and whose requests, are written down one by one.
    refused_strangers: Strangers
    strangers: Strangers
    throttle: Throttle
    files: EventFiles
    body_room: BodyRoom
    intake: Intake
    counts: Counts
    campaigns: CampaignBook
    publication: Publication
    scheduler: Scheduler
    lifecycle: Lifecycle
    retention: Retention
    watch: Watch
    metrics: Metrics
    signer: Signer | None
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        # Arrow imports pandas at its first use, where it is: no sender has to wait for that.
        for source in SCHEMAS:
            check_body(b"{}", NDJSON, source, "", now_us(self.clock), self.settings.ingest)
        self.intake.start()
        self.scheduler.start()
        threading.Thread(target=self._tidy, name="compaction", daemon=True).start()

    def stop(self) -> None:
        """What was accepted is stored, and the slot that is being released is finished."""
        self.watch.stopping = True
        self._stopping.set()
        self.scheduler.stop()
        self.intake.close()
        self.refused_strangers.close()
        self.strangers.close()
        self.store.close()
        self.presence.close()

    def has_full_disk(self) -> bool:
        """Whether there is too little room to go on: where files are, or either database."""
        return any(disk.is_full for disk in self.disks())

    def disks(self) -> list[Disk]:
        least = self.settings.service.least_free_bytes
        return [disk_of(folder, least) for folder in sorted(self.written_folders)]

    def _tidy(self) -> None:
        """Few large files instead of many small ones, and none that nobody needs."""
        while not self._stopping.wait(self.settings.ingest.compact_every / MICROSECONDS_PER_SECOND):
            try:
                for source in SCHEMAS:
                    while compact(self.files, self.store, source) and not self._stopping.is_set():
                        # What the round has held.
                        pa.default_memory_pool().release_unused()
                self.files.sweep()
                self.retention.apply()
                forget_batches(self.store, now_us(self.clock))
                tidy_event_ids(self.store, now_us(self.clock))
            # Whatever it was, events are where they were, and the next time may go well.
            except Exception as error:  # noqa: BLE001
                log_failure("compaction", error)


def open_backend(
    settings: Settings, clock: Clock | None = None, sharing: Sharing | None = None
) -> Backend:
    """Open the store and the folders; nothing runs yet. The clock is that of events and slots:
    keys and sessions end by the system's, whatever a demonstration does. `sharing` is between
    several processes of one server."""
    real, sharing = SystemClock(), sharing or Sharing.among(1)
    clock = clock or real
    signer = signer_of(settings)
    presence = enter(settings.data)
    store = open_store(settings.service.database, settings.data)
    keys = KeyRing(store, real)
    files = EventFiles(store, settings.data / "events", clock)
    book = CampaignBook(store, settings, files, clock)
    publication = Publication(store, book, clock, settings.scheduler.publish_after)
    databases = store, Database(settings.ledger.location, settings.data)
    files_of_databases = [each.file for each in databases if each.file is not None]
    audit = AuditLog(settings.data / "audit", real)

    def tell_refusals(sentence: str) -> None:
        audit.note(None, "authenticate", "", "refused", sentence, "", "")

    def tell_requests(sentence: str) -> None:
        log("requests", left_out=sentence)

    return Backend(
        settings=settings,
        clock=clock,
        presence=presence,
        written_folders=frozenset([settings.data, *(each.parent for each in files_of_databases)]),
        store=store,
        keys=keys,
        sessions=Sessions(store, keys, real, settings.service.session),
        audit=audit,
        refused_strangers=Strangers(real, tell_refusals, sharing.notes("refusals")),
        strangers=Strangers(real, tell_requests, sharing.notes("requests")),
        throttle=Throttle(real, notes=sharing.notes("failures")),
        files=files,
        body_room=BodyRoom(settings.ingest),
        intake=Intake(
            store,
            files,
            clock,
            settings.ingest.waiting_batches,
            Lateness(book.open_specs, Waiting(settings.scheduler.settle, settings.scheduler.wait)),
        ),
        counts=Counts(store, clock),
        campaigns=book,
        publication=publication,
        scheduler=Scheduler(store, book, publication, clock, settings.scheduler),
        lifecycle=Lifecycle(store, book, clock),
        retention=Retention(store, book, files, clock, settings.retention.events),
        watch=Watch(publication),
        metrics=Metrics(sharing.numbers()),
        signer=signer,
    )
