"""Ledgers that were lost, rolled back, forked or changed never refund what was spent."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.errors import LedgerError
from tests.campaign.files import edit, published, stored, write_campaign


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path)


def test_published_files_that_went_missing_come_back(file: Path) -> None:
    first = Campaign.load(file).release()
    shutil.rmtree(file.parent / "adsbpc-releases")
    Campaign.load(file).release()
    assert published(file.parent) == {one.release.slot: one.text for one in first}


def test_a_published_file_that_was_changed_is_refused(file: Path) -> None:
    Campaign.load(file).release(1)
    changed = file.parent / "adsbpc-releases" / "acme" / "spring" / "0001.json"
    changed.write_text(changed.read_text().replace("opendp", "0pendp"))
    with pytest.raises(LedgerError, match=r"0001\.json: is not what the ledger says"):
        Campaign.load(file).release(1)
    assert "0001.json" in str(Campaign.load(file).verify().problem)


@pytest.mark.parametrize("name", ["spring.toml", "summer.toml"])
def test_a_deleted_ledger_is_no_fresh_budget(file: Path, name: str) -> None:
    """Neither for the campaign itself nor for another one of the same scope."""
    Campaign.load(file).release(through="2026-03-02")
    (file.parent / "ledger.sqlite").unlink()
    if name == "summer.toml":
        file = file.rename(file.with_name(name))
        edit(file, 'name = "spring"', 'name = "summer"')
    for act in (Campaign.load(file).release, Campaign.load(file).status):
        with pytest.raises(LedgerError, match=r"A lost ledger counts as spent: restore it"):
            act()
    assert not (file.parent / "ledger.sqlite").exists()


def test_another_ledger_is_no_fresh_budget(file: Path) -> None:
    Campaign.load(file).release(1)
    edit(file, 'location = "ledger.sqlite"', 'location = "other.sqlite"')
    with pytest.raises(LedgerError, match=r"has no such scope.* or put \[ledger\] location back"):
        Campaign.load(file).release()
    # Nor one in which the same scope was begun afresh, elsewhere.
    elsewhere = write_campaign(file.parent / "elsewhere")
    Campaign.load(elsewhere).release(1)
    shutil.copy(elsewhere.parent / "ledger.sqlite", file.parent / "other.sqlite")
    with pytest.raises(LedgerError, match="is older than that, or another one"):
        Campaign.load(file).release()


def test_a_ledger_from_an_old_backup_is_refused(file: Path) -> None:
    Campaign.load(file).release(1)
    shutil.copy(file.parent / "ledger.sqlite", file.parent / "backup")
    Campaign.load(file).release(2)
    shutil.copy(file.parent / "backup", file.parent / "ledger.sqlite")
    for act in (Campaign.load(file).release, Campaign.load(file).status):
        with pytest.raises(LedgerError, match=r"had 10 entries, .* is older than that"):
            act()
    assert "is older than that" in str(Campaign.load(file).verify().problem)


def test_a_rollback_is_seen_by_every_campaign_of_the_scope(file: Path) -> None:
    """Restoring a backup from before another campaign's releases would refund them."""
    edit(file, "rho = 1.0", "rho = 1.0\nscope_rho = 2.0")
    Campaign.load(file).release(1)
    shutil.copy(file.parent / "ledger.sqlite", file.parent / "backup")
    second, third = file.with_name("summer.toml"), file.with_name("autumn.toml")
    for other in (second, third):
        name = f'name = "{other.stem}"'
        other.write_text(file.read_text().replace('name = "spring"', name))
    Campaign.load(second).release()
    shutil.copy(file.parent / "backup", file.parent / "ledger.sqlite")
    for other in (file, second, third):
        with pytest.raises(LedgerError, match="is older than that"):
            Campaign.load(other).release()


def test_a_forked_ledger_is_refused(file: Path) -> None:
    """Another folder drew the same slot again from a copy of the ledger."""
    Campaign.load(file).release(1)
    elsewhere = file.parent.parent / "elsewhere"
    shutil.copytree(file.parent, elsewhere)
    Campaign.load(file).release(2)
    Campaign.load(elsewhere / file.name).release(2)
    shutil.copy(elsewhere / "ledger.sqlite", file.parent / "ledger.sqlite")
    with pytest.raises(LedgerError, match="or another one"):
        Campaign.load(file).release(3)


def test_what_a_report_shows_is_remembered(file: Path) -> None:
    """A slot that was committed and not published counts as published once it was shown."""
    Campaign.load(file).release(1)
    shutil.copy(file.parent / "ledger.sqlite", file.parent / "backup")
    mark = file.parent / "adsbpc-releases" / "acme" / "ledger.json"
    before = mark.read_text()
    Campaign.load(file).release(2)
    # As a crash right after the commit would have left it.
    mark.write_text(before)
    (mark.parent / "spring" / "0002.json").unlink()
    assert len(Campaign.load(file).report().releases) == 2
    shutil.copy(file.parent / "backup", file.parent / "ledger.sqlite")
    with pytest.raises(LedgerError, match="is older than that"):
        Campaign.load(file).release(2)


def test_a_changed_amount_stops_releases(file: Path) -> None:
    Campaign.load(file).release(1)
    with closing(sqlite3.connect(file.parent / "ledger.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER adsbpc_entries_no_update")
        connection.execute("UPDATE adsbpc_entries SET pico_rho = 0 WHERE kind = 'charge'")
    with pytest.raises(LedgerError, match="Release nothing more"):
        Campaign.load(file).release()


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("scope", "add-remove", "substitute"),
        ("campaign", '"slot_pico_rho": [', '"slot_pico_rho": [1, '),
        ("state", '"up": [', '"up": [1'),
        ("state", '"secret"', '"Secret"'),
        ("release", '"values":[', '"values":[1'),
    ],
)
def test_a_changed_body_stops_releases(kind: str, before: str, after: str, tmp_path: Path) -> None:
    """Whatever is read goes on from what was written, or not at all."""
    section = "[privacy.adsbpc]\nbounds = 'svt'\nquantile_slots = 1"
    file = write_campaign(tmp_path, privacy=section)
    Campaign.load(file).release(through="2026-03-03")
    spent = Campaign.load(file).status().campaign_budget.spent_pico_rho
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection, connection:
        connection.execute("DROP TRIGGER adsbpc_entries_no_update")
        changed = connection.execute(
            "UPDATE adsbpc_entries SET body = replace(body, ?, ?)"
            " WHERE kind = ? AND body LIKE '%' || ? || '%'"
            " AND position = (SELECT max(position) FROM adsbpc_entries WHERE kind = ?)",
            (before, after, kind, before, kind),
        ).rowcount
        assert changed == 1
    published_before = published(tmp_path)
    message = rf"\({kind}.* is not what was written\. Release nothing more"
    # The next slot goes on from state, and looks at no release.
    for slot in (None,) if kind == "release" else (None, 4):
        with pytest.raises(LedgerError, match=message):
            Campaign.load(file).release(slot)
    assert len(stored(tmp_path / "ledger.sqlite")) == 3
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        charged = "SELECT sum(pico_rho) FROM adsbpc_entries WHERE kind = 'charge'"
        assert connection.execute(charged).fetchone() == (spent,)
    assert published(tmp_path) == published_before
    assert "is not what was written" in str(Campaign.load(file).verify().problem)


def test_a_mark_that_cannot_be_read_is_refused(file: Path) -> None:
    Campaign.load(file).release(1)
    (file.parent / "adsbpc-releases" / "acme" / "ledger.json").write_text("{")
    with pytest.raises(LedgerError, match=r"ledger\.json: cannot be read"):
        Campaign.load(file).release()
