"""Batches, their answers and counts, and what one transaction stores of them.

Must never: take a row for a repeated one of another sender or user, let a sender's answers depend
on what others send, or show counts to anybody but the operator.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field
from sqlalchemy import Connection, Executable, delete, select, tuple_

from adsbpc.events.schema import Reason
from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.ingest.event_files import LOCK
from adsbpc.service.ingest.event_ids import REMEMBERED_US, Marker, Sender, Used, Verdicts
from adsbpc.service.ingest.rows import ARRIVED_AT, MOMENT, Checked, Source, counted_reason
from adsbpc.service.store import batches as stored_batches
from adsbpc.service.store import counts, inserts

_ADD: Final = inserts(
    counts,
    lambda insert: insert.on_conflict_do_update(
        index_elements=list(counts.primary_key),
        set_={"number": counts.c.number + insert.excluded.number},
    ),
)


MOST_ADVERTISERS: Final = 20
# Accepted rows that came when conversions they led to may have been released, and others that came
# when impressions of their slot may have been counted.
AFTER_RELEASE: Final = "after release"
AFTER_COUNT: Final = "after count"
# Of accepted impressions that arrive at a moment, how many came after each.
LateCounts = Callable[[pa.Table, int], tuple[int, int]]


@dataclass(frozen=True)
class HourlyCount:
    """`verdict` is "accepted", "duplicate" or the reason of a quarantine; of an empty one `number`
    is that of batches, of AFTER_RELEASE and AFTER_COUNT that of accepted rows that came late."""

    hour_us: int
    source: str
    owner: str
    verdict: str
    number: int

    @property
    def kind(self) -> str:
        """Which of a few kinds a verdict is of: every reason is one of quarantine."""
        return _KINDS.get(self.verdict, "quarantined")


_KINDS: Final = {
    "": "batches",
    "accepted": "accepted",
    "duplicate": "duplicate",
    AFTER_RELEASE: "after_release",
    AFTER_COUNT: "after_count",
}


class Counts:
    def __init__(self, store: Database, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def by_hour(self, hours: int) -> list[HourlyCount]:
        """The newest hours, the present one among them, oldest first."""
        present = now_us(self._clock) // MICROSECONDS_PER_HOUR
        wanted = (
            select(counts)
            .where(counts.c.hour_us > (present - hours) * MICROSECONDS_PER_HOUR)
            .order_by(counts.c.hour_us, counts.c.source, counts.c.owner, counts.c.verdict)
        )
        with self._store.reading() as connection:
            return [HourlyCount(*row) for row in connection.execute(wanted)]


def add_counts(
    connection: Connection, moment_us: int, numbers: Mapping[tuple[str, str, str], int]
) -> None:
    """Add numbers by (source, owner, verdict) to the hour of a moment, in the caller's
    transaction."""
    hour_us = moment_us // MICROSECONDS_PER_HOUR * MICROSECONDS_PER_HOUR
    rows = [HourlyCount(hour_us, *labels, number) for labels, number in sorted(numbers.items())]
    connection.execute(_ADD[connection.dialect.name], list(map(asdict, rows)))


# Whose batch it is, of which source, and its idempotency key.
BatchId = tuple[str, Source, str]


def _stored(insert: Any) -> Executable:
    """One that was forgotten by the moment of the new one makes room for it, whether it was deleted
    yet or not."""
    new = insert.excluded
    stored: Executable = insert.on_conflict_do_update(
        index_elements=list(stored_batches.primary_key),
        set_={name: new[name] for name in ("body_hash", "answer", "arrived_us")},
        where=stored_batches.c.arrived_us < new.arrived_us - REMEMBERED_US,
    ).execution_options(preserve_rowcount=True)
    return stored


# It tells how many rows were new.
_STORE: Final = inserts(stored_batches, _stored)


@dataclass(frozen=True)
class Batch:
    """`owner` is `Principal.owner`; `body_hash` tells another body under the same key."""

    owner: str
    source: Source
    batch_key: str
    body_hash: str
    checked: Checked

    @property
    def id(self) -> BatchId:
        return self.owner, self.source, self.batch_key

    @property
    def sender(self) -> Sender:
        return self.owner, self.source


class RowVerdict(BaseModel):
    """Of a row that was not stored."""

    row: int = Field(ge=0, description="The row's number in the batch, from 0.")
    verdict: Literal["duplicate", "quarantined"]
    reason: str


class Answer(BaseModel):
    """What became of a batch. Rows without a verdict were accepted: they are on the disk."""

    batch_key: str
    rows: int = Field(ge=0)
    accepted: int = Field(ge=0)
    duplicates: int = Field(ge=0)
    quarantined: int = Field(ge=0)
    verdicts: list[RowVerdict]
    after_release: int = Field(
        default=0,
        ge=0,
        description="Accepted impressions that arrived so long after they happened that "
        "conversions they led to may have been released without them.",
    )
    after_count: int = Field(
        default=0,
        ge=0,
        description="Other accepted impressions that arrived after those of their slot may have "
        "been counted: conversions are credited to them, but a campaign's impressions, clicks and "
        "reach may lack them.",
    )
    last_event: datetime | None = Field(
        default=None, description="The newest moment of an accepted row."
    )
    advertisers: dict[str, int] = Field(
        default={},
        description=f"Accepted impressions by advertiser, of the {MOST_ADVERTISERS} with most.",
    )
    repeated: bool = Field(
        default=False, description="The batch was stored before: this is the answer it got then."
    )


@dataclass(frozen=True)
class Settled:
    """The answer of a stored batch, and the hash of the body that got it."""

    body_hash: str
    answer: Answer


class StoragePlan:
    """What one transaction stores: rows that arrive at one moment, answers and counts. `used` is
    what the senders have used before; `late_counts` tells which impressions came late."""

    def __init__(
        self, batches: Collection[Batch], moment_us: int, used: Mapping[Sender, Used],
        marker: Marker, late_counts: LateCounts,
    ) -> None:  # fmt: skip
        self.moment_us, self._late_counts = moment_us, late_counts
        self.settled: dict[BatchId, Settled] = {}
        self._used = used
        self._verdicts = Verdicts(used, moment_us)
        self._tables: dict[Source, list[pa.Table]] = {}
        self._numbers: Counter[tuple[str, str, str]] = Counter()
        for sender in used:
            own = [batch for batch in batches if batch.sender == sender]
            marked = [marker.marks(batch.checked.table) for batch in own]
            repeated = self._verdicts.give(sender, [marks for marks, _ in marked])
            for batch, (_, places), each in zip(own, marked, repeated, strict=True):
                self._add(batch, set(places[each].tolist()))

    def _add(self, batch: Batch, repeated: set[int]) -> None:
        """`repeated` are places among the good rows."""
        checked, table = batch.checked, batch.checked.table
        verdicts = [
            RowVerdict(row=row, verdict="quarantined", reason=reason)
            for row, reason in checked.quarantined.items()
        ]
        if repeated:
            good = [row for row in range(checked.rows) if row not in checked.quarantined]
            verdicts += [
                RowVerdict(row=good[place], verdict="duplicate", reason=Reason.REPEATED_ID)
                for place in repeated
            ]
            verdicts.sort(key=lambda verdict: verdict.row)
            kept = [place for place in range(table.num_rows) if place not in repeated]
            table = table.take(pa.array(kept, pa.int64()))
        if table.num_rows:
            self._tables.setdefault(batch.source, []).append(table)
        # Conversions count when they arrive, and are never late.
        late = self._late_counts(table, self.moment_us) if batch.source == "impressions" else (0, 0)
        answer = Answer(
            batch_key=batch.batch_key,
            rows=checked.rows,
            accepted=table.num_rows,
            duplicates=len(repeated),
            quarantined=len(checked.quarantined),
            verdicts=verdicts,
            after_release=late[0],
            after_count=late[1],
            last_event=pc.max(table["timestamp"]).as_py(),
            advertisers=_by_advertiser(table) if batch.source == "impressions" else {},
        )
        self.settled[batch.id] = Settled(batch.body_hash, answer)
        self._count(batch, answer)

    def _count(self, batch: Batch, answer: Answer) -> None:
        numbers = Counter({"": 1, "accepted": answer.accepted, "duplicate": answer.duplicates})
        numbers[AFTER_RELEASE] = answer.after_release
        numbers[AFTER_COUNT] = answer.after_count
        numbers.update(map(counted_reason, batch.checked.quarantined.values()))
        for verdict, number in numbers.items():
            if number:
                self._numbers[batch.source, batch.owner, verdict] += number

    def tables(self) -> dict[Source, pa.Table]:
        """The rows of each source, with their arrival."""
        return {
            source: self._arrived(pa.concat_tables(tables))
            for source, tables in self._tables.items()
        }

    def _arrived(self, rows: pa.Table) -> pa.Table:
        # A sender's clock may be ahead of ours; nothing arrives before it happens.
        arrived = pc.max_element_wise(
            rows["timestamp"].cast(pa.int64()), pa.scalar(self.moment_us, pa.int64())
        )
        return rows.append_column(ARRIVED_AT, arrived.cast(MOMENT))

    def record(self, connection: Connection, used: Mapping[Sender, Used]) -> bool:
        """Write answers, counts and event ids, in a transaction that holds LOCK; `used` is what
        stands there by now. False, with nothing to keep, if that makes an answer another one, or
        if a batch was stored before."""
        if any(used[sender] is not known for sender, known in self._used.items()):
            verdicts = self._verdicts.given_after(used)
            if verdicts is None:
                return False
            self._verdicts = verdicts
        written = connection.execute(
            _STORE[connection.dialect.name],
            [
                {
                    "owner": owner,
                    "source": source,
                    "batch_key": batch_key,
                    "body_hash": settled.body_hash,
                    "answer": _packed(settled.answer),
                    "arrived_us": self.moment_us,
                }
                for (owner, source, batch_key), settled in self.settled.items()
            ],
        )
        if written.rowcount != len(self.settled):
            return False
        add_counts(connection, self.moment_us, self._numbers)
        self._verdicts.record(connection)
        return True

    @property
    def used(self) -> Mapping[Sender, Used]:
        """By the senders, once this is recorded."""
        return self._verdicts.used


def _by_advertiser(table: pa.Table) -> dict[str, int]:
    counted = {
        each["values"]: each["counts"]
        for each in pc.value_counts(table["advertiser_id"]).to_pylist()
    }
    most = sorted(counted, key=lambda name: (-counted[name], name))[:MOST_ADVERTISERS]
    return {name: counted[name] for name in most}


def settled_before(
    connection: Connection, batches: Collection[Batch], moment_us: int
) -> dict[BatchId, Settled]:
    """Those that are stored and not forgotten at a moment, by this server or another."""
    columns = stored_batches.c
    key = (columns.owner, columns.source, columns.batch_key)
    found = connection.execute(
        select(*key, columns.body_hash, columns.answer).where(
            tuple_(*key).in_([batch.id for batch in batches]),
            columns.arrived_us >= moment_us - REMEMBERED_US,
        )
    )
    return {
        (owner, source, batch_key): Settled(
            body_hash, unpacked_answer(answer).model_copy(update={"repeated": True})
        )
        for owner, source, batch_key, body_hash, answer in found
    }


def forget_batches(store: Database, moment_us: int) -> None:
    """Delete answers that are forgotten: a batch of then that is sent again counts again."""
    old = stored_batches.c.arrived_us < moment_us - REMEMBERED_US
    with store.writing(LOCK) as connection:
        connection.execute(delete(stored_batches).where(old))


def _packed(answer: Answer) -> str:
    """A batch of bad rows is answered with much more than it is, and over and over the same."""
    return b64encode(zlib.compress(answer.model_dump_json().encode(), level=1)).decode()


def unpacked_answer(text: str) -> Answer:
    return Answer.model_validate_json(zlib.decompress(b64decode(text)))
