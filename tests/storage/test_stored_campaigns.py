"""Campaigns whose books and releases are in a store keep what those on a disk keep, to the last
unit, and refuse what those refuse."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign.book_seals import MANIFEST
from adsbpc.campaign.erasure import forget_in_books
from adsbpc.errors import LedgerError, SpecError
from adsbpc.model import load_spec
from adsbpc.storage import RemotePath
from tests.campaign import book_files
from tests.campaign.book_files import FILES, kept
from tests.campaign.files import FIXED, PERSONAL, edit, write_campaign
from tests.storage.campaigns import (
    committed,
    published,
    put_events,
    rows_of,
    write_stored,
    written_in_parts,
)
from tests.storage.s3 import S3Server


def released(directory: Path, store: RemotePath, slots: int = 6) -> Path:
    file = write_stored(directory, store, slots)
    Campaign.load(file).release()
    return file


def like_on_a_disk(file: Path, store: RemotePath, directory: Path) -> None:
    """What is let in before noise, and every row of the books."""
    local = write_campaign(directory, 6, privacy=FIXED)
    Campaign.load(local).release()
    assert kept(file.parent) == kept(directory)
    folders = zip(committed(file.parent, store), book_files.committed(directory), strict=True)
    for slot, (here, there) in enumerate(folders, start=1):
        files = FILES if slot == 6 else FILES[:-1]
        assert rows_of(here, files) == book_files.rows_of(there, files)
    campaign = Campaign.load(file)
    assert campaign.verify().problem is None
    assert campaign.audit().held
    assert published(store) == dict(enumerate(campaign._ledger.releases("acme", "spring"), 1))
    assert not (file.parent / "adsbpc-books").exists()
    assert not (file.parent / "adsbpc-releases").exists()


def test_the_same_as_on_a_disk(any_store: RemotePath, tmp_path: Path) -> None:
    file = write_stored(tmp_path / "stored", any_store)
    put_events(file, any_store)
    assert not any(one.replayed for one in Campaign.load(file).release())
    like_on_a_disk(file, any_store, tmp_path / "local")
    assert all(one.replayed for one in Campaign.load(file).release())


@pytest.mark.slow
def test_a_store_that_lists_late(store: RemotePath, s3: S3Server, tmp_path: Path) -> None:
    s3.late = True
    file = write_stored(tmp_path / "stored", store)
    for slot in range(1, 7):
        Campaign.load(file).release(slot)
    assert list(store.glob("*")) == [], "the store lists what was written: this tests nothing"
    like_on_a_disk(file, store, tmp_path / "local")


@pytest.mark.slow
def test_one_request_in_ten_fails(store: RemotePath, s3: S3Server, tmp_path: Path) -> None:
    s3.failing = True
    file = write_stored(tmp_path / "stored", store)
    put_events(file, store)
    Campaign.load(file).release()
    assert s3.failed > 20
    like_on_a_disk(file, store, tmp_path / "local")


@pytest.mark.slow
def test_what_is_out_of_use_is_swept(store: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path, store)
    first, *_ = folders = committed(tmp_path, store)
    left = {str(each): {path.name for path in each.stamps()} for each in folders}
    assert left[str(first)] == set(FILES[:-1])
    assert left[str(folders[-1])] == set(FILES)
    assert Campaign.load(file).verify().problem is None


@pytest.mark.parametrize("in_parts", [False, True])
def test_books_are_gathered(
    in_parts: bool, store: RemotePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsbpc.campaign.books.GATHERED_EVERY", 3)
    stored = write_stored(tmp_path / "stored", store, 10)
    with written_in_parts() if in_parts else nullcontext():
        Campaign.load(stored).release()
    local = write_campaign(tmp_path / "local", 10, privacy=FIXED)
    Campaign.load(local).release()
    assert kept(stored.parent) == kept(local.parent)
    here, there = committed(stored.parent, store), book_files.committed(local.parent)
    assert rows_of(here[5], FILES[:-1]) == book_files.rows_of(there[5], FILES[:-1])
    for slot, folder in enumerate(here[:6], start=1):
        names = {path.below(folder)[0] for path in folder.stamps()} - {MANIFEST}
        assert names == (set(FILES[:-1]) if slot % 3 == 0 else set())
    assert Campaign.load(stored).verify().problem is None
    assert Campaign.load(stored).audit().held


@pytest.mark.slow
def test_left_over_attempts_are_swept_and_never_read(store: RemotePath, tmp_path: Path) -> None:
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(1)
    other = committed(tmp_path, store)[0].parent / f"attempt={'0' * 32}"
    (other / FILES[0]).create(b"no Parquet file")
    Campaign.load(file).release()
    assert other.stamps() == {}


@pytest.mark.parametrize(
    "name", ["cells.parquet", *(pytest.param(n, marks=pytest.mark.slow) for n in FILES[2:-1])]
)
def test_changed_books_stop_everything(store: RemotePath, tmp_path: Path, name: str) -> None:
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(through="2026-03-03")
    path = committed(tmp_path, store)[1] / name
    content = path.read_bytes()
    path.unlink()
    for damage in (None, content[:-1] + b"?", content + b"more"):
        if damage is not None:
            path.create(damage)
        with pytest.raises(LedgerError, match=name):
            Campaign.load(file).release(4)
        assert name in str(Campaign.load(file).verify().problem)
        path.unlink(missing_ok=True)
    # A copy that was put back has another version in some stores: then it is read.
    path.create(content)
    assert not Campaign.load(file).release(4)[0].replayed


def test_books_with_another_version_are_read_whole(store: RemotePath, tmp_path: Path) -> None:
    """Releases look at size and version; bytes that were changed and have the same of both are for
    those who read everything."""
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(through="2026-03-02")
    reads: list[str] = []
    opened = RemotePath.open

    def noting(self: RemotePath, mode: str = "rb") -> object:
        reads.append(self.name)
        return opened(self, mode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemotePath, "open", noting)
        Campaign.load(file).release(3)
        assert reads == []
        assert Campaign.load(file).verify().problem is None
        assert sorted(set(reads)) == sorted(FILES)


def rolled_back(file: Path, more: int) -> None:
    """The ledger is put back from before some slots that people have seen."""
    copy = file.parent / "backup.sqlite"
    shutil.copy(file.parent / "ledger.sqlite", copy)
    for _ in range(more):
        Campaign.load(file).release(Campaign.load(file).status().released + 1)
    for each in file.parent.glob("ledger.sqlite*"):
        each.unlink()
    copy.rename(file.parent / "ledger.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("late", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("marks_too", [False, True])
def test_a_ledger_that_was_rolled_back(
    store: RemotePath, s3: S3Server, tmp_path: Path, late: bool, marks_too: bool
) -> None:
    s3.late = late
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(through="2026-03-03")
    rolled_back(file, 2)
    if marks_too:
        for number in range(1, 10):
            name = f"ledger-{number:06d}.json"
            (store / "adsbpc-releases" / "acme" / name).unlink(missing_ok=True)
    for act in (lambda: Campaign.load(file).release(4), lambda: Campaign.load(file).status()):
        with pytest.raises(LedgerError, match="slots 4 to 5: count as spent"):
            act()
    before = published(store)
    restored = Campaign.load(file).restore(str(store / "adsbpc-releases" / "acme" / "spring"))
    assert [one.release.slot for one in restored.releases] == [4, 5]
    assert published(store) == before
    assert not Campaign.load(file).release(6)[0].replayed
    assert Campaign.load(file).verify().problem is None
    assert Campaign.load(file).audit().held


def test_a_ledger_that_was_lost(store: RemotePath, s3: S3Server, tmp_path: Path) -> None:
    s3.late = True
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(1)
    for each in tmp_path.glob("ledger.sqlite*"):
        each.unlink()
    with pytest.raises(LedgerError, match="has no such scope"):
        Campaign.load(file).release(1)
    # Releases and marks are gone with it, and the books still say so.
    for each in (*published(store), *range(1, 4)):
        (store / f"adsbpc-releases/acme/spring/{each:04d}.json").unlink(missing_ok=True)
        (store / f"adsbpc-releases/acme/ledger-{each:06d}.json").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="has books of a campaign of this name"):
        Campaign.load(file).release(1)


def test_a_witness_in_another_store(store: RemotePath, tmp_path: Path) -> None:
    witness = store / "elsewhere" / "witness.json"
    file = write_campaign(tmp_path, witness=str(witness))
    Campaign.load(file).release(through="2026-03-02")
    rolled_back(file, 1)
    shutil.rmtree(tmp_path / "adsbpc-releases")
    with pytest.raises(LedgerError, match=r"witness-.*slot 3: counts as spent"):
        Campaign.load(file).release(3)


@pytest.mark.slow
@pytest.mark.parametrize("late", [pytest.param(False, marks=pytest.mark.slow), True])
def test_somebody_is_forgotten(store: RemotePath, s3: S3Server, tmp_path: Path, late: bool) -> None:
    s3.late = late
    file = write_stored(tmp_path, store)
    Campaign.load(file).release(through="2026-03-03")
    spec = load_spec(file)
    assert forget_in_books(spec, "u3") == "kept"
    assert forget_in_books(spec, "nobody") == "absent"
    Campaign.load(file).close()
    folders = committed(tmp_path, store)
    assert forget_in_books(spec, "u3") == "erased"
    assert not any((folder / name).exists() for folder in folders for name in FILES)
    assert forget_in_books(spec, "u3") == "absent"
    assert len(published(store)) == 3
    assert Campaign.load(file).verify().problem is None


def test_a_store_that_takes_nothing(store: RemotePath, s3: S3Server, tmp_path: Path) -> None:
    """Nothing is released or charged, and the next run goes on."""
    file = write_stored(tmp_path, store, privacy=PERSONAL)
    Campaign.load(file).release(1)
    s3.denied = {"PUT"}
    with pytest.raises(LedgerError, match=r"cannot be written .*permission denied.*again"):
        Campaign.load(file).release(2)
    assert len(Campaign.load(file)._ledger.releases("acme", "spring")) == 1
    s3.denied = {"GET", "HEAD"}
    with pytest.raises(LedgerError, match=r"cannot be read .*permission denied"):
        Campaign.load(file).release(2)
    s3.denied = set()
    assert not Campaign.load(file).release(2)[0].replayed


def test_what_a_campaign_file_may_say(store: RemotePath, tmp_path: Path) -> None:
    file = write_stored(tmp_path, store)
    edit(file, 'location = "ledger.sqlite"', f'location = "{store}/ledger.sqlite"')
    with pytest.raises(SpecError, match="transactions, which object storage does not have"):
        Campaign.load(file).status()
    file = write_stored(tmp_path, RemotePath("missing-folder"))
    with pytest.raises(SpecError, match=r"\[storage\] location.*no such folder"):
        Campaign.load(file).release(1)


def test_another_folder(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    file = write_stored(tmp_path / "campaign", RemotePath("../disk"))
    Campaign.load(file).release(through="2026-03-02")
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == [
        "adsbpc-books",
        "adsbpc-releases",
    ]
    assert Campaign.load(file).verify().problem is None
    assert Campaign.load(file).audit().held
