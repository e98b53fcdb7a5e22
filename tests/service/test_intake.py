"""Batches are stored once, whole, and answered when they are on the disk."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from adsbpc.events.schema import Reason
from adsbpc.ledger.database import Database
from adsbpc.model.slots import to_microseconds
from adsbpc.service import batches
from adsbpc.service.arrivals import close_arrivals
from adsbpc.service.batches import Plan, Remembered
from adsbpc.service.clock import Clock
from adsbpc.service.counts import Counts
from adsbpc.service.event_files import EventFiles
from adsbpc.service.intake import Answer, Batch, Intake
from adsbpc.service.problems import Problem
from adsbpc.service.rows import Source
from adsbpc.service.store import open_store
from tests.service.clocks import START, SetClock
from tests.service.pushed import (
    CONVERSION,
    IMPRESSION,
    add,
    add_one,
    batch,
    files_in,
    ids,
    numbered,
    stored,
)

Opener = Callable[..., Intake]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def files(store: Database, tmp_path: Path, clock: SetClock) -> EventFiles:
    return files_in(store, tmp_path, clock)


@pytest.fixture
def opened(store: Database, files: EventFiles, clock: SetClock) -> Iterator[Opener]:
    """Opens intakes, each as a server of its own would, and closes them."""
    intakes = []

    def open_one(clock: Clock = clock, waiting: int = 64, *, start: bool = True) -> Intake:
        intakes.append(Intake(store, files, clock, waiting))
        if start:
            intakes[-1].start()
        return intakes[-1]

    yield open_one
    for intake in intakes:
        intake.close()


@pytest.fixture
def intake(opened: Opener) -> Intake:
    return opened()


def problems(answers: Sequence[Answer | BaseException]) -> list[int]:
    return [answer.status for answer in answers if isinstance(answer, Problem)]


def test_a_batch_is_stored_and_answered(
    intake: Intake, files: EventFiles, store: Database, clock: SetClock
) -> None:
    rows: list[Any] = [
        IMPRESSION,
        {**IMPRESSION, "kind": "x"},
        IMPRESSION,
        {"usr": 1},
        *numbered(2, 2),
    ]
    assert add_one(intake, batch("k", rows)).model_dump() == {
        "batch_key": "k",
        "rows": 6,
        "accepted": 3,
        "duplicates": 1,
        "quarantined": 2,
        "verdicts": [
            {"row": 1, "verdict": "quarantined", "reason": Reason.UNKNOWN_KIND},
            {"row": 2, "verdict": "duplicate", "reason": Reason.REPEATED_ID},
            {"row": 3, "verdict": "quarantined", "reason": "unknown field: usr"},
        ],
        "repeated": False,
    }
    assert ids(files) == {"e1": 1, "e2": 1, "e3": 1}
    counted = {each.verdict: each.number for each in Counts(store, clock).by_hour(1)}
    assert counted == {
        "": 1,
        "accepted": 3,
        "duplicate": 1,
        Reason.UNKNOWN_KIND: 1,
        "unknown field": 1,
    }


def test_a_repeated_batch_gets_its_first_answer(
    intake: Intake, opened: Opener, files: EventFiles, store: Database, clock: SetClock
) -> None:
    one = batch("k", [IMPRESSION, IMPRESSION, 5])
    first = add_one(intake, one)
    again = first.model_copy(update={"repeated": True})
    assert not first.repeated
    # On this server, on another, and after a day.
    assert add_one(intake, one) == again
    clock.pass_seconds(86_400)
    assert add_one(opened(), one) == again
    assert ids(files) == {"e1": 1}
    numbers = Counts(store, clock).by_hour(48)
    assert sum(each.number for each in numbers if not each.verdict) == 1
    assert [path.name for path in files.folder.iterdir()] == [
        path.name for path in files.live("impressions", "Ad-1")
    ]


def test_another_body_under_the_same_key_is_refused(intake: Intake, files: EventFiles) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    other = batch("k", numbered(5, 1))
    with pytest.raises(Problem, match="409 Key used before"):
        add_one(intake, other)
    assert ids(files) == {"e1": 1}
    # The key belongs to its sender and source.
    assert not add_one(intake, batch("k", numbered(5, 1), owner="publisher:P-2")).repeated
    sale = batch("k", [CONVERSION], "conversions", owner="publisher:P-1")
    assert not add_one(intake, sale).repeated


def test_batches_that_wait_are_stored_together(opened: Opener, files: EventFiles) -> None:
    intake = opened(start=False)
    one, other = batch("k", numbered(1, 2)), batch("k", numbered(3, 1))
    group = [one, batch("l", numbered(2, 3)), one, other, batch("m", [CONVERSION], "conversions")]
    threading.Timer(0.1, intake.start).start()
    first, second, again, refused, sale = add(intake, *group)
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert isinstance(sale, Answer)
    assert (first.accepted, second.accepted, sale.accepted) == (2, 2, 1)
    assert [verdict.row for verdict in second.verdicts] == [0]
    assert again == first.model_copy(update={"repeated": True})
    assert isinstance(refused, Problem)
    assert refused.status == 409
    assert ids(files) == {"e1": 1, "e2": 1, "e3": 1, "e4": 1}
    assert len(files.live("impressions", "Ad-1")) == 1
    assert len(files.live("conversions", "Ad-1")) == 1


def test_a_repeated_batch_among_fresh_ones(
    intake: Intake, opened: Opener, files: EventFiles
) -> None:
    """The others of its group are stored, without rows of it."""
    old = batch("old", numbered(1, 2))
    add_one(intake, old)
    another = opened(start=False)
    threading.Timer(0.1, another.start).start()
    found = add(another, batch("k", numbered(10, 2)), old, batch("l", numbered(20, 2)))
    assert [each.repeated for each in found if isinstance(each, Answer)] == [False, True, False]
    assert ids(files) == Counter(f"e{number}" for number in (1, 2, 10, 11, 20, 21))
    assert len(list(files.folder.iterdir())) == 2


def test_batches_without_good_rows_have_no_file(intake: Intake, files: EventFiles) -> None:
    assert add_one(intake, batch("empty", [])).rows == 0
    bad = batch("bad", [{}, 1])
    assert add_one(intake, bad).quarantined == 2
    assert add_one(intake, bad).repeated
    assert list(files.folder.iterdir()) == []


def test_files_know_their_advertiser(intake: Intake, files: EventFiles) -> None:
    add_one(intake, batch("k", numbered(1, 2)))
    add_one(intake, batch("l", [*numbered(3, 1), *numbered(4, 1, advertiser_id="Ad-2")]))
    assert len(files.live("impressions", "Ad-1")) == 2
    assert len(files.live("impressions", "Ad-2")) == 1


def test_conversions_arrive_when_they_are_stored(
    intake: Intake, files: EventFiles, clock: SetClock
) -> None:
    clock.pass_seconds(60)
    ahead = START + timedelta(minutes=4)
    rows = [CONVERSION, {**CONVERSION, "event_id": "e2", "timestamp": ahead.isoformat()}]
    add_one(intake, batch("k", rows, "conversions", clock=clock))
    arrived = {row["event_id"]: row["arrived_at"] for row in stored(files, "conversions")}
    # A sender's clock that is ahead must not cost it a row.
    assert arrived == {"e1": START + timedelta(seconds=60), "e2": ahead}


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


@settings(max_examples=200)
@given(st.lists(st.lists(st.sampled_from([None, 1, 2, 3, 4, 5]), max_size=6), max_size=6))
def test_repeated_ids_are_those_of_a_plain_loop(numbers: list[list[int | None]]) -> None:
    remembered = Remembered(1_000)
    seen: set[int] = set()
    for batch_numbers in numbers:
        rows = [{**IMPRESSION, "event_id": None if k is None else f"e{k}"} for k in batch_numbers]
        plan = Plan(0, remembered)
        plan.add(batch("k", rows))
        repeated = []
        for row, number in enumerate(batch_numbers):
            if number in seen:
                repeated.append(row)
            elif number is not None:
                seen.add(number)
        (settled,) = plan.settled.values()
        assert [verdict.row for verdict in settled.answer.verdicts] == repeated
        assert settled.answer.accepted == len(rows) - len(repeated)
        remembered.add(plan.marks)


def test_the_memory_for_event_ids_is_bounded() -> None:
    remembered = Remembered(3)
    for mark in range(10):
        remembered.add({mark})
    assert [mark for mark in range(10) if mark in remembered] == [7, 8, 9]
    assert not remembered.overlaps({1, 2})
    assert remembered.overlaps({1, 9})


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


def test_a_store_that_fails_is_told_to_everyone_and_survived(
    opened: Opener, store: Database, files: EventFiles, caplog: pytest.LogCaptureFixture
) -> None:
    intake = opened(start=False)
    with store.writing("test") as connection:
        connection.execute(text("ALTER TABLE adsbpc_batches RENAME TO gone"))
    threading.Timer(0.1, intake.start).start()
    answers = add(intake, batch("k", [IMPRESSION]), batch("l", numbered(5, 1)))
    assert problems(answers) == [503, 503]
    assert all(each.headers["Retry-After"] for each in answers if isinstance(each, Problem))
    assert "batches were not stored" in caplog.text
    assert "u1" not in caplog.text
    # Whether the transaction was committed is not known to who gets an error.
    assert len(list(files.folder.iterdir())) == 1
    assert files.live("impressions", "Ad-1") == []
    with store.writing("test") as connection:
        connection.execute(text("ALTER TABLE gone RENAME TO adsbpc_batches"))
    assert add_one(intake, batch("k", [IMPRESSION])).accepted == 1


def test_who_comes_when_too_many_wait_is_sent_away(opened: Opener, files: EventFiles) -> None:
    intake = opened(waiting=2, start=False)
    threading.Timer(0.1, intake.start).start()
    answers = add(intake, *(batch(f"k{number}", numbered(number, 1)) for number in range(5)))
    assert problems(answers) == [429] * 3
    refused = [each for each in answers if isinstance(each, Problem)]
    assert all(each.headers == {"Retry-After": "1"} for each in refused)
    assert ids(files) == {"e0": 1, "e1": 1}
    assert add_one(intake, batch("k4", numbered(4, 1))).accepted == 1


def test_closing_stores_what_waits(
    opened: Opener, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = opened()
    writing, go_on = threading.Event(), threading.Event()
    write = EventFiles.write

    def slow(self: EventFiles, source: Source, table: pa.Table) -> str:
        writing.set()
        go_on.wait(10)
        return write(self, source, table)

    monkeypatch.setattr(EventFiles, "write", slow)

    async def close_while_they_wait() -> list[Answer]:
        first = asyncio.create_task(intake.add(batch("first", [IMPRESSION])))
        await asyncio.to_thread(writing.wait, 10)
        others = [
            asyncio.create_task(intake.add(batch(f"k{number}", numbered(number, 1))))
            for number in range(5, 9)
        ]
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(asyncio.to_thread(intake.close))
        await asyncio.sleep(0.05)
        go_on.set()
        await closing
        return await asyncio.gather(first, *others)

    assert [answer.accepted for answer in asyncio.run(close_while_they_wait())] == [1] * 5
    assert len(ids(files)) == 5
    with pytest.raises(Problem, match="503 Not stored"):
        add_one(intake, batch("late", numbered(20, 1)))
    intake.close()


def test_who_hangs_up_while_waiting_is_not_stored(opened: Opener, files: EventFiles) -> None:
    intake = opened(start=False)

    async def hang_up() -> Answer:
        task = asyncio.create_task(intake.add(batch("k", [IMPRESSION])))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        intake.start()
        return await intake.add(batch("l", numbered(5, 1)))

    assert asyncio.run(hang_up()).accepted == 1
    assert ids(files) == {"e5": 1}


class NoMistakeError(BaseException):
    """As an interpreter raises that shuts down."""


def test_a_mistake_is_told_and_survived(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Plan, "add", mistaken)
        assert (
            problems(add(intake, batch("k", [IMPRESSION]), batch("l", [IMPRESSION]))) == [503] * 2
        )
    assert add_one(intake, batch("k", [IMPRESSION])).accepted == 1
    assert intake.is_alive()


def test_a_writer_that_ends_lets_nobody_wait(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> None:
        raise NoMistakeError

    told: list[type[BaseException] | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda failed: told.append(failed.exc_type))
    monkeypatch.setattr(Plan, "add", ended)
    intake = opened(start=False)
    threading.Timer(0.1, intake.start).start()
    assert problems(add(intake, batch("k", [IMPRESSION]), batch("l", [IMPRESSION]))) == [503, 503]
    intake.close()
    assert told == [NoMistakeError]
    assert not intake.is_alive()
    assert problems(add(intake, batch("m", [IMPRESSION]))) == [503]


def arrivals_of(files: EventFiles) -> list[datetime]:
    return [row["arrived_at"] for row in stored(files, "conversions")]


def closes_arrivals(
    store: Database, monkeypatch: pytest.MonkeyPatch, moments: Iterator[datetime]
) -> None:
    """Somebody releases while a file is being written, each time up to the next of these."""
    write = EventFiles.write

    def overtaken(self: EventFiles, source: Source, table: pa.Table) -> str:
        if (until := next(moments, None)) is not None:
            close_arrivals(store, to_microseconds(until))
        return write(self, source, table)

    monkeypatch.setattr(EventFiles, "write", overtaken)


def test_a_clock_that_is_behind_stores_after_what_was_released(
    intake: Intake, store: Database, files: EventFiles
) -> None:
    released = START + timedelta(hours=3)
    close_arrivals(store, to_microseconds(released))
    close_arrivals(store, to_microseconds(START))
    add_one(intake, batch("k", [CONVERSION], "conversions"))
    add_one(intake, batch("l", [{**CONVERSION, "event_id": "e2"}], "conversions"))
    assert arrivals_of(files) == [released] * 2
    assert len(list(files.folder.iterdir())) == 2


@pytest.mark.parametrize(
    ("seconds", "arrival"), [([0], 0), ([1], 1), ([-60, 60], 0), ([60, 3_600], 3_600)]
)
def test_what_is_overtaken_by_a_release_is_stored_after_it(
    seconds: list[float], arrival: float, intake: Intake, store: Database, files: EventFiles,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    moments = iter([START + timedelta(seconds=each) for each in seconds])
    closes_arrivals(store, monkeypatch, moments)
    answer = add_one(intake, batch("k", [CONVERSION], "conversions"))
    assert (answer.accepted, answer.repeated) == (1, False)
    assert arrivals_of(files) == [START + timedelta(seconds=arrival)]
    assert len(list(files.folder.iterdir())) == 1


def test_what_is_always_overtaken_is_refused_in_the_end(
    intake: Intake, store: Database, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    closes_arrivals(store, monkeypatch, (START + timedelta(seconds=k) for k in count(1)))
    assert problems(add(intake, batch("k", [CONVERSION], "conversions"))) == [503]
    assert arrivals_of(files) == []
    assert list(files.folder.iterdir()) == []


def test_servers_that_race_store_a_batch_once(
    opened: Opener, files: EventFiles, store: Database, clock: SetClock
) -> None:
    """Each batch to two servers at the same time, some under the same key with another body."""
    intakes = [opened(), opened()]
    one = [batch(f"k{number}", numbered(10 * number, 3)) for number in range(30)]
    other = [
        *one[:25],
        *(batch(f"k{number}", numbered(10 * number + 5, 2)) for number in range(25, 30)),
    ]

    async def race() -> list[tuple[Answer | BaseException, Answer | BaseException]]:
        calls = [
            asyncio.gather(intakes[0].add(first), intakes[1].add(second), return_exceptions=True)
            for first, second in zip(one, other, strict=True)
        ]
        return list(await asyncio.gather(*calls))

    for number, pair in enumerate(asyncio.run(race())):
        if number < 25:
            first, second = pair
            assert isinstance(first, Answer)
            assert isinstance(second, Answer)
            assert first.repeated != second.repeated
            assert first.model_copy(update={"repeated": second.repeated}) == second
        else:
            assert problems(pair) == [409]
    found = ids(files)
    assert set(found.values()) == {1}
    for number in range(25, 30):
        kept = {f"e{10 * number + k}" for k in range(3)}, {f"e{10 * number + k}" for k in (5, 6)}
        assert {name for name in found if int(name[1:]) // 10 == number} in kept
    batches_counted = [each for each in Counts(store, clock).by_hour(1) if not each.verdict]
    assert sum(each.number for each in batches_counted) == 30
    live = {path.name for path in files.live("impressions", "Ad-1")}
    assert {path.name for path in files.folder.iterdir()} == live


@settings(max_examples=25)
@given(data=st.data())
def test_any_batches_are_stored_as_a_plain_loop_would(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of two senders and both sources, in groups of any size, with repeated keys and event ids."""
    folder = tmp_path_factory.mktemp("any")
    clock = SetClock()
    store = open_store("service.sqlite", folder)
    files = files_in(store, folder, clock)
    intake = Intake(store, files, clock, 64)
    keys: dict[batches.BatchId, tuple[str, Answer]] = {}
    seen: set[tuple[str, str, str, str]] = set()
    expected: Counter[tuple[str, str, str | None]] = Counter()
    rows_of: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
        st.fixed_dictionaries(
            {
                "user_id": st.sampled_from(["u1", "u2", ""]),
                "event_id": st.sampled_from(["a", "b", "c", None]),
            }
        ),
        max_size=4,
    )
    intake.start()
    for _ in range(data.draw(st.integers(1, 4))):
        group: list[Batch] = []
        for _ in range(data.draw(st.integers(1, 4))):
            source: Source = data.draw(st.sampled_from(["impressions", "conversions"]))
            whole = IMPRESSION if source == "impressions" else CONVERSION
            rows = [{**whole, **fields} for fields in data.draw(rows_of)]
            key = data.draw(st.sampled_from(["k1", "k2", "k3", "k4"]))
            group.append(batch(key, rows, source, owner=data.draw(st.sampled_from("xy"))))
        for one, answer in zip(group, add(intake, *group), strict=True):
            if one.id in keys:
                body_hash, first = keys[one.id]
                if body_hash != one.body_hash:
                    assert isinstance(answer, Problem)
                    assert answer.status == 409
                else:
                    assert answer == first.model_copy(update={"repeated": True})
                continue
            assert isinstance(answer, Answer)
            assert not answer.repeated
            keys[one.id] = one.body_hash, answer
            accepted = 0
            for row in one.checked.table.to_pylist():
                mark = (one.source, one.owner, row["user_id"], row["event_id"])
                if row["event_id"] is None or mark not in seen:
                    accepted += 1
                    seen.add(mark)
                    expected[one.source, row["user_id"], row["event_id"]] += 1
            assert answer.accepted == accepted
    intake.close()
    sources: tuple[Source, ...] = ("impressions", "conversions")
    found = Counter(
        (source, row["user_id"], row["event_id"])
        for source in sources
        for row in stored(files, source)
    )
    store.close()
    assert found == expected


def test_a_group_is_bounded(
    opened: Opener, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = EventFiles.write

    def noted(self: EventFiles, source: Source, table: pa.Table) -> str:
        sizes.append(table.num_rows)
        return write(self, source, table)

    monkeypatch.setattr("adsbpc.service.intake._MOST_ROWS", 10)
    monkeypatch.setattr(EventFiles, "write", noted)
    intake = opened(start=False)
    threading.Timer(0.1, intake.start).start()
    counts = [4, 6, 1, 12, 3, 7]
    add(intake, *(batch(f"k{k}", numbered(100 * k, count)) for k, count in enumerate(counts)))
    assert sizes == [10, 1, 12, 10]
