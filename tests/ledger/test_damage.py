"""Files that were damaged, disks that are full, folders that cannot be written."""

from __future__ import annotations

import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from tests.ledger.entries import STEP, release_of, start
from tests.small_world import in_a_small_world, read_only, small

FLIPS = 400


def filled(directory: Path) -> Path:
    ledger = Ledger("ledger.sqlite", directory)
    start(ledger, 10, 7)
    for slot in range(2, 16):
        ledger.commit(release_of(slot, 10 * slot, 7), STEP)
    return directory / "ledger.sqlite"


def rows(file: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT * FROM adsbpc_entries ORDER BY position").fetchall()


def flip(file: Path, position: int, bit: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1 << bit
    file.write_bytes(content)


def noticed(directory: Path) -> bool:
    """Whether verification reports a problem, or the file cannot even be opened."""
    try:
        return Ledger("ledger.sqlite", directory).verify("acme").problem is not None
    except LedgerError:
        return True


def test_a_flipped_bit_anywhere_is_found(tmp_path: Path) -> None:
    file = filled(tmp_path)
    Ledger("ledger.sqlite", tmp_path).seal()
    assert not noticed(tmp_path)
    whole, chance = file.read_bytes(), random.Random(1)
    for _ in range(FLIPS):
        file.write_bytes(whole)
        flip(file, chance.randrange(len(whole)), chance.randrange(8))
        assert noticed(tmp_path)


@pytest.mark.slow
def test_a_flipped_bit_is_found_or_harmless_without_a_seal(tmp_path: Path) -> None:
    """After a crash the seal is old. A bit that goes unnoticed then has changed no entry."""
    file = filled(tmp_path)
    whole, original, chance = file.read_bytes(), rows(file), random.Random(1)
    for _ in range(FLIPS):
        file.write_bytes(whole)
        flip(file, chance.randrange(len(whole)), chance.randrange(8))
        assert noticed(tmp_path) or rows(file) == original


def test_an_old_seal_says_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    ledger = Ledger("ledger.sqlite", tmp_path)
    ledger.seal()
    ledger.commit(release_of(16, 5), STEP)
    assert ledger.verify("acme").problem is None
    ledger.seal()
    assert ledger.verify("acme").problem is None


def test_a_broken_seal_is_told(tmp_path: Path) -> None:
    filled(tmp_path)
    ledger = Ledger("ledger.sqlite", tmp_path)
    ledger.seal()
    seal = tmp_path / "ledger.sqlite.seal"
    seal.write_text(seal.read_text().replace('"sha256": "', '"sha256": "0'))
    assert "is not as adsbpc left it" in str(ledger.verify("acme").problem)
    # A run that adds nothing must not make it good again.
    ledger.seal()
    assert "is not as adsbpc left it" in str(ledger.verify("acme").problem)


@pytest.mark.parametrize(
    "sought", [b"opendp", b'"slot":7', b"acme", b"part 0", b"charge", b"12345"]
)
def test_a_flipped_bit_in_what_matters_is_found(sought: bytes, tmp_path: Path) -> None:
    file = filled(tmp_path)
    whole = file.read_bytes()
    position = whole.index(sought)
    for bit in range(8):
        file.write_bytes(whole)
        flip(file, position + len(sought) - 1, bit)
        assert noticed(tmp_path)


@pytest.mark.parametrize("content", [b"nonsense" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(content)
    ledger = Ledger("ledger.sqlite", tmp_path)
    with pytest.raises(LedgerError, match="Restore it from a backup"):
        start(ledger)
    assert (tmp_path / "ledger.sqlite").read_bytes() == content


def test_an_entry_that_cannot_be_read(tmp_path: Path) -> None:
    file = filled(tmp_path)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TRIGGER adsbpc_entries_no_update")
        connection.execute("UPDATE adsbpc_entries SET body = 'x' WHERE kind = 'state'")
    with pytest.raises(LedgerError, match="Run adsbpc status --verify"):
        Ledger("ledger.sqlite", tmp_path).steps("acme", "spring")


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="Check that the folder exists"):
        start(Ledger("no/where/ledger.sqlite", tmp_path))


COMMIT = """
import sys
from pathlib import Path
from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from tests.ledger.entries import STEP, release_of, start
ledger = Ledger("ledger.sqlite", Path(sys.argv[1]))
try:
    start(ledger)
    for slot in range(2, 1000):
        ledger.commit(release_of(slot, 1), {"ballast": "x" * 20_000})
except LedgerError as error:
    print(error)
"""


def commit_in(directory: Path, mount: str) -> str:
    done = in_a_small_world(mount, sys.executable, "-c", COMMIT, str(directory))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk(tmp_path: Path) -> None:
    message = commit_in(tmp_path, small(tmp_path, 600))
    assert "full. Free some space and run the same command again" in message


def test_a_read_only_folder(tmp_path: Path) -> None:
    message = commit_in(tmp_path, read_only(tmp_path))
    assert "cannot be created (Read-only file system). Check that the folder exists" in message


def test_a_read_only_ledger(tmp_path: Path) -> None:
    filled(tmp_path)
    assert "that adsbpc may write there" in commit_in(tmp_path, read_only(tmp_path))


def test_a_full_database_charges_nothing(tmp_path: Path) -> None:
    """SQLite's own limit on pages: the commit fails, and with it the whole slot."""
    ledger = Ledger("ledger.sqlite", tmp_path)
    start(ledger, 5)
    from sqlalchemy import event

    def limited(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 8")

    event.listen(ledger._database._engine, "connect", limited)
    with pytest.raises(LedgerError, match=r"full\. Free some space"):
        ledger.commit(release_of(2, 5), {"ballast": "x" * 100_000})
    again = Ledger("ledger.sqlite", tmp_path)
    assert again.spent("acme") == 5
    assert again.last_slot("acme", "spring") == 1
    assert again.verify("acme").problem is None
