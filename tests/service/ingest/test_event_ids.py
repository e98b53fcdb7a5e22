"""An event id counts once for a sender and a user, as long as it is remembered; and that follows
from the sender's own rows and the clock alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from adsbpc.ledger.database import Database
from adsbpc.service.clock import now_us
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest import event_ids
from adsbpc.service.ingest.batches import forget_batches
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.event_ids import Marker, tidy_event_ids
from adsbpc.service.ingest.intake import Answer, Batch, Intake
from adsbpc.service.ingest.rows import Source
from adsbpc.service.store import event_ids as stored_ids
from adsbpc.service.store import open_store
from tests.effort import examples, first
from tests.service.clocks import SetClock
from tests.service.pushed import (
    CONVERSION,
    IMPRESSION,
    PATIENT,
    Opener,
    add_one,
    batch,
    files_in,
    ids,
    numbered,
)

DAY = 86_400


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({}, 0),
        ({"user_id": "u2"}, 1),
        ({"event_id": "e2"}, 1),
        ({"advertiser_id": "Ad-2"}, 0),
        ({"event_id": None}, 1),
        # A NUL between the two could be in either; it is in neither.
        ({"user_id": "u1\\0", "event_id": "e1"}, 1),
    ],
)
def test_an_event_id_is_of_a_user(intake: Intake, change: dict[str, Any], accepted: int) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    assert add_one(intake, batch("l", [{**IMPRESSION, **change}])).accepted == accepted


def test_an_event_id_is_of_a_sender_and_a_source(intake: Intake) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    assert add_one(intake, batch("k", [IMPRESSION], owner="publisher:P-2")).accepted == 1
    sale = batch("l", [CONVERSION], "conversions", owner="publisher:P-1")
    assert add_one(intake, sale).accepted == 1


def test_rows_without_event_ids_are_never_repeated(intake: Intake, files: EventFiles) -> None:
    row = {name: value for name, value in IMPRESSION.items() if name != "event_id"}
    assert add_one(intake, batch("k", [row, row])).accepted == 2
    assert add_one(intake, batch("l", [row, IMPRESSION])).accepted == 2
    assert ids(files) == {None: 3, "e1": 1}


def test_ids_of_a_batch_that_failed_are_not_remembered(
    intake: Intake, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(EventFiles, "write", full)
        with pytest.raises(Problem, match="503 Not stored"):
            add_one(intake, batch("k", [IMPRESSION]))
    answer = add_one(intake, batch("k", [IMPRESSION]))
    assert (answer.accepted, answer.repeated) == (1, False)
    assert ids(files) == {"e1": 1}


# ---- it follows from nothing else --------------------------------------------------------------


@pytest.mark.parametrize("others", first(2, [10, 300, 0, 9, 11]))
def test_what_others_send_is_not_told(
    others: int, intake: Intake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sends a marker again and again must not learn how many rows others have stored."""
    monkeypatch.setattr(event_ids, "_MOST_IDS", 10)
    add_one(intake, batch("first", [IMPRESSION]))
    for number in range(others):
        other = numbered(number, 1)
        add_one(intake, batch(f"other-{number}", other, owner="publisher:P-2"))
    assert add_one(intake, batch("again", [IMPRESSION])).duplicates == 1


def test_every_server_says_the_same(
    opened: Opener, files: EventFiles, clock: SetClock, store: Database
) -> None:
    """One that was there, one that has heard of the sender before, one that is started later."""
    first, second = opened(), opened()
    add_one(first, batch("k", numbered(0, 5)))
    assert add_one(second, batch("l", numbered(4, 5))).duplicates == 1
    assert add_one(first, batch("m", numbered(8, 2))).duplicates == 1
    assert add_one(opened(), batch("n", numbered(0, 10))).duplicates == 10
    assert set(ids(files).values()) == {1}


def test_of_two_servers_that_race_one_accepts(opened: Opener, files: EventFiles) -> None:
    intakes = [opened(), opened()]

    async def race() -> list[tuple[Answer, Answer]]:
        calls = [
            asyncio.gather(
                *(
                    intake.add(batch(f"{server}-{number}", numbered(10 * number, 3)))
                    for server, intake in enumerate(intakes)
                )
            )
            for number in range(30)
        ]
        return list(await asyncio.gather(*calls))  # type: ignore[arg-type]

    for pair in asyncio.run(race()):
        assert sorted(answer.accepted for answer in pair) == [0, 3]
        assert sorted(answer.duplicates for answer in pair) == [0, 3]
    assert len(ids(files)) == 90
    assert set(ids(files).values()) == {1}


def test_who_was_overtaken_answers_what_is_true(
    opened: Opener, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server stores some of the same ids while a file is being written."""
    intake, faster = opened(start=False), opened()
    write, overtaken = EventFiles.write, iter([True])

    def slow(self: EventFiles, source: Source, table: pa.Table) -> str:
        if next(overtaken, False):
            add_one(faster, batch("f", numbered(1, 2)))
            add_one(faster, batch("f", numbered(50, 2), owner="publisher:P-2"))
        return write(self, source, table)

    monkeypatch.setattr(EventFiles, "write", slow)
    group = [
        batch("a", numbered(0, 4)),
        batch("b", numbered(60, 4), owner="publisher:P-2"),
        batch("c", numbered(1, 2), owner="publisher:P-3"),
    ]
    found = intake._stored({one.id: one for one in group})
    assert [found[one.id].answer.accepted for one in group] == [2, 4, 2]
    assert [each.row for each in found[group[0].id].answer.verdicts] == [1, 2]
    # What was written first is gone.
    assert {path.name for path in files.folder.iterdir()} == {
        path.name for path in files.live("impressions", "Ad-1")
    }


class World:
    """A database with servers on it; `_stored` is what one transaction does."""

    def __init__(self, folder: Path, servers: int) -> None:
        self.clock = SetClock()
        self.store = open_store("service.sqlite", folder)
        files = files_in(self.store, folder, self.clock)
        self.servers = [Intake(self.store, files, self.clock, 64, PATIENT) for _ in range(servers)]

    def store_together(self, server: int, batches: list[Batch]) -> list[Answer]:
        settled = self.servers[server]._stored({one.id: one for one in batches})
        return [settled[one.id].answer for one in batches]


@contextmanager
def small_limits(held: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(event_ids, "_MOST_IDS", 6)
        patched.setattr(event_ids, "_MOST_HELD", held)
        patched.setattr(event_ids, "_WORTH_MERGING", 2)
        patched.setattr(event_ids, "_LARGEST_ROW", 4)
        yield


@settings(max_examples=examples(8, 60), deadline=None)
@given(data=st.data())
def test_answers_follow_from_own_rows_and_the_clock(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In one world a sender is alone; in the other there are two servers, other senders, batches
    that are stored together, rows that are merged, and little memory."""
    alone = World(tmp_path_factory.mktemp("alone"), 1)
    busy = World(tmp_path_factory.mktemp("busy"), 2)
    rows_of = st.lists(st.sampled_from([None, *range(12)]), min_size=1, max_size=5)
    keys = (f"k{number}" for number in count())

    def drawn(owner: str) -> Batch:
        numbers = data.draw(rows_of)
        rows = [
            {**IMPRESSION, "event_id": None if number is None else f"e{number}"}
            for number in numbers
        ]
        return batch(next(keys), rows, owner=owner)

    with small_limits(held=data.draw(st.sampled_from([0, 10, 1_000]))):
        for _ in range(data.draw(st.integers(1, 8))):
            own = [drawn("publisher:P-1") for _ in range(data.draw(st.integers(0, 3)))]
            others = [drawn("publisher:P-2") for _ in range(data.draw(st.integers(0, 3)))]
            expected = [alone.store_together(0, [one])[0] for one in own]
            group = data.draw(st.permutations([*others, *own]))
            # Its own batches stay in their order.
            places = sorted(group.index(one) for one in own)
            for place, one in zip(places, own, strict=True):
                group[place] = one
            found = busy.store_together(data.draw(st.integers(0, 1)), group) if group else []
            assert [found[group.index(one)] for one in own] == expected
            if data.draw(st.booleans()):
                tidy_event_ids(busy.store, now_us(busy.clock))
            days = data.draw(st.sampled_from([0, 0, 0, 1, 29, 30, 31, 61]))
            for world in (alone, busy):
                world.clock.pass_seconds(days * DAY)
    for world in (alone, busy):
        world.store.close()


# ---- what is forgotten -------------------------------------------------------------------------


@pytest.mark.parametrize("tidied", [False, True])
def test_ids_are_forgotten_by_the_clock(
    tidied: bool, opened: Opener, store: Database, clock: SetClock
) -> None:
    """Not before 30 days, whether somebody has tidied or not."""

    def duplicates(key: str) -> int:
        if tidied:
            tidy_event_ids(store, now_us(clock))
            forget_batches(store, now_us(clock))
        return add_one(opened(), batch(key, [IMPRESSION])).duplicates

    assert duplicates("k") == 0
    clock.pass_seconds(30 * DAY - 1)
    assert duplicates("l") == 1
    assert add_one(opened(), batch("k", [IMPRESSION])).repeated
    # An id that is used meanwhile begins the next generation, and the first one still counts.
    clock.pass_seconds(2)
    assert add_one(opened(), batch("m", numbered(5, 1))).accepted == 1
    assert duplicates("n") == 1
    clock.pass_seconds(30 * DAY)
    assert duplicates("o") == 0
    # The batch of the first day was forgotten, too: it is stored again, without the repeated row.
    again = add_one(opened(), batch("k", [IMPRESSION]))
    assert (again.repeated, again.duplicates) == (False, 1)


def test_ids_are_forgotten_after_many_own_ones(
    intake: Intake, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_ids, "_MOST_IDS", 10)
    add_one(intake, batch("first", numbered(0, 5)))
    add_one(intake, batch("k1", numbered(10, 10)))
    assert add_one(intake, batch("again", numbered(0, 5))).duplicates == 5
    add_one(intake, batch("k2", numbered(20, 10)))
    assert add_one(intake, batch("last", numbered(0, 5))).duplicates == 0
    assert add_one(intake, batch("newest", numbered(20, 10))).duplicates == 10
    tidy_event_ids(store, 0)
    with store.reading() as connection:
        totals = connection.execute(select(stored_ids.c.began_us, stored_ids.c.total)).all()
    assert len({began for began, _ in totals}) == 2


def test_many_rows_of_the_table_become_few(opened: Opener, store: Database) -> None:
    intake = opened()
    for number in range(20):
        add_one(intake, batch(f"k{number}", numbered(number, 1)))
    tidy_event_ids(store, now_us(SetClock()))
    with store.reading() as connection:
        (row,) = connection.execute(select(stored_ids)).all()
    assert row.total == 20
    # Sorted hashes, and nothing else of anybody.
    marks = np.frombuffer(row.marks, "<u8")
    assert marks.size == 20
    assert (marks[1:] > marks[:-1]).all()
    # Who has read all, some or none of them goes on, and counts right.
    assert add_one(intake, batch("l", numbered(10, 20))).duplicates == 10
    assert add_one(opened(), batch("m", numbered(0, 40))).duplicates == 30
    with store.reading() as connection:
        assert max(connection.execute(select(stored_ids.c.total)).scalars()) == 40


# ---- marks -------------------------------------------------------------------------------------


def table_of(pairs: list[tuple[str, str | None]]) -> pa.Table:
    return pa.table(
        {
            "user_id": pa.array([user for user, _ in pairs], pa.string()),
            "event_id": pa.array([event for _, event in pairs], pa.string()),
        }
    )


texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=200)


@given(st.lists(st.tuples(texts, st.none() | texts), max_size=30), st.text(max_size=5))
def test_a_mark_is_of_a_pair_of_ids_and_a_salt(
    pairs: list[tuple[str, str | None]], salt: str
) -> None:
    marker = Marker(salt)
    marks, places = marker.marks(table_of(pairs))
    with_ids = [place for place, (_, event) in enumerate(pairs) if event is not None]
    assert places.tolist() == with_ids
    # Alone it has the same mark as beside longer ones, which a server of another start makes.
    alone = [Marker(salt).marks(table_of([pairs[place]]))[0] for place in with_ids]
    assert [mark.tolist() for mark in alone] == [[mark] for mark in marks.tolist()]
    assert len(set(marks.tolist())) == len({pairs[place] for place in with_ids})
    others = Marker(salt + "x").marks(table_of(pairs))[0]
    assert not np.isin(marks, others).any()


def test_marks_of_many_rows() -> None:
    """More than are hashed at once; ids that differ in a bit."""
    pairs = [(f"u{number % 7}", f"{number:06d}") for number in range(100_000)]
    marks, places = Marker("salt").marks(table_of([*pairs, ("u", None)]))
    assert places.size == np.unique(marks).size == 100_000
    # Every bit is set in half of them.
    shares = [np.mean((marks >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]
    assert all(0.49 < share < 0.51 for share in shares)
