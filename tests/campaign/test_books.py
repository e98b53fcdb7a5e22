"""Books of personal budgets: only what the ledger committed counts, and what was lost or changed
stops everything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.campaign.books import BookFolder
from adsbpc.errors import AdsbpcError, LedgerError
from adsbpc.ledger import Ledger
from adsbpc.model import load_spec
from adsbpc.storage import Place, hashes_of
from tests.campaign.book_files import FILES, attempts, committed, kept, rows_of, slot_folder, steps
from tests.campaign.files import FIXED, PERSONAL, edit, published, stored, write_campaign
from tests.effort import first

NAMES, CELLS, CUT, REST, USERS = FILES


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path, 8, privacy=FIXED)


def test_every_slot_has_books(file: Path) -> None:
    Campaign.load(file).release(through="2026-03-03")
    first, second, third = (rows_of(folder) for folder in committed(file.parent))
    users = [f"u{k}" for k in range(12)]
    assert [user for user, _ in first[NAMES]] == sorted(users)
    # Nobody came on the second slot: empty books, and the accounts as they were.
    assert (second[NAMES], second[CELLS], second[CUT]) == ([], [], [])
    assert second[USERS] == first[USERS]
    assert {slot for slot, *_ in third[CELLS]} == {3}
    assert third[USERS] != second[USERS]


def test_only_the_owner_may_read_them(file: Path) -> None:
    Campaign.load(file).release(1)
    assert committed(file.parent)[0].stat().st_mode & 0o077 == 0


def test_they_are_on_the_disk_before_the_ledger_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after the commit must not take a folder away: all that may be new are synced,
    up to the one of the campaign file."""
    synced: list[Path] = []
    at_commit: list[Path] = []
    commit = Ledger.commit

    def watched(self: Ledger, *arguments: Any) -> tuple[str, bool]:
        at_commit.extend(synced)
        return commit(self, *arguments)

    monkeypatch.setattr("adsbpc.campaign.books.sync_folder", synced.append)
    monkeypatch.setattr(Ledger, "commit", watched)
    Campaign.load(file).release(1)
    (folder,) = committed(file.parent)
    expected = [folder, *folder.parents]
    assert at_commit == expected[: expected.index(file.parent) + 1]


# ---- attempts that do not count ----------------------------------------------------------------


def fail_to_commit(file: Path, slot: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stop between the sealed books and the ledger; the attempt that is left behind."""
    before = attempts(file.parent, slot)

    def broken(*_: Any) -> tuple[str, bool]:
        raise LedgerError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", broken)
        with pytest.raises(LedgerError, match="the connection was lost"):
            Campaign.load(file).release(slot)
    (left,) = attempts(file.parent, slot) - before
    return slot_folder(file.parent, slot) / left


def spoil(folder: Path) -> None:
    for name in FILES:
        (folder / name).write_bytes(b"nobody should read this")


@pytest.mark.parametrize("slot", [1, 3])
def test_an_attempt_that_was_not_committed_does_not_count(
    slot: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = write_campaign(file.parent / "undisturbed", 8, privacy=FIXED)
    Campaign.load(undisturbed).release()
    for earlier in range(1, slot):
        Campaign.load(file).release(earlier)
    left = [fail_to_commit(file, slot, monkeypatch) for _ in range(2)]
    assert all((folder / name).exists() for folder in left for name in FILES)
    assert len(published(file.parent)) == slot - 1
    for folder in left:
        spoil(folder)
    Campaign.load(file).release(slot)
    assert committed(file.parent)[slot - 1] not in left
    Campaign.load(file).release()
    assert kept(file.parent) == kept(undisturbed.parent)
    assert rows_of(committed(file.parent)[-1]) == rows_of(committed(undisturbed.parent)[-1])
    assert Campaign.load(file).verify().problem is None


def test_what_is_out_of_use_is_swept_three_slots_later(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attempts and accounts of the past go, when nobody can be reading them; everything that later
    releases need stays."""
    Campaign.load(file).release(1)
    left = fail_to_commit(file, 2, monkeypatch)
    for slot in range(2, 6):
        Campaign.load(file).release(slot)
        assert left.exists()
    Campaign.load(file).release(6)
    assert not left.exists()
    Campaign.load(file).release()
    folders = committed(file.parent)
    assert [(folder / USERS).exists() for folder in folders] == [False] * 4 + [True] * 4
    for folder in folders:
        assert all((folder / name).exists() for name in (NAMES, CELLS, CUT))
    assert Campaign.load(file).verify().problem is None


# ---- books that were lost or changed -----------------------------------------------------------


def delete(name: str, slot: int) -> Callable[[Path], None]:
    return lambda directory: (committed(directory)[slot - 1] / name).unlink()


def truncate(name: str, slot: int) -> Callable[[Path], None]:
    def act(directory: Path) -> None:
        path = committed(directory)[slot - 1] / name
        path.write_bytes(path.read_bytes()[:-1])

    return act


def delete_everything(directory: Path) -> None:
    shutil.rmtree(directory / "adsbpc-books")


def put_another_slot_in_place(directory: Path) -> None:
    first, *_, last = committed(directory)
    shutil.rmtree(last)
    shutil.copytree(first, last)


def put_another_attempt_in_place(directory: Path) -> None:
    last = committed(directory)[-1]
    last.rename(last.with_name(f"attempt={'0' * 32}"))


def rename_the_first(directory: Path) -> None:
    first = committed(directory)[0]
    first.rename(first.with_name(f"attempt={'0' * 32}"))


def put_a_file_in_place(directory: Path) -> None:
    last = committed(directory)[-1]
    shutil.rmtree(last)
    last.write_text("not a folder")


def roll_back(directory: Path) -> None:
    shutil.rmtree(directory / "adsbpc-books")
    shutil.copytree(directory / "older", directory / "adsbpc-books")


DAMAGES = {
    **{f"{name} deleted": (delete(name, 4), "No such file") for name in FILES},
    **{f"{name} truncated": (truncate(name, 4), "is not what was written") for name in FILES},
    **{f"{name} of the past deleted": (delete(name, 1), "No such file") for name in FILES[:4]},
    **{
        f"{name} of the past truncated": (truncate(name, 2), "is not what was written")
        for name in FILES[:4]
    },
    "everything deleted": (delete_everything, "No such file"),
    "another slot": (put_another_slot_in_place, "is not what was written"),
    "another attempt": (put_another_attempt_in_place, "No such file"),
    "another attempt of the past": (rename_the_first, "No such file"),
    "a file": (put_a_file_in_place, "Not a directory"),
    "rolled back": (roll_back, "No such file"),
}


@pytest.fixture(scope="module")
def four_slots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign after four slots, with the books as they were after three."""
    file = write_campaign(tmp_path_factory.mktemp("four"), 8, privacy=FIXED)
    Campaign.load(file).release(through="2026-03-03")
    shutil.copytree(file.parent / "adsbpc-books", file.parent / "older")
    Campaign.load(file).release(4)
    return file.parent


@pytest.fixture
def going(four_slots: Path, tmp_path: Path) -> Path:
    """A campaign that goes on with its fifth slot, and sweeps what is left of the first."""
    shutil.copytree(four_slots, tmp_path, dirs_exist_ok=True)
    return tmp_path / "spring.toml"


@pytest.mark.parametrize(
    ("damage", "what"), first(8, [*DAMAGES.values()][::-1]), ids=[*DAMAGES][::-1]
)
def test_broken_books_stop_everything(
    damage: Callable[[Path], None], what: str, going: Path
) -> None:
    directory, ledger = going.parent, Ledger("ledger.sqlite", going.parent)
    shutil.copytree(directory / "adsbpc-books", directory / "backup")
    before, head = stored(directory / "ledger.sqlite"), ledger.head("acme")
    damage(directory)
    message = rf"adsbpc-books.*{what}.*nothing more may be released: restore the folder"
    for _ in range(2):
        with pytest.raises(LedgerError, match=message):
            Campaign.load(going).release()
    assert "restore the folder" in str(Campaign.load(going).verify().problem)
    # Nothing was charged, and what was released is returned and shown as ever.
    assert ledger.head("acme") == head
    assert stored(directory / "ledger.sqlite") == published(directory) == before
    assert Campaign.load(going).release(4)[0].text == before[4]
    assert Campaign.load(going).status().released == 4
    shutil.rmtree(directory / "adsbpc-books", ignore_errors=True)
    shutil.copytree(directory / "backup", directory / "adsbpc-books")
    assert Campaign.load(going).verify().problem is None
    assert not Campaign.load(going).release(5)[0].replayed


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(name: str, going: Path) -> None:
    """Wherever it is: files are as long as they were, but have another hash. Engines read many
    of them without complaint."""
    path = committed(going.parent)[-1] / name
    content = path.read_bytes()
    for place in (0, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        problem = str(Campaign.load(going).verify().problem)
        assert f"{name}: is not what was written" in problem
        with pytest.raises(LedgerError, match=f"{name}: is not what was written.*restore the"):
            Campaign.load(going).release()
    assert list(stored(going.parent / "ledger.sqlite")) == [1, 2, 3, 4]
    path.write_bytes(content)
    assert Campaign.load(going).verify().problem is None
    assert not Campaign.load(going).release(5)[0].replayed


def test_books_under_a_wrong_name_are_not_swept(going: Path) -> None:
    """They may be the only copy: nothing is removed before everything was found to be there."""
    first = committed(going.parent)[0]
    misnamed = first.rename(first.with_name(f"attempt={'0' * 32}"))
    with pytest.raises(LedgerError, match=r"slot=0001.*cannot be read"):
        Campaign.load(going).release()
    misnamed.rename(first)
    assert not Campaign.load(going).release(5)[0].replayed


def test_status_verify_reads_the_books(going: Path) -> None:
    path = committed(going.parent)[-1] / USERS
    path.write_bytes(path.read_bytes()[::-1])
    command = [sys.executable, "-m", "adsbpc", "status", going.name, "--verify"]
    done = subprocess.run(command, cwd=going.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not verify" in done.stderr
    assert "users.parquet: is not what was written" in done.stderr


def test_old_accounts_of_the_same_length_are_found(going: Path) -> None:
    """They would give people back what they have spent since."""
    third, fourth = committed(going.parent)[2:]
    assert (third / USERS).stat().st_size == (fourth / USERS).stat().st_size
    shutil.copy(third / USERS, fourth / USERS)
    assert "users.parquet: is not what was" in str(Campaign.load(going).verify().problem)
    with pytest.raises(LedgerError, match=r"users\.parquet: is not what was written"):
        Campaign.load(going).release()


def test_a_release_reads_whole_only_what_the_disk_says_was_written_again(going: Path) -> None:
    folder = BookFolder(load_spec(going), "conversions")
    old = committed(going.parent)[0]
    found: list[Path] = []

    def noting(files: Sequence[Place]) -> list[str | OSError]:
        found.extend(map(Path, map(str, files)))
        return hashes_of(files)

    def problem(**others: Any) -> str | None:
        found.clear()
        return folder.problem(steps(going.parent), hashes=noting, **others)

    # The campaign was copied to where it is: its hashes say that it is the same.
    assert problem() is None
    assert {each / CELLS for each in committed(going.parent)} <= set(found)
    Campaign.load(going).release(5)
    assert problem() is None
    assert old / CELLS in found
    new = committed(going.parent)[-1]
    assert not [path for path in found if path.is_relative_to(new)]
    # The same bytes, later, with the times of before: read, and accepted.
    path, times = new / CELLS, (new / CELLS).stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert problem() is None
    assert [each for each in found if each.is_relative_to(new)] == [path]
    # What neither says is found by who reads everything.
    assert problem(whole=True) is None
    assert {new / name for name in FILES} <= set(found)


def test_books_of_versions_that_noted_no_inode_are_read_whole(going: Path) -> None:
    noted = steps(going.parent)
    for step in noted:
        step["books"]["files"] = {n: seal[:2] for n, seal in step["books"]["files"].items()}
    folder = BookFolder(load_spec(going), "conversions")
    assert folder.problem(noted) is None
    (committed(going.parent)[-1] / USERS).write_bytes(b"PAR1")
    assert "users.parquet: is not what was written" in str(folder.problem(noted))


def test_the_same_ledger_from_another_folder(postgresql_database: str, tmp_path: Path) -> None:
    """The books are in one folder only: from another one, nothing more can be released, and what
    was is returned."""
    here, there = (
        write_campaign(tmp_path / name, location=postgresql_database, privacy=PERSONAL)
        for name in ("here", "there")
    )
    first = Campaign.load(here).release(1)
    assert Campaign.load(there).release(1)[0].text == first[0].text
    with pytest.raises(LedgerError, match=r"slot=0001.*cannot be read"):
        Campaign.load(there).release(2)
    shutil.copytree(here.parent / "adsbpc-books", there.parent / "adsbpc-books")
    assert len(Campaign.load(there).release()) == 5


@pytest.mark.parametrize("sign", ["[1]", "{1}", "*", "?", "\\"])
def test_a_folder_that_an_engine_takes_for_a_pattern(sign: str, file: Path) -> None:
    """Refused before the first slot: some engine could write books there that it cannot read."""
    odd = file.parent / f"odd{sign}"
    odd.mkdir()
    for key in ("impressions", "conversions"):
        edit(file, f'"{key}.parquet"', f'"{file.parent / key}.parquet"')
    moved = file.rename(odd / file.name)
    with pytest.raises(AdsbpcError, match="Rename the folder"):
        Campaign.load(moved).release(1)
    assert not (odd / "ledger.sqlite").exists()


def test_names_with_odd_signs(file: Path) -> None:
    edit(file, 'name = "spring"', 'name = "a [/] *.b {c} %2E ü"')
    edit(file, 'scope = "acme"', 'scope = "../?"')
    assert len(Campaign.load(file).release()) == 8
    assert Campaign.load(file).verify().problem is None
    assert [folder.name for folder in (file.parent / "adsbpc-books").iterdir()] == ["%2E%2E%2F%3F"]
