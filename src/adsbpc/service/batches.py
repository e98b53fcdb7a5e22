"""Batches and their answers, and what one transaction stores of them.

Must never: take a row for a repeated one of another sender or user.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field
from sqlalchemy import Connection, delete, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from adsbpc.events.schema import Reason
from adsbpc.ledger.database import Database
from adsbpc.service.counts import add_counts
from adsbpc.service.event_files import LOCK
from adsbpc.service.rows import MOMENT, Checked, Source, counted_reason
from adsbpc.service.store import batches as stored_batches

# Whose batch it is, of which source, and its idempotency key.
BatchId = tuple[str, Source, str]


# Statements are made once: that takes longer than to run them. They tell how many rows were new.
_STORE: Final = {
    name: insert(stored_batches).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    for name, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
}


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
    repeated: bool = Field(
        default=False, description="The batch was stored before: this is the answer it got then."
    )


@dataclass(frozen=True)
class Settled:
    """The answer of a stored batch, and the hash of the body that got it."""

    body_hash: str
    answer: Answer


class Remembered:
    """The newest event ids that were stored, at least `least` of them, as salted hashes of 64 bits:
    one in 10**13 rows is taken for a repeated one by chance."""

    def __init__(self, least: int) -> None:
        self._least = least
        # Two generations: the older is dropped whole when the newer is large enough.
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def overlaps(self, marks: set[int]) -> bool:
        return not (self._newer.isdisjoint(marks) and self._older.isdisjoint(marks))

    def __contains__(self, mark: int) -> bool:
        return mark in self._newer or mark in self._older

    def add(self, marks: set[int]) -> None:
        """Marks of stored rows."""
        self._newer |= marks
        if len(self._newer) >= self._least:
            self._older, self._newer = self._newer, set()


class Plan:
    """What one transaction stores: rows that arrive at one moment, answers and counts."""

    def __init__(self, moment_us: int, remembered: Remembered) -> None:
        self.moment_us = moment_us
        self.settled: dict[BatchId, Settled] = {}
        self.marks: set[int] = set()
        self._remembered = remembered
        self._tables: dict[Source, list[pa.Table]] = {}
        self._numbers: Counter[tuple[str, str, str]] = Counter()

    def add(self, batch: Batch) -> None:
        checked, table = batch.checked, batch.checked.table
        verdicts = [
            RowVerdict(row=row, verdict="quarantined", reason=reason)
            for row, reason in checked.quarantined.items()
        ]
        repeated = self._repeated(batch)
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
        answer = Answer(
            batch_key=batch.batch_key,
            rows=checked.rows,
            accepted=table.num_rows,
            duplicates=len(repeated),
            quarantined=len(checked.quarantined),
            verdicts=verdicts,
        )
        self.settled[batch.id] = Settled(batch.body_hash, answer)
        self._count(batch, answer)

    def _repeated(self, batch: Batch) -> set[int]:
        """Places among the good rows whose event id this sender has sent before for that user."""
        table = batch.checked.table
        # Neither senders nor ids hold a NUL: no two different rows give one text.
        sender = f"{batch.source}\0{batch.owner}"
        texts = pc.binary_join_element_wise(sender, table["user_id"], table["event_id"], "\0")
        marks = [None if text is None else hash(text) for text in texts.to_pylist()]
        own = {mark for mark in marks if mark is not None}
        if (
            len(own) == len(marks) - texts.null_count
            and own.isdisjoint(self.marks)
            and not self._remembered.overlaps(own)
        ):
            self.marks |= own
            return set()
        places = set()
        for place, mark in enumerate(marks):
            if mark is None:
                continue
            if mark in self.marks or mark in self._remembered:
                places.add(place)
            else:
                self.marks.add(mark)
        return places

    def _count(self, batch: Batch, answer: Answer) -> None:
        numbers = Counter({"": 1, "accepted": answer.accepted, "duplicate": answer.duplicates})
        numbers.update(map(counted_reason, batch.checked.quarantined.values()))
        for verdict, number in numbers.items():
            if number:
                self._numbers[batch.source, batch.owner, verdict] += number

    def tables(self) -> dict[Source, pa.Table]:
        """The rows of each source, conversions with their arrival."""
        found = {source: pa.concat_tables(tables) for source, tables in self._tables.items()}
        if "conversions" in found:
            conversions = found["conversions"]
            # A sender's clock may be ahead of ours; nothing arrives before it happens.
            arrived = pc.max_element_wise(
                conversions["timestamp"].cast(pa.int64()), pa.scalar(self.moment_us, pa.int64())
            ).cast(MOMENT)
            found["conversions"] = conversions.append_column("arrived_at", arrived)
        return found

    def record(self, connection: Connection) -> bool:
        """Write answers and counts; False, with nothing to keep, if a batch was stored before."""
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
        return True


def settled_before(connection: Connection, batches: list[Batch]) -> dict[BatchId, Settled]:
    """Those that are stored, by this server or another."""
    columns = stored_batches.c
    found = connection.execute(
        select(
            columns.owner, columns.source, columns.batch_key, columns.body_hash, columns.answer
        ).where(
            tuple_(columns.owner, columns.source, columns.batch_key).in_(
                [batch.id for batch in batches]
            )
        )
    )
    return {
        (owner, source, batch_key): Settled(
            body_hash, _unpacked(answer).model_copy(update={"repeated": True})
        )
        for owner, source, batch_key, body_hash, answer in found
    }


def forget_batches(store: Database, before_us: int) -> None:
    """Answers that nobody asks for any more: a batch of then that is sent again counts again."""
    with store.writing(LOCK) as connection:
        connection.execute(delete(stored_batches).where(stored_batches.c.arrived_us < before_us))


def _packed(answer: Answer) -> str:
    """A batch of bad rows is answered with much more than it is, and over and over the same."""
    return b64encode(zlib.compress(answer.model_dump_json().encode(), level=1)).decode()


def _unpacked(text: str) -> Answer:
    return Answer.model_validate_json(zlib.decompress(b64decode(text)))
