"""A file counts while the store lists it, and nothing that is in use is ever deleted."""

from __future__ import annotations

import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from adsbpc.errors import ServiceError
from adsbpc.events.sources import resolve_source
from adsbpc.ledger.database import Database
from adsbpc.service.ingest.event_files import LOCK, EventFiles
from adsbpc.service.ingest.rows import STORED, Source
from adsbpc.service.store import event_files
from tests.service.clocks import SetClock
from tests.service.pushed import CONVERSION, arrived, checked, files_in, ids, numbered

HOUR, DAY = 3_600, 86_400


@pytest.fixture
def clock() -> SetClock:
    """The present, so that the ages of real files mean something."""
    return SetClock(datetime.now(UTC))


@pytest.fixture
def files(store: Database, tmp_path: Path, clock: SetClock) -> EventFiles:
    return files_in(store, tmp_path, clock)


def impressions(first: int = 1, count: int = 2) -> pa.Table:
    return arrived(checked(numbered(first, count)).table)


def list_files(files: EventFiles, store: Database, *names: str, advertiser: str = "Ad-1") -> None:
    with store.writing(LOCK) as connection:
        for name in names:
            files.list_new(connection, "impressions", name, advertiser, 2)


def test_a_file_counts_from_the_end_of_the_transaction_that_lists_it(
    files: EventFiles, store: Database
) -> None:
    name = files.write("impressions", impressions())
    assert files.live("impressions", "Ad-1") == []
    with store.writing(LOCK) as connection:
        files.list_new(connection, "impressions", name, "Ad-1", 2)
        assert files.live("impressions", "Ad-1") == []
    assert files.live("impressions", "Ad-1") == [files.folder / name]
    assert ids(files) == {"e1": 1, "e2": 1}
    assert files.live("conversions", "Ad-1") == []


def test_a_transaction_that_fails_lists_nothing(files: EventFiles, store: Database) -> None:
    name = files.write("impressions", impressions())
    with pytest.raises(ServiceError):
        list_files(files, store, name, "impressions-missing.parquet")
    assert files.live("impressions", "Ad-1") == []


def test_an_advertiser_reads_its_own_files_and_mixed_ones(
    files: EventFiles, store: Database
) -> None:
    own, other, mixed = (files.write("impressions", impressions()) for _ in range(3))
    list_files(files, store, own)
    list_files(files, store, other, advertiser="Ad-2")
    list_files(files, store, mixed, advertiser="")
    assert {path.name for path in files.live("impressions", "Ad-1")} == {own, mixed}
    assert {path.name for path in files.live("impressions", "Ad-2")} == {other, mixed}
    assert {path.name for path in files.live("impressions", "Ad-3")} == {mixed}


def test_files_are_for_their_owner_only(files: EventFiles) -> None:
    name = files.write("impressions", impressions())
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((files.folder / name).stat().st_mode) == 0o600
    assert [path.name for path in files.folder.iterdir()] == [name]


@pytest.mark.parametrize("packed", [False, True])
def test_every_file_has_every_column(files: EventFiles, packed: bool) -> None:
    name = files.write("impressions", impressions(), packed=packed)
    found = pq.read_table(files.folder / name)
    assert found.schema.remove_metadata() == STORED["impressions"]
    assert found.to_pylist() == impressions().to_pylist()
    sale = checked([{"user_id": "u", "timestamp": CONVERSION["timestamp"]}], "conversions").table
    name = files.write("conversions", arrived(sale), packed=packed)
    assert pq.read_schema(files.folder / name).remove_metadata() == STORED["conversions"]


def test_a_file_that_is_gone_is_not_listed(files: EventFiles, store: Database) -> None:
    name = files.write("impressions", impressions())
    files.discard(name)
    files.discard(name)
    with pytest.raises(ServiceError, match="was removed before it was listed"):
        list_files(files, store, name)
    assert files.live("impressions", "Ad-1") == []


def test_a_file_is_on_the_disk_before_it_has_its_name(
    files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its name is on the disk before anybody hears of it."""
    synced = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_folder, [path.suffix for path in files.folder.iterdir()]))
        if not is_folder:
            (unfinished,) = files.folder.iterdir()
            assert os.fstat(descriptor).st_size == unfinished.stat().st_size > 500
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    files.write("impressions", impressions())
    assert synced == [(False, [".unfinished"]), (True, [".parquet"])]


def test_a_disk_that_fails_leaves_nothing_behind(
    files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write("impressions", impressions())
    assert list(files.folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(store: Database, tmp_path: Path) -> None:
    (tmp_path / "events").write_text("a file")
    with pytest.raises(ServiceError, match=r"cannot be made.*\[service\] data"):
        files_in(store, tmp_path)


def test_a_manifest_lists_what_a_campaign_reads(
    files: EventFiles, store: Database, tmp_path: Path
) -> None:
    path = tmp_path / "impressions.files"
    names = [files.write("impressions", impressions(k)) for k in (1, 3)]
    list_files(files, store, *names)
    files.manifest("impressions", "Ad-1", path)
    listed = {files.folder / name for name in names}
    assert {Path(line) for line in path.read_text().splitlines()} == listed
    source = resolve_source(path.name, tmp_path, "[events] impressions")
    assert {Path(file) for file in source.files} == listed
    with store.writing(LOCK) as connection:
        assert files.retire(connection, names[:1])
    files.manifest("impressions", "Ad-1", path)
    assert path.read_text() == f"{files.folder / names[1]}\n"
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize("source", ["impressions", "conversions"])
def test_a_manifest_without_events_lists_a_file_without_rows(
    source: Source, files: EventFiles, tmp_path: Path
) -> None:
    path = tmp_path / "none.files"
    for _ in range(2):
        files.manifest(source, "Ad-1", path)
        (file,) = resolve_source(path.name, tmp_path, f"[events] {source}").files
        assert Path(file).name == f"empty-{source}.parquet"
        assert pq.read_table(file).num_rows == 0
        assert pq.read_schema(file).remove_metadata() == STORED[source]


def test_files_are_retired_once(files: EventFiles, store: Database) -> None:
    names = [files.write("impressions", impressions(k)) for k in (1, 3, 5)]
    list_files(files, store, *names)
    with store.writing(LOCK) as connection:
        assert files.retire(connection, names[:2])
    assert ids(files) == {"e5": 1, "e6": 1}
    with store.writing(LOCK) as connection:
        assert not files.retire(connection, names[1:])
    with store.writing(LOCK) as connection:
        assert not files.retire(connection, ["never listed"])


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_the_sweep_deletes_what_nobody_lists(files: EventFiles, store: Database) -> None:
    listed, young, old = (files.write("impressions", impressions()) for _ in range(3))
    list_files(files, store, listed)
    unfinished = files.folder / f"{old}.0123abcd.unfinished"
    unfinished.touch()
    files.manifest("conversions", "Ad-1", files.folder / "campaign.files")
    others = [files.folder / "empty-conversions.parquet", files.folder / "campaign.files"]
    others.append(files.folder / "notes.parquet")
    others[-1].touch()
    for path in (files.folder / listed, files.folder / old, unfinished, *others):
        age(path, HOUR + 60)
    age(files.folder / young, HOUR - 60)
    assert files.sweep() == 2
    kept = {files.folder / listed, files.folder / young, *others}
    assert set(files.folder.iterdir()) == kept
    assert files.sweep() == 0


def test_the_sweep_deletes_files_a_day_after_they_were_retired(
    files: EventFiles, store: Database, clock: SetClock
) -> None:
    live, retired = (files.write("impressions", impressions()) for _ in range(2))
    list_files(files, store, live, retired)
    for name in (live, retired):
        age(files.folder / name, 7 * DAY)
    with store.writing(LOCK) as connection:
        assert files.retire(connection, [retired])
    clock.pass_seconds(DAY - 60)
    assert files.sweep() == 0
    clock.pass_seconds(120)
    assert files.sweep() == 1
    assert [path.name for path in files.folder.iterdir()] == [live]
    with store.reading() as connection:
        assert connection.execute(select(event_files.c.name)).scalars().all() == [live]


def test_a_clock_that_runs_behind_deletes_nothing(
    files: EventFiles, store: Database, clock: SetClock
) -> None:
    """As in a demonstration, where a day passes in seconds: a release may still read them."""
    clock.moment -= timedelta(days=30)
    name, retired = (files.write("impressions", impressions()) for _ in range(2))
    list_files(files, store, retired)
    with store.writing(LOCK) as connection:
        assert files.retire(connection, [retired])
    age(files.folder / retired, 60 * DAY)
    clock.pass_seconds(2 * DAY)
    assert files.sweep() == 0
    assert {path.name for path in files.folder.iterdir()} == {name, retired}
