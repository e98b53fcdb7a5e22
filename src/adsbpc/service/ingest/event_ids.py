"""The event ids that each sender has used: a list of its own for each, the same on every server.

Ids are held as marks: hashes of 64 bits under a key that the service's database keeps. Without the
key, whoever chooses ids could choose two that are taken for one.

Must never: let it depend on rows of anybody else, on how long work takes, or on which server is
asked, whether an id counts as used.

A sender's ids stand in generations. One ends when it has half a million ids or is 30 days old; it
counts until the next one ends too, and at most for as long again. So an id is remembered for 30
days at least, or until its sender has used half a million others.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import shake_256
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

from adsbpc.events.schema import LONGEST_TEXT
from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.service.ingest.event_files import LOCK
from adsbpc.service.ingest.rows import Source
from adsbpc.service.store import event_ids, inserts, salts

Marks = npt.NDArray[np.uint64]

_NAME = "event ids"
# As they are stored, on whatever machine.
STORED_MARKS: Final = np.dtype("<u8")
_WORD: Final = np.dtype("<u4")
# Two ids of characters of up to four bytes, and what stands between them.
_MOST_WORDS: Final = (2 * 4 * LONGEST_TEXT + 1) // _WORD.itemsize + 1
_AT_ONCE: Final = 8_192
_HALF: Final = np.uint64(32)
_KEEP_SALT: Final = inserts(salts, lambda insert: insert.on_conflict_do_nothing())


class Marker:
    """Marks by a salt. Two different pairs of ids have the same mark with a chance of 2**-64,
    whoever chose them without knowing the salt.

    MULTILINEAR of Lemire and Kaser, "Strongly universal string hashing is fast" (2014), twice:
    the upper 32 bits of k0 + k1 w1 + k2 w2 + ... modulo 2**64, over words of 32 bits. Words of
    zeros add nothing, so that texts of different lengths may be padded with them.
    """

    def __init__(self, salt: str) -> None:
        content = shake_256(salt.encode()).digest(2 * STORED_MARKS.itemsize * (_MOST_WORDS + 1))
        keys = np.frombuffer(content, STORED_MARKS).reshape(-1, 2)
        self._first, self._others = keys[0], keys[1:]

    def marks(self, table: pa.Table) -> tuple[Marks, npt.NDArray[np.intp]]:
        """Of the rows that have an event id, and the places of these rows."""
        # No id holds a NUL, and none is empty: no two pairs of ids give one text.
        texts = pc.binary_join_element_wise(table["user_id"], table["event_id"], "\0")
        places = np.arange(len(texts))
        if texts.null_count:
            places = np.flatnonzero(texts.is_valid())
            texts = texts.drop_null()
        parts = [
            self._marks(texts.slice(first, _AT_ONCE).cast(pa.binary()))
            for first in range(0, len(texts), _AT_ONCE)
        ]
        return np.concatenate([np.empty(0, np.uint64), *parts]), places

    def _marks(self, texts: pa.ChunkedArray) -> Marks:
        width = -(-pc.max(pc.binary_length(texts)).as_py() // _WORD.itemsize)
        padded = np.array(texts.to_pylist(), f"S{width * _WORD.itemsize}")
        words = padded.view(_WORD).reshape(-1, width).astype(np.uint64)
        sums = (words @ self._others[:width] + self._first) >> _HALF
        marks: Marks = (sums[:, 0] << _HALF) | sums[:, 1]
        return marks


def marker_of(store: Database) -> Marker:
    """The same on every server of this database, and after every start."""
    wanted = select(salts.c.salt).where(salts.c.name == _NAME)
    with store.reading() as connection:
        salt = connection.execute(wanted).scalar_one_or_none()
    if salt is None:
        with store.writing("salts") as connection:
            made = {"name": _NAME, "salt": secrets.token_hex(32)}
            connection.execute(_KEEP_SALT[connection.dialect.name], made)
            # Another server may have been faster.
            salt = connection.execute(wanted).scalar_one()
    return Marker(salt)


# Who sends, and which source.
Sender = tuple[str, Source]
Places = npt.NDArray[np.bool_]

REMEMBERED_US: Final = 30 * MICROSECONDS_PER_DAY
_MOST_IDS = 500_000
# A part is merged with the one before it once it has this share of it: few parts to search, and
# an id is moved a few times only.
_TIMES_LARGER = 16
# In memory, of all senders together: those of who sent least lately are read again when needed.
_MOST_HELD = 16_000_000
# Rows of the table that are merged: at least so many of them, into one of so many ids.
_WORTH_MERGING, _LARGEST_ROW = 8, 65_536

_COLUMNS: Final = event_ids.c
# Made once: that takes longer than to run them.
_ADD: Final = insert(event_ids)
_NEWER: Final = (
    select(_COLUMNS.position_us, _COLUMNS.began_us, _COLUMNS.total, _COLUMNS.marks)
    .where(
        _COLUMNS.owner == bindparam("owner"),
        _COLUMNS.source == bindparam("source"),
        _COLUMNS.position_us > bindparam("position_us"),
    )
    .order_by(_COLUMNS.position_us)
)


@dataclass(frozen=True, eq=False)
class Generation:
    """`total` ids that were used since a moment, in parts that are each sorted."""

    began_us: int
    total: int = 0
    parts: tuple[Marks, ...] = ()

    @property
    def room(self) -> int:
        return _MOST_IDS - self.total

    def plus(self, marks: Marks, total: int) -> Generation:
        parts = [*self.parts, marks]
        while len(parts) > 1 and parts[-2].size < _TIMES_LARGER * parts[-1].size:
            last = np.concatenate([parts.pop(), parts.pop()])
            # Two sorted runs, which this kind merges.
            parts.append(np.sort(last, kind="stable"))
        return replace(self, total=total, parts=tuple(parts))

    def holds(self, marks: Marks) -> Places:
        found = np.zeros(marks.size, np.bool_)
        for part in self.parts:
            places = np.searchsorted(part, marks)
            places[places == part.size] = 0
            found |= part[places] == marks
        return found


@dataclass(frozen=True, eq=False)
class Used:
    """What one sender has used, up to a row of the table."""

    position_us: int = 0
    generations: tuple[Generation, ...] = ()

    @property
    def newest(self) -> Generation:
        return self.generations[-1]

    @cached_property
    def size(self) -> int:
        return sum(part.size for each in self.generations for part in each.parts)

    def at(self, moment_us: int) -> Used:
        """What counts at a moment, with the generation that takes what is used then."""
        counting = [
            each for each in self.generations if moment_us < each.began_us + 2 * REMEMBERED_US
        ]
        if not counting:
            counting = [Generation(moment_us)]
        newest = counting[-1]
        if newest.room <= 0 or moment_us >= newest.began_us + REMEMBERED_US:
            counting.append(Generation(max(moment_us, newest.began_us + 1)))
        return replace(self, generations=tuple(counting[-2:]))

    def plus(self, marks: Marks) -> Used:
        newest = self.newest.plus(marks, self.newest.total + marks.size)
        return replace(self, generations=(*self.generations[:-1], newest))

    def holds(self, marks: Marks) -> Places:
        found = np.zeros(marks.size, np.bool_)
        for each in self.generations:
            found |= each.holds(marks)
        return found

    def read(self, position_us: int, began_us: int, total: int, content: bytes) -> Used:
        """After a row of the table. A row that was merged meanwhile may repeat what is known."""
        marks = np.frombuffer(content, STORED_MARKS)
        known = [*self.generations]
        if not known or known[-1].began_us != began_us:
            known.append(Generation(began_us))
        known[-1] = known[-1].plus(marks, total)
        return Used(position_us, tuple(known[-2:]))


class Verdicts:
    """Which rows of batches repeat an id, and what the others add to what is used."""

    def __init__(self, used: Mapping[Sender, Used], moment_us: int) -> None:
        self.used, self._moment_us = dict(used), moment_us
        self._given: list[tuple[Sender, Sequence[Marks], list[Places]]] = []
        # What is added to each generation.
        self._added: dict[Sender, dict[int, Generation]] = {}

    def give(self, sender: Sender, batches: Sequence[Marks]) -> list[Places]:
        """For each batch the rows whose id was used before. The other ids are used from now on."""
        repeated: list[Places] = []
        while len(repeated) < len(batches):
            used = self.used[sender].at(self._moment_us)
            # Together as long as no generation ends in between: how many batches are stored at
            # once must not matter.
            room, some = used.newest.room, batches[len(repeated) :]
            ends = np.cumsum([marks.size for marks in some])
            count = 1 + int(np.searchsorted(ends[:-1], room))
            together = self._give(sender, used, np.concatenate(some[:count]))
            repeated += np.split(together, ends[: count - 1])
        self._given.append((sender, batches, repeated))
        return repeated

    def _give(self, sender: Sender, used: Used, marks: Marks) -> Places:
        fresh = np.sort(marks)
        repeated = np.zeros(marks.size, np.bool_)
        if (fresh[1:] == fresh[:-1]).any() or used.holds(fresh).any():
            first = np.unique(marks, return_index=True)[1]
            repeated = used.holds(marks) | ~np.isin(np.arange(marks.size), first)
            fresh = np.sort(marks[~repeated])
        if fresh.size:
            used = self.used[sender] = used.plus(fresh)
            added, began_us = self._added.setdefault(sender, {}), used.newest.began_us
            parts = added[began_us].parts if began_us in added else ()
            added[began_us] = Generation(began_us, used.newest.total, (*parts, fresh))
        return repeated

    def given_after(self, used: Mapping[Sender, Used]) -> Verdicts | None:
        """The same verdicts, if this was used before them; None if they would be others."""
        again = Verdicts(used, self._moment_us)
        for sender, batches, repeated in self._given:
            found = again.give(sender, batches)
            if not all(map(np.array_equal, found, repeated)):
                return None
        return again

    def record(self, connection: Connection) -> None:
        """Write what was added, in the caller's transaction, which holds LOCK and has followed
        all that was written before."""
        rows = []
        for (owner, source), added in self._added.items():
            used = self.used[owner, source]
            position_us = max(used.position_us, self._moment_us - 1)
            for each in added.values():
                position_us += 1
                rows.append(
                    {
                        "owner": owner,
                        "source": source,
                        "position_us": position_us,
                        "began_us": each.began_us,
                        "total": each.total,
                        "marks": _packed(each.parts),
                    }
                )
            self.used[owner, source] = replace(used, position_us=position_us)
        if rows:
            connection.execute(_ADD, rows)


class EventIds:
    """What this process has read of the table, and the key of its marks."""

    def __init__(self, store: Database) -> None:
        self._store = store
        # Who sent least lately stands first.
        self._held: OrderedDict[Sender, Used] = OrderedDict()

    @cached_property
    def marker(self) -> Marker:
        return marker_of(self._store)

    def held(self, senders: Iterable[Sender]) -> dict[Sender, Used]:
        """As far as it was read: other servers may have added to it."""
        wanted = set(senders)
        self._make_room(wanted)
        unknown = wanted - self._held.keys()
        if unknown:
            with self._store.reading() as connection:
                self.follow(connection, unknown)
        return {sender: self._held[sender] for sender in wanted}

    def follow(self, connection: Connection, senders: Iterable[Sender]) -> dict[Sender, Used]:
        """With everything that others have added by now."""
        for sender in senders:
            used = self._held.get(sender, Used())
            wanted = {"owner": sender[0], "source": sender[1], "position_us": used.position_us}
            for row in connection.execute(_NEWER, wanted):
                used = used.read(*row)
            self._held[sender] = used
        return {sender: self._held[sender] for sender in senders}

    def keep(self, used: Mapping[Sender, Used]) -> None:
        """What a transaction has left, now that it is committed."""
        for sender, each in used.items():
            self._held[sender] = each
            self._held.move_to_end(sender)

    def _make_room(self, wanted: set[Sender]) -> None:
        size = sum(used.size for used in self._held.values())
        for sender in [each for each in self._held if each not in wanted]:
            if size <= _MOST_HELD:
                return
            size -= self._held.pop(sender).size


def tidy_event_ids(store: Database, moment_us: int) -> None:
    """Forget what counts no more, and merge rows, so that a server that starts reads few."""
    with store.reading() as connection:
        senders = connection.execute(select(_COLUMNS.owner, _COLUMNS.source).distinct()).all()
    for owner, source in senders:
        # One at a time: batches are stored in between.
        with store.writing(LOCK) as connection:
            _tidy(connection, owner, source, moment_us)


def _tidy(connection: Connection, owner: str, source: str, moment_us: int) -> None:
    own = (_COLUMNS.owner == owner) & (_COLUMNS.source == source)
    described = select(
        _COLUMNS.position_us, _COLUMNS.began_us, func.length(_COLUMNS.marks).label("size")
    )
    rows = connection.execute(described.where(own).order_by(_COLUMNS.position_us)).all()
    began = sorted({row.began_us for row in rows})
    counting = [each for each in began[-2:] if moment_us < each + 2 * REMEMBERED_US]
    if counting != began:
        connection.execute(delete(event_ids).where(own, _COLUMNS.began_us.not_in(counting)))
    for began_us in counting:
        sizes = {row.position_us: row.size for row in rows if row.began_us == began_us}
        for first, last in _runs(sizes):
            _merge(connection, own & _COLUMNS.position_us.between(first, last))


def _runs(sizes: Mapping[int, int]) -> list[tuple[int, int]]:
    """The first and the last position of rows that are worth merging."""
    runs: list[list[int]] = [[]]
    room = _LARGEST_ROW * STORED_MARKS.itemsize
    left = room
    for position_us, size in sizes.items():
        if size > left:
            runs.append([])
            left = room
        runs[-1].append(position_us)
        left -= size
    return [(run[0], run[-1]) for run in runs if len(run) >= _WORTH_MERGING]


def _merge(connection: Connection, chosen: ColumnElement[bool]) -> None:
    """Rows that follow each other into the last: who has read some of them reads that one."""
    rows = connection.execute(select(event_ids).where(chosen).order_by(_COLUMNS.position_us)).all()
    parts = [np.frombuffer(row.marks, STORED_MARKS) for row in rows]
    connection.execute(delete(event_ids).where(chosen))
    connection.execute(_ADD, {**rows[-1]._mapping, "marks": _packed(parts)})


def _packed(parts: Sequence[Marks]) -> bytes:
    return np.sort(np.concatenate(parts)).astype(STORED_MARKS).tobytes()
