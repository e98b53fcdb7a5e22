"""Kill -9 and a race while Spark writes books to a store: what was committed stays byte for byte,
nothing is charged twice, and what comes out is what DuckDB makes of the same events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.storage import RemotePath
from tests.campaign.test_on_spark import options
from tests.storage.campaigns import StoreOnlooker, marks, write_stored
from tests.storage.hdfs import HdfsServer
from tests.storage.test_books_on_spark import CLUSTER, compare_with_duckdb

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# A process of its own, because one that has a Spark already gets no other.
_RELEASE = """
import sys
from pathlib import Path
from adsbpc import Campaign
Campaign.load(Path(sys.argv[1])).release(int(sys.argv[2]))
"""
# Who has just done what with which file of the store, and whether its slot was committed by then.
_DEATHS = [
    ("java", "CREATE", "users.parquet", False),
    ("java", "RENAME", "cells.parquet", False),
    ("python", "RENAME", "manifest.json", False),
    ("python", "RENAME", "ledger-", True),
    ("python", "RENAME", "adsbpc-releases/acme/spring/", True),
]


Kill = Callable[[subprocess.Popen[str]], None]


def released_by(file: Path, slot: int) -> subprocess.Popen[str]:
    # Not to pipes, which are open until the last of its children ends.
    with (file.parent / "output.txt").open("a") as output:
        return subprocess.Popen(
            [sys.executable, "-c", _RELEASE, file, str(slot)],
            stdout=output, stderr=output, text=True, start_new_session=True,
        )  # fmt: skip


def said(file: Path) -> str:
    return (file.parent / "output.txt").read_text()


def the_whole_cluster(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def the_program_alone(process: subprocess.Popen[str]) -> None:
    """Executors go on writing until they notice, and the next release has begun."""
    process.kill()


def release_until(
    file: Path, slot: int, hdfs: HdfsServer, death: Sequence[str], kill: Kill
) -> None:
    """Release a slot and be killed as soon as the store has done something."""
    victims: list[subprocess.Popen[str]] = []

    def seen(agent: str, op: str, path: str) -> None:
        if [agent, op] == death[:2] and death[2] in path and "tmp" not in path:
            hdfs.behave()
            kill(victims[0])

    hdfs.seen = seen
    victims.append(released_by(file, slot))
    assert victims[0].wait() == -signal.SIGKILL, said(file)


@pytest.mark.parametrize("kill", [the_whole_cluster, the_program_alone])
def test_killed_while_spark_writes_to_a_store(
    kill: Kill, hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path
) -> None:
    engine = CLUSTER if kill is the_program_alone else options()
    file = write_stored(tmp_path / "stored", hdfs_store, engine="spark", options=engine)
    onlooker = StoreOnlooker(file, hdfs_store)
    for *death, was_committed in _DEATHS:
        before = onlooker.look()
        release_until(file, before + 1, hdfs, death, kill)
        assert onlooker.look() == before + was_committed, death
    for slot in (1, 2, 3):
        assert released_by(file, slot).wait() == 0, said(file)
    onlooker.finish(3)
    assert Campaign.load(file).audit().held
    compare_with_duckdb(file, hdfs_store, tmp_path / "undisturbed")


def test_two_clusters_on_one_slot(hdfs: HdfsServer, hdfs_store: RemotePath, tmp_path: Path) -> None:
    file = write_stored(tmp_path / "stored", hdfs_store, engine="spark", options=options())
    onlooker = StoreOnlooker(file, hdfs_store)
    for slot in (1, 2, 3):
        racers = [released_by(file, slot) for _ in range(2)]
        for racer in racers:
            assert racer.wait() == 0, said(file)
        assert onlooker.look() == slot
    attempts = (hdfs_store / "adsbpc-books" / "acme" / "spring").glob("slot=*/attempt=*")
    assert len(list(attempts)) > 3, "nobody raced"
    positions = [mark["position"] for mark in marks(hdfs_store)]
    assert positions == sorted(set(positions))
    onlooker.finish(3)
    compare_with_duckdb(file, hdfs_store, tmp_path / "undisturbed")
