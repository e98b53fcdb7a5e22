"""A second place for the mark of what was published: written before anything is published, by
everybody, and never by somebody who knows less."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.errors import LedgerError, SpecError
from adsbpc.ledger import Ledger, Mark, MarkFile, MarkTable
from adsbpc.ledger.marks import Renewal
from adsbpc.model import load_spec
from tests.campaign.files import edit, published, write_campaign
from tests.campaign.victims import release_everything, victim

WITNESS = "elsewhere/witness.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path, witness=WITNESS)


def mark_in(file: Path) -> Path:
    return file.parent / "adsbpc-releases" / "acme" / "ledger.json"


def test_both_marks_say_what_the_ledger_holds(file: Path) -> None:
    for slot in (1, 2):
        Campaign.load(file).release(slot)
        standing = Ledger("ledger.sqlite", file.parent).mark("acme")
        assert standing is not None
        assert len(standing.campaigns["spring"]) == slot
        for place in (mark_in(file), file.parent / WITNESS):
            assert Mark.from_text(place.read_text()) == standing


def test_a_witness_that_is_declared_later_is_created(tmp_path: Path) -> None:
    """By the first run that has it, also if that only returns or shows what was released."""
    file = write_campaign(tmp_path)
    Campaign.load(file).release(1)
    (tmp_path / "elsewhere").mkdir()
    edit(file, 'location = "ledger.sqlite"', f'location = "ledger.sqlite"\nwitness = "{WITNESS}"')
    for act in (lambda: Campaign.load(file).release(1), Campaign.load(file).status):
        act()
        assert (tmp_path / WITNESS).read_text() == mark_in(file).read_text()
        (tmp_path / WITNESS).unlink()


def test_a_mark_of_an_earlier_version_is_read_and_replaced(file: Path) -> None:
    """It has the newest entry alone; what comes next is noted whole."""
    Campaign.load(file).release(1)
    note = json.loads(mark_in(file).read_text())
    old = {key: note[key] for key in ("scope", "position", "hash")}
    mark_in(file).write_text(json.dumps(old))
    (file.parent / WITNESS).unlink()
    assert Campaign.load(file).status().released == 1
    assert json.loads(mark_in(file).read_text()) == old
    Campaign.load(file).release(2)
    assert len(json.loads(mark_in(file).read_text())["campaigns"]["spring"]) == 2
    # An older ledger is refused by it, as ever.
    mark_in(file).write_text(json.dumps({**old, "position": 99}))
    with pytest.raises(LedgerError, match=r"had 99 entries, and ledger .* is older than that"):
        Campaign.load(file).release()


def test_nothing_is_published_that_the_witness_has_not_noted(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Campaign.load(file).release(1)
    before = published(file.parent)
    elsewhere, commit = file.parent / "elsewhere", Ledger.commit

    def lose_the_disk(self: Ledger, *arguments: Any) -> tuple[str, bool]:
        found = commit(self, *arguments)
        elsewhere.rename(elsewhere.with_name("unplugged"))
        elsewhere.write_text("not a folder")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", lose_the_disk)
        with pytest.raises(LedgerError, match=r"witness\.json: cannot be read"):
            Campaign.load(file).release(2)
    assert published(file.parent) == before
    # Nor is it shown, or anything more drawn, until the witness is back.
    for act in (Campaign.load(file).status, Campaign.load(file).release):
        with pytest.raises(LedgerError, match="Mount the disk"):
            act()
    ledger = Ledger("ledger.sqlite", file.parent)
    assert ledger.last_slot("acme", "spring") == 2
    elsewhere.unlink()
    elsewhere.with_name("unplugged").rename(elsewhere)
    (released,) = Campaign.load(file).release(2)
    assert released.replayed
    assert published(file.parent)[2] == released.text
    noted = json.loads((file.parent / WITNESS).read_text())
    assert len(noted["campaigns"]["spring"]) == 2


def test_a_witness_that_cannot_be_read_is_refused(file: Path) -> None:
    Campaign.load(file).release(1)
    (file.parent / WITNESS).write_text("{")
    for act in (Campaign.load(file).release, Campaign.load(file).status):
        with pytest.raises(LedgerError, match=r"witness\.json: cannot be read"):
            act()
    assert Ledger("ledger.sqlite", file.parent).last_slot("acme", "spring") == 1


def test_a_witness_of_another_ledger(file: Path) -> None:
    """Of the same scope, begun afresh: spending from both would break the promise."""
    other = write_campaign(file.parent / "other", witness=f"../{WITNESS}")
    Campaign.load(other).release(1)
    with pytest.raises(LedgerError, match=r"witness\.json: budget of scope 'acme' was spent"):
        Campaign.load(file).release()
    edit(file, f'witness = "{WITNESS}"', "")
    Campaign.load(file).release(1)
    edit(file, 'location = "ledger.sqlite"', f'location = "ledger.sqlite"\nwitness = "{WITNESS}"')
    with pytest.raises(LedgerError, match=r"or another one.*A lost ledger counts as spent"):
        Campaign.load(file).release()


def test_the_ledger_is_no_witness_of_itself(file: Path) -> None:
    edit(file, f'witness = "{WITNESS}"', 'witness = "ledger.sqlite"')
    with pytest.raises(SpecError, match=r"witness is the ledger itself.*name a place elsewhere"):
        load_spec(file)


def test_a_process_that_was_slow_writes_no_older_mark(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for the lock, another goes on."""
    renew = MarkFile.renew

    def wait_for_the_lock(self: MarkFile, renewal: Renewal) -> None:
        monkeypatch.undo()
        Campaign.load(file).release(2)
        renew(self, renewal)

    monkeypatch.setattr(MarkFile, "renew", wait_for_the_lock)
    Campaign.load(file).release(1)
    standing = Ledger("ledger.sqlite", file.parent).mark("acme")
    assert standing is not None
    assert len(standing.campaigns["spring"]) == 2
    for place in (mark_in(file), file.parent / WITNESS):
        assert Mark.from_text(place.read_text()) == standing
    assert published(file.parent).keys() == {1, 2}


def test_a_disk_that_is_not_there_is_no_new_witness(file: Path) -> None:
    Campaign.load(file).release(1)
    (file.parent / "elsewhere").rename(file.parent / "unplugged")
    for act in (Campaign.load(file).release, Campaign.load(file).status):
        with pytest.raises(LedgerError, match=r"elsewhere does not exist. Mount the disk"):
            act()


@pytest.mark.parametrize("where", ["file", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_two_campaigns_race_for_one_mark(
    where: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    witness = WITNESS
    if where == "postgresql":
        witness = str(request.getfixturevalue("postgresql_database"))
    spring = write_campaign(tmp_path, 12, witness=witness, privacy="scope_rho = 3.0")
    files = [spring]
    for name in ("summer", "autumn"):
        files.append(spring.with_name(f"{name}.toml"))
        files[-1].write_text(spring.read_text().replace('"spring"', f'"{name}"'))
    ready = multiprocessing.get_context("forkserver").Event()
    racers = [victim(release_everything, file, ready) for file in files]
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    standing = Ledger("ledger.sqlite", tmp_path).mark("acme")
    assert standing is not None
    assert {name: len(hashes) for name, hashes in standing.campaigns.items()} == {
        "spring": 12, "summer": 12, "autumn": 12,
    }  # fmt: skip
    assert Mark.from_text(mark_in(spring).read_text()) == standing
    if where == "postgresql":
        assert MarkTable(witness, "acme").read() == standing
    else:
        assert Mark.from_text((tmp_path / WITNESS).read_text()) == standing
    for file in files:
        assert Campaign.load(file).verify().problem is None
