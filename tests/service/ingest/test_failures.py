"""Whatever fails, ends or comes in between: everybody gets an answer, and it is true."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from sqlalchemy import text

from adsbpc.ledger.database import Database
from adsbpc.model.slots import to_microseconds
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.batches import StoragePlan
from adsbpc.service.ingest.event_files import EventFiles, close_arrivals
from adsbpc.service.ingest.intake import Answer, Intake
from adsbpc.service.ingest.rows import Source
from tests.service.clocks import START
from tests.service.pushed import (
    CONVERSION,
    IMPRESSION,
    Opener,
    add,
    add_one,
    batch,
    ids,
    numbered,
    problems,
    stored,
)


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
        patched.setattr(StoragePlan, "tables", mistaken)
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
    monkeypatch.setattr(StoragePlan, "tables", ended)
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
    store: Database, monkeypatch: pytest.MonkeyPatch, moment: datetime
) -> list[str]:
    """Somebody releases up to a moment while the first file is being written. Returns the names
    of all that are."""
    write = EventFiles.write
    names: list[str] = []

    def overtaken(self: EventFiles, source: Source, table: pa.Table) -> str:
        if not names:
            close_arrivals(store, to_microseconds(moment))
        names.append(write(self, source, table))
        return names[-1]

    monkeypatch.setattr(EventFiles, "write", overtaken)
    return names


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
    ("seconds", "arrival", "files_written"), [(-60, 0, 1), (0, 0, 1), (1, 1, 2), (3_600, 3_600, 2)]
)
def test_what_is_overtaken_by_a_release_is_stored_after_it(
    seconds: float, arrival: float, files_written: int, intake: Intake, store: Database,
    files: EventFiles, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    written = closes_arrivals(store, monkeypatch, START + timedelta(seconds=seconds))
    answer = add_one(intake, batch("k", [CONVERSION], "conversions"))
    assert (answer.accepted, answer.repeated) == (1, False)
    assert arrivals_of(files) == [START + timedelta(seconds=arrival)]
    assert len(written) == files_written
    assert [path.name for path in files.folder.iterdir()] == written[-1:]


def test_who_was_overtaken_once_holds_the_lock(
    intake: Intake, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often others come in between, the second attempt is the last."""
    written = closes_arrivals(store, monkeypatch, START + timedelta(seconds=1))
    write = EventFiles.write
    closing: list[threading.Thread] = []

    def attempted(self: EventFiles, source: Source, table: pa.Table) -> str:
        if written:
            later = to_microseconds(START + timedelta(seconds=5))
            closing.append(threading.Thread(target=close_arrivals, args=(store, later)))
            closing[-1].start()
            closing[-1].join(0.3)
            assert closing[-1].is_alive()
        return write(self, source, table)

    monkeypatch.setattr(EventFiles, "write", attempted)
    assert add_one(intake, batch("k", [CONVERSION], "conversions")).accepted == 1
    closing[-1].join()
    assert len(written) == 2
