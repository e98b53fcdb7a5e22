"""Merging files moves every row once, whatever else happens at the same time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.service.ingest.compaction import Sizes, compact
from adsbpc.service.ingest.event_files import LOCK, EventFiles
from adsbpc.service.ingest.rows import Source
from adsbpc.service.store import event_files, open_store
from tests.service.clocks import SetClock
from tests.service.killed import compact_for_ever, killed
from tests.service.pushed import (
    CONVERSION,
    arrived,
    checked,
    files_in,
    ids,
    moment,
    numbered,
    stored,
)

SMALL = Sizes(rows=200, files=20, large=50, own=3)


@pytest.fixture
def files(store: Database, tmp_path: Path) -> EventFiles:
    return files_in(store, tmp_path)


def put(
    files: EventFiles, store: Database, table: pa.Table, source: Source = "impressions"
) -> None:
    """A live file of these rows."""
    advertisers = set(table["advertiser_id"].to_pylist())
    name = files.write(source, table if "arrived_at" in table.column_names else arrived(table))
    with store.writing(LOCK) as connection:
        advertiser = advertisers.pop() if len(advertisers) == 1 else ""
        files.list_new(connection, source, name, advertiser, table.num_rows)


def rows_of(first: int, count: int, advertiser: str = "Ad-1") -> pa.Table:
    return checked(numbered(first, count, advertiser_id=advertiser)).table


def everything(files: EventFiles, store: Database) -> Counter[str]:
    """Event ids in all live files, whoever's they are."""
    with store.reading() as connection:
        live = select(event_files.c.name).where(event_files.c.retired_us.is_(None))
        names = connection.execute(live).scalars().all()
    return Counter(
        event_id
        for name in names
        for event_id in pq.read_table(files.folder / name)["event_id"].to_pylist()
    )


def test_small_files_become_one_sorted_by_time(files: EventFiles, store: Database) -> None:
    for number in range(5):
        table = checked(
            [
                {**row, "timestamp": f"2026-03-01T1{9 - (number + k) % 10 % 2}:0{number}:00Z"}
                for k, row in enumerate(numbered(10 * number, 3))
            ],
            clock=SetClock(moment("2026-03-02T00:00:00+00:00")),
        ).table
        put(files, store, table)
    before = stored(files)
    assert compact(files, store, "impressions") == 5
    (merged,) = files.live("impressions", "Ad-1")
    assert stored(files) == before
    moments = pq.read_table(merged)["timestamp"].to_pylist()
    assert moments == sorted(moments)
    assert len(set(moments)) > 5
    assert compact(files, store, "impressions") == 0
    # What a release reads now stays for it.
    assert len(list(files.folder.iterdir())) == 6


def test_conversions_keep_their_arrival(files: EventFiles, store: Database) -> None:
    for number in range(2):
        table = checked([{**CONVERSION, "event_id": f"e{number}"}], "conversions").table
        arrived = pa.array([moment(f"2026-03-01T12:00:0{number}+00:00")], pa.timestamp("us", "UTC"))
        put(files, store, table.append_column("arrived_at", arrived), "conversions")
    before = stored(files, "conversions")
    put(files, store, rows_of(1, 1))
    assert compact(files, store, "conversions") == 2
    assert stored(files, "conversions") == before
    assert len(files.live("conversions", "Ad-1")) == 1
    assert ids(files) == {"e1": 1}


def test_advertisers_with_many_rows_get_files_of_their_own(
    files: EventFiles, store: Database
) -> None:
    for start in (0, 100):
        parts = [
            rows_of(start, 4, "Ad-1"),
            rows_of(start + 10, 2, "Ad-2"),
            rows_of(start + 20, 1, "Ad-3"),
        ]
        put(files, store, pa.concat_tables(parts))
    before = everything(files, store)
    assert compact(files, store, "impressions", Sizes(own=4)) == 2
    assert everything(files, store) == before
    own = set(files.live("impressions", "Ad-1")) - set(files.live("impressions", "Ad-2"))
    assert [pq.read_table(path).num_rows for path in own] == [8]
    own_of_second = set(files.live("impressions", "Ad-2")) - set(files.live("impressions", "Ad-3"))
    assert [pq.read_table(path).num_rows for path in own_of_second] == [4]
    (mixed,) = files.live("impressions", "Ad-3")
    assert pq.read_table(mixed)["advertiser_id"].to_pylist() == ["Ad-3"] * 2
    assert compact(files, store, "impressions", Sizes(own=4)) == 0


def test_files_that_are_large_or_alone_are_left(files: EventFiles, store: Database) -> None:
    put(files, store, rows_of(0, 60))
    put(files, store, rows_of(100, 60))
    put(files, store, rows_of(200, 5))
    put(files, store, rows_of(300, 5, "Ad-2"))
    assert compact(files, store, "impressions", SMALL) == 0
    # A file waits for a good number of rows beside it.
    put(files, store, rows_of(400, 40))
    assert compact(files, store, "impressions", SMALL) == 0
    put(files, store, rows_of(500, 5))
    assert compact(files, store, "impressions", SMALL) == 3
    assert sorted(
        pq.read_metadata(path).num_rows for path in files.live("impressions", "Ad-1")
    ) == [
        50,
        60,
        60,
    ]


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [(Sizes(rows=10), 3), (Sizes(files=4), 4), (Sizes(bytes=2**20), 12), (Sizes(bytes=1), 0)],
)
def test_a_round_is_bounded(sizes: Sizes, taken: int, files: EventFiles, store: Database) -> None:
    for number in range(12):
        put(files, store, rows_of(10 * number, 3))
    assert compact(files, store, "impressions", sizes) == taken
    assert set(ids(files).values()) == {1}
    assert len(ids(files)) == 36


def test_rounds_move_a_row_a_few_times_only(store: Database, files: EventFiles) -> None:
    """About as often as their number doubles."""
    moved = 0
    for number in range(40):
        put(files, store, rows_of(10 * number, 5))
        before = {path.name for path in files.live("impressions", "Ad-1")}
        while compact(files, store, "impressions"):
            pass
        for path in files.live("impressions", "Ad-1"):
            moved += pq.read_metadata(path).num_rows if path.name not in before else 0
    assert len(files.live("impressions", "Ad-1")) <= 6
    assert len(ids(files)) == 200
    assert moved < 200 * 7


def test_a_file_that_is_gone_or_damaged_stops_it(files: EventFiles, store: Database) -> None:
    for number in range(3):
        put(files, store, rows_of(10 * number, 3))
    victim, other, _ = files.live("impressions", "Ad-1")
    content = victim.read_bytes()
    for damaged in (b"no parquet", other.read_bytes()[:-5], b""):
        victim.write_bytes(damaged)
        with pytest.raises(ServiceError, match=r"cannot be read.*Restore it from a backup"):
            compact(files, store, "impressions")
    pq.write_table(rows_of(0, 2), victim)
    with pytest.raises(ServiceError, match="has 2 rows, and 3 were stored in it"):
        compact(files, store, "impressions")
    victim.unlink()
    with pytest.raises(ServiceError, match="cannot be read"):
        compact(files, store, "impressions")
    victim.write_bytes(content)
    assert compact(files, store, "impressions") == 3
    assert len(ids(files)) == 9


def test_who_is_overtaken_drops_its_work(
    files: EventFiles, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        put(files, store, rows_of(10 * number, 3))
    write = EventFiles.write
    overtaken = []

    def slow(self: EventFiles, source: Source, table: pa.Table, *, packed: bool = False) -> str:
        """Another server does the same before this one is done."""
        monkeypatch.setattr(EventFiles, "write", write)
        overtaken.append(compact(files, store, "impressions"))
        return write(self, source, table, packed=packed)

    monkeypatch.setattr(EventFiles, "write", slow)
    assert compact(files, store, "impressions") == 0
    assert overtaken == [3]
    assert Counter(ids(files).values()) == {1: 9}
    assert len(list(files.folder.iterdir())) == 4


def test_several_at_once_and_files_that_come_meanwhile(store: Database, files: EventFiles) -> None:
    """Every snapshot on the way has every row that was stored by then, once."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(step: Any) -> None:
        try:
            while not stop.is_set():
                step()
        except BaseException as failure:
            failures.append(failure)
            raise

    def look() -> None:
        at_least = len(done)
        found = ids(files)
        assert set(found.values()) <= {1}
        assert len(found) >= 3 * at_least

    done: list[int] = []
    workers = [
        threading.Thread(target=work, args=[lambda: compact(files, store, "impressions", SMALL)]),
        threading.Thread(target=work, args=[lambda: compact(files, store, "impressions", SMALL)]),
        threading.Thread(target=work, args=[look]),
    ]
    for worker in workers:
        worker.start()
    for number in range(60):
        put(files, store, rows_of(10 * number, 3))
        done.append(number)
    stop.set()
    for worker in workers:
        worker.join()
    assert failures == []
    assert Counter(ids(files).values()) == {1: 180}
    assert len(files.live("impressions", "Ad-1")) < 60


@settings(max_examples=15)
@given(data=st.data())
def test_any_files_keep_their_rows(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    store = open_store("service.sqlite", folder)
    files = files_in(store, folder)
    written = 0
    for _ in range(data.draw(st.integers(1, 12))):
        counts = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
        parts = []
        for size in counts:
            advertiser = data.draw(st.sampled_from(["Ad-1", "Ad-2", "Ad-3"]))
            parts.append(rows_of(written, size, advertiser))
            written += size
        put(files, store, pa.concat_tables(parts))
        if data.draw(st.booleans()):
            compact(files, store, "impressions", SMALL)
    rounds = 0
    while compact(files, store, "impressions", SMALL):
        rounds += 1
    assert rounds < 10
    assert everything(files, store) == {f"e{number}": 1 for number in range(written)}
    by_advertiser = [
        row["event_id"]
        for advertiser in ("Ad-1", "Ad-2", "Ad-3")
        for row in stored(files, "impressions", advertiser)
        if row["advertiser_id"] == advertiser
    ]
    assert len(by_advertiser) == len(set(by_advertiser)) == written
    store.close()


class DiedError(BaseException):
    """As if the process had ended: nobody cleans up."""


def dies_at(step: int, patched: pytest.MonkeyPatch) -> None:
    """Die at one of the moments before and after a file is written, and a transaction committed."""
    moments = count()
    write, writing = EventFiles.write, Database.writing

    def pass_moment() -> None:
        if next(moments) == step:
            raise DiedError

    def dying_write(self: EventFiles, *given: Any, **named: Any) -> str:
        pass_moment()
        name = write(self, *given, **named)
        pass_moment()
        return name

    @contextmanager
    def dying_transaction(self: Database, scope: str) -> Iterator[Connection]:
        with writing(self, scope) as connection:
            yield connection
            pass_moment()
        pass_moment()

    patched.setattr(EventFiles, "write", dying_write)
    patched.setattr(Database, "writing", dying_transaction)


def test_who_dies_at_any_moment_loses_and_doubles_nothing(
    files: EventFiles, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [rows_of(0, 4, "Ad-1"), rows_of(10, 4, "Ad-2")]
    for table in (pa.concat_tables(parts), rows_of(20, 3), rows_of(30, 3, "Ad-2"), rows_of(40, 1)):
        put(files, store, table)
    put(files, store, pa.concat_tables([rows_of(50, 2), rows_of(60, 2, "Ad-2")]))
    before = everything(files, store)
    deaths = 0
    for step in count():
        with monkeypatch.context() as patched:
            dies_at(step, patched)
            try:
                compact(files, store, "impressions", SMALL)
                break
            except DiedError:
                deaths += 1
        assert everything(files, store) == before
    assert everything(files, store) == before
    # Two files of advertisers, and one transaction.
    assert deaths == 6


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_compactors_that_are_killed_lose_and_double_nothing(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = "service.sqlite"
    if database == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
    store = open_store(location, tmp_path)
    files = files_in(store, tmp_path)
    written = 0
    for _ in range(10):
        for _ in range(10):
            put(files, store, rows_of(written, 4))
            written += 4
        with killed(compact_for_ever, location, tmp_path, after=(0, 0.03), number=2):
            pass
        assert everything(files, store) == {f"e{number}": 1 for number in range(written)}
    while compact(files, store, "impressions"):
        pass
    assert everything(files, store) == {f"e{number}": 1 for number in range(written)}
    assert len(files.live("impressions", "Ad-1")) < 10
    store.close()
