"""What is no longer kept: events and books that are old, and whoever is to be forgotten.

Must never: delete what an open campaign may need, the account of somebody who may be counted again,
or anything of the ledger. Nothing here returns budget.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import delete, select

from adsbpc.campaign.erasure import Fate, erase_books, forget_in_books, has_books, is_over
from adsbpc.ledger.database import Database
from adsbpc.model.spec import CampaignSpec
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.removal import Doomed, remove_rows
from adsbpc.service.ingest.rows import SCHEMAS
from adsbpc.service.logs import log
from adsbpc.service.releases.campaigns import CampaignBook
from adsbpc.service.store import forgotten, inserts

_ASK = inserts(forgotten, lambda insert: insert.on_conflict_do_nothing())


@dataclass(frozen=True)
class Forgotten:
    """What became of somebody: `rows` of events that were removed, campaigns whose books were
    `erased` because they held the person, and those that `keep` them until they are over."""

    rows: int = 0
    erased: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


@dataclass
class Retention:
    """`keep_us` is how long events are kept; for ever if None."""

    store: Database
    book: CampaignBook
    files: EventFiles
    clock: Clock
    keep_us: int | None
    # The oldest moment in each file.
    _known: dict[str, int] = field(default_factory=dict)

    def apply(self) -> None:
        """Delete what is old, and finish forgetting whoever could not be forgotten at once."""
        with self.store.reading() as connection:
            waiting = connection.execute(select(forgotten.c.user_id)).scalars().all()
        for user in waiting:
            self._forget(user)
        before_us = None if self.keep_us is None else now_us(self.clock) - self.keep_us
        self._erase_books(before_us)
        if before_us is not None:
            self._remove_events(before_us)

    def forget(self, user: str) -> Forgotten:
        """Remove a person's events, and the books of closed campaigns that name them. The account
        in books of open ones stays until these are over: without it the person would have a new
        budget. What is left to do is done then, also after a crash."""
        with self.store.writing("forgotten") as connection:
            asked = {"user_id": user, "asked_us": now_us(self.clock)}
            connection.execute(_ASK[connection.dialect.name], asked)
        return self._forget(user)

    def _forget(self, user: str) -> Forgotten:
        def theirs(table: pa.Table) -> pa.Array:
            return pc.equal(table["user_id"], user)

        def names_them(file: Path) -> bool:
            # Gone if whoever wrote it has discarded it meanwhile.
            with suppress(FileNotFoundError):
                users = pq.read_table(file, columns=["user_id"])
                return bool(pc.any(theirs(users)).as_py())
            return False

        rows = 0
        for source in SCHEMAS:
            rows += remove_rows(self.files, self.store, source, theirs)
            self.files.discard_unlisted(source, names_them)
        self.files.delete_retired()
        fates: dict[Fate, list[str]] = {"absent": [], "erased": [], "kept": []}
        for registered in self.book.all():
            fates[forget_in_books(registered.spec, user)].append(registered.name)
        if not fates["kept"]:
            with self.store.writing("forgotten") as connection:
                connection.execute(delete(forgotten).where(forgotten.c.user_id == user))
        return Forgotten(rows, tuple(fates["erased"]), tuple(fates["kept"]))

    def _erase_books(self, before_us: int | None) -> None:
        """Of campaigns that were over by then, and what a crash left of others."""
        for registered in self.book.all():
            spec, last = registered.spec, self.book.last_slot(registered)
            if not is_over(spec) or not has_books(spec):
                continue
            record = self.book.ledger.campaign(registered.scope, registered.name)
            begun = record is not None and record.erased
            if begun or (before_us is not None and spec.settled_at(last) < before_us):
                erase_books(spec)
                log("books erased", campaign=registered.campaign_id)

    def _remove_events(self, before_us: int) -> None:
        needed: dict[str, int] = {}
        for registered in self.book.all():
            if not is_over(registered.spec):
                first = needed_from(registered.spec, self.book.last_slot(registered))
                needed[registered.advertiser] = min(
                    first, needed.get(registered.advertiser, before_us)
                )
        old = _older_than(before_us, needed)
        for source in SCHEMAS:
            names = self.files.listed(source)
            young = {name for name in names if self._earliest(name) >= before_us}
            removed = remove_rows(self.files, self.store, source, old, young)
            if removed:
                log("events removed", source=source, rows=removed)

    def _earliest(self, name: str) -> int:
        """The oldest moment in a file, which never changes."""
        if name not in self._known:
            try:
                table = pq.read_table(self.files.folder / name, columns=["timestamp"])
            except FileNotFoundError:
                return 0
            self._known[name] = pc.min(table["timestamp"].cast(pa.int64())).as_py() or 0
        return self._known[name]


def needed_from(spec: CampaignSpec, released: int) -> int:
    """The oldest moment of an event that a campaign may still need, after so many slots."""
    fit = spec.attribution.fit
    fits_later = fit is not None and fit.slots is not None and released < fit.slots
    # Squares are of everything that somebody has done since the campaign began.
    needs_all = fits_later or spec.looks_back
    starts_at = spec.grid.boundaries[0 if needs_all else released]
    events = spec.events
    return starts_at - events.wait - events.max_lateness - spec.attribution.longest_lookback


def _older_than(before_us: int, needed: dict[str, int]) -> Doomed:
    def old(table: pa.Table) -> pa.Array:
        happened, advertisers = table["timestamp"].cast(pa.int64()), table["advertiser_id"]
        found = pc.less(happened, before_us)
        for advertiser, first in needed.items():
            others = pc.not_equal(advertisers, advertiser)
            found = pc.and_(found, pc.or_(others, pc.less(happened, first)))
        return found

    return old
