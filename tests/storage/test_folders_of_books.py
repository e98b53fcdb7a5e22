"""Books in folders of several files with a manifest, as a cluster writes them, here by an engine
that is quick to start: what holds for single files holds for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign import books
from adsbpc.campaign.book_seals import MANIFEST
from adsbpc.campaign.erasure import forget_in_books
from adsbpc.errors import LedgerError
from adsbpc.model import load_spec
from adsbpc.storage import RemotePath
from tests.campaign.book_files import FILES, kept, steps
from tests.campaign.files import write_campaign
from tests.storage.campaigns import (
    PARTS,
    committed,
    copied_to_a_disk,
    write_stored,
    written_in_parts,
)
from tests.storage.test_stored_campaigns import like_on_a_disk


@pytest.fixture(autouse=True)
def writing_in_parts() -> Iterator[None]:
    with written_in_parts():
        yield


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> RemotePath:
    return RemotePath(f"memory://bucket/{request.node.name}")


def released(directory: Path, store: RemotePath, through: str) -> Path:
    file = write_stored(directory, store)
    Campaign.load(file).release(through=through)
    return file


def test_the_same_as_in_single_files(any_store: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path / "stored", any_store, "2026-03-06")
    named = [step["books"] for step in steps(file.parent)]
    assert {(each["format"], *each["files"]) for each in named} == {(5, MANIFEST)}
    folder = committed(file.parent, any_store)[-1]
    listed = json.loads((folder / MANIFEST).read_bytes())["files"]
    parts = {f"{name}/part-{part:05d}.parquet" for name in FILES for part in range(PARTS)}
    assert set(listed) == parts
    like_on_a_disk(file, any_store, tmp_path / "local")


def test_a_long_campaign(
    memory: RemotePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole books now and then, and in between what has changed."""
    monkeypatch.setattr(books, "WHOLE_EVERY", 3)
    long = 'mechanism = "personal-budget"\n[privacy.personal_budget]\nstrategy = "toeplitz"'
    long += "\nbeta = 0.4\nallowance = 1.0"
    stored = write_stored(tmp_path / "stored", memory, 1_100, long, slot="1h")
    local = write_campaign(tmp_path / "local", 1_100, "1h", privacy=long)
    for slot in range(1, 6):
        for file in (stored, local):
            Campaign.load(file).release(slot)
    assert kept(stored.parent) == kept(local.parent)
    assert any(kept(local.parent))
    assert [step["books"]["format"] for step in steps(stored.parent)] == [5] * 5
    assert [step["books"]["whole"] for step in steps(stored.parent)].count(True) == 1
    assert Campaign.load(stored).verify().problem is None
    assert Campaign.load(stored).audit().held


def test_a_changed_part_or_manifest_stops_everything(memory: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path, memory, "2026-03-03")
    folder = committed(tmp_path, memory)[0]
    for path in (folder / "cells.parquet" / "part-00001.parquet", folder / MANIFEST):
        content = path.read_bytes()
        path.unlink()
        for damage in (None, content + b"more"):
            if damage is not None:
                path.create(damage)
            with pytest.raises(LedgerError, match=path.name):
                Campaign.load(file).release(4)
            assert path.name in str(Campaign.load(file).verify().problem)
            assert not Campaign.load(file).audit().held
            path.unlink(missing_ok=True)
        path.create(content)
    # A part that no manifest names was left by an attempt that failed: nobody reads it.
    (folder / "cells.parquet" / "part-00009.parquet").create(b"no Parquet file")
    assert not Campaign.load(file).release(4)[0].replayed
    assert Campaign.load(file).audit().held


def test_a_manifest_of_a_later_version_is_refused(memory: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path, memory, "2026-03-02")
    step = steps(tmp_path)[1]
    step["books"]["format"] = 7
    folder = books.BookFolder.all_of(load_spec(file))[0]
    problem = folder.problem([steps(tmp_path)[0], step])
    assert "slot 2: its books have format 7: this adsbpc reads formats 1 to 6" in str(problem)


def test_what_is_out_of_use_is_swept(memory: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path, memory, "2026-03-01")
    other = committed(tmp_path, memory)[0].parent / f"attempt={'0' * 32}"
    (other / "cells.parquet" / "part-00000.parquet").create(b"no Parquet file")
    Campaign.load(file).release()
    first, *_, last = committed(tmp_path, memory)
    assert {path.below(first)[0] for path in first.stamps()} == {*FILES[:-1], MANIFEST}
    assert {path.below(last)[0] for path in last.stamps()} == {*FILES, MANIFEST}
    assert other.stamps() == {}
    assert Campaign.load(file).verify().problem is None


def test_somebody_is_forgotten(memory: RemotePath, tmp_path: Path) -> None:
    file = released(tmp_path, memory, "2026-03-03")
    spec = load_spec(file)
    assert forget_in_books(spec, "u3") == "kept"
    assert forget_in_books(spec, "nobody") == "absent"
    Campaign.load(file).close()
    assert forget_in_books(spec, "u3") == "erased"
    books_left = (memory / "adsbpc-books").stamps()
    assert {path.name for path in books_left} == {"released"}
    assert forget_in_books(spec, "u3") == "absent"
    assert Campaign.load(file).verify().problem is None


def test_books_that_were_copied_to_a_disk(memory: RemotePath, tmp_path: Path) -> None:
    """A campaign moves: its folders are copied, and it goes on with single files."""
    file = released(tmp_path, memory, "2026-03-03")
    copied_to_a_disk(file, memory)
    for slot in (4, 5, 6):
        assert not Campaign.load(file).release(slot)[0].replayed
    assert [step["books"]["format"] for step in steps(tmp_path)] == [5, 5, 5, 2, 2, 2]
    assert Campaign.load(file).verify().problem is None
    assert Campaign.load(file).audit().held
