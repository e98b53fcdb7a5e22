"""Books that a cluster writes straight to a store: folders of files, which this machine never sees.

On one machine, and on executors that are processes of their own; the store is reached over HTTP by
Hadoop's client, and no folder is shared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign.book_seals import MANIFEST
from adsbpc.errors import LedgerError
from adsbpc.model import load_spec
from adsbpc.storage import RemotePath
from tests.campaign import book_files
from tests.campaign.book_files import FILES, kept, steps
from tests.campaign.files import FIXED, edit, write_campaign
from tests.campaign.test_on_spark import options
from tests.storage.campaigns import committed, published, rows_of, write_stored
from tests.storage.hdfs import HdfsServer

pytestmark = pytest.mark.spark

# A process of its own, because one that has a Spark already gets no other.
_RELEASE = """
import sys
from pathlib import Path
from adsbpc import Campaign
Campaign.load(Path(sys.argv[1])).release(through="2026-03-03")
"""
CLUSTER = """
"spark.master" = "local-cluster[2,1,2048]"
"spark.executor.memory" = "1g"
"spark.driver.host" = "127.0.0.1"
"""


def compare_with_duckdb(file: Path, store: RemotePath, directory: Path) -> None:
    """What is let in before noise, and every row of the books."""
    local = write_campaign(directory, 6, privacy=FIXED)
    Campaign.load(local).release(through="2026-03-03")
    assert kept(file.parent) == kept(directory)
    folders = zip(committed(file.parent, store), book_files.committed(directory), strict=True)
    for here, there in folders:
        assert rows_of(here) == book_files.rows_of(there)


def check_who_reads(hdfs: HdfsServer) -> None:
    """This machine's program has read and written no rows."""
    assert any(name.endswith(".parquet") for name in hdfs.moved["java"])
    assert not any(name.endswith(".parquet") for name in hdfs.moved["python"])
    assert any(name.endswith(MANIFEST) for name in hdfs.moved["python"])


def test_a_campaign_on_spark_with_books_in_a_store(
    hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path
) -> None:
    file = write_stored(tmp_path / "stored", hdfs_store, engine="spark", options=options())
    Campaign.load(file).release(through="2026-03-03")
    assert Campaign.load(file).verify().problem is None
    check_who_reads(hdfs)
    compare_with_duckdb(file, hdfs_store, tmp_path / "local")
    books = [step["books"] for step in steps(file.parent)]
    assert {(each["format"], *each["files"]) for each in books} == {(5, MANIFEST)}
    last = committed(file.parent, hdfs_store)[-1]
    listed = json.loads((last / MANIFEST).read_bytes())["files"]
    assert {name.split("/")[0] for name in listed} == set(FILES)
    # Size, hash, and the version that HDFS has.
    assert {len(seal) for seal in listed.values()} == {3}
    folder = last.url.removeprefix(hdfs.url)
    assert {f.permission for n, f in hdfs.files.items() if n.startswith(f"{folder}/names")} == {
        "600"
    }
    assert Campaign.load(file).audit().held
    # And goes on with another engine, from the same books, and back.
    edit(file, 'engine = "spark"', 'engine = "duckdb"')
    edit(file, options(), "threads = 1")
    assert Campaign.load(file).release(4)[0].release.slot == 4
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    edit(file, "threads = 1", options())
    assert Campaign.load(file).release(5)[0].release.slot == 5
    assert Campaign.load(file).audit().held


@pytest.mark.slow
def test_spark_gathers_books_in_a_store(
    hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsbpc.campaign.books.GATHERED_EVERY", 2)
    file = write_stored(tmp_path / "stored", hdfs_store, engine="spark", options=options())
    Campaign.load(file).release()
    check_who_reads(hdfs)
    local = write_campaign(tmp_path / "local", 6, privacy=FIXED)
    Campaign.load(local).release()
    assert kept(file.parent) == kept(local.parent)
    books = [step["books"] for step in steps(file.parent)]
    assert [(each["format"], each.get("first")) for each in books] == [
        (5, None), (6, 1), (5, None), (6, 3), (5, None), (6, 5),
    ]  # fmt: skip
    here = committed(file.parent, hdfs_store)
    there = book_files.committed(local.parent)
    assert rows_of(here[-1]) == book_files.rows_of(there[-1])
    assert {path.below(here[0])[0] for path in here[0].stamps()} == {MANIFEST}
    assert Campaign.load(file).audit().held


def test_books_that_were_changed_in_a_store_stop_spark(
    hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path
) -> None:
    file = write_stored(tmp_path, hdfs_store, engine="spark", options=options())
    Campaign.load(file).release(through="2026-03-02")
    first = committed(tmp_path, hdfs_store)[0]
    (part,) = [name for name in first.stamps() if "cells" in str(name)]
    for path in (part, first / MANIFEST):
        content = path.read_bytes()
        for damage in (None, content[:-1] + b"?"):
            path.unlink()
            if damage is not None:
                path.create(damage)
            with pytest.raises(LedgerError, match=path.name):
                Campaign.load(file).release(3)
            assert path.name in str(Campaign.load(file).verify().problem)
        path.unlink()
        # A copy that was put back has another version: executors read it whole.
        path.create(content)
    hdfs.behave()
    assert Campaign.load(file).release(3)[0].release.slot == 3
    assert part.url.removeprefix(hdfs.url) in hdfs.moved["java"]
    check_who_reads(hdfs)


def test_a_store_that_does_not_list_what_spark_wrote(
    hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path
) -> None:
    """Rows that nobody finds would be forgotten: what these people spent, they would have again."""
    file = write_stored(tmp_path, hdfs_store, engine="spark", options=options())
    hdfs.late = True
    with pytest.raises(LedgerError, match="it has to list files as soon as they are written"):
        Campaign.load(file).release(1)
    assert published(hdfs_store) == {}
    assert steps(tmp_path) == []
    hdfs.late = False
    assert not Campaign.load(file).release(1)[0].replayed


@pytest.mark.slow
def test_books_in_a_store_that_spark_executors_write(
    hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path
) -> None:
    file = write_stored(tmp_path / "stored", hdfs_store, engine="spark", options=CLUSTER)
    done = subprocess.run(
        [sys.executable, "-c", _RELEASE, file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    check_who_reads(hdfs)
    compare_with_duckdb(file, hdfs_store, tmp_path / "local")
    assert len(published(hdfs_store)) == 3
    assert load_spec(file).events.engine == "spark"
    assert Campaign.load(file).audit().held
