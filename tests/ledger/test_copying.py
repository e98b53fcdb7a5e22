"""A ledger carried to another place is the same ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from adsbpc import Campaign
from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from adsbpc.ledger.copying import copy_ledger
from adsbpc.ledger.database import Database
from tests.campaign.files import write_campaign


def test_from_sqlite_to_postgresql_and_back(tmp_path: Path, postgresql_database: str) -> None:
    file = write_campaign(tmp_path, 4)
    campaign = Campaign.load(file)
    for slot in (1, 2):
        campaign.release(slot)
    before = campaign.verify()
    assert before.problem is None
    copied = copy_ledger("ledger.sqlite", postgresql_database, tmp_path)
    assert copied == before.entries
    moved = file.read_text(encoding="utf-8").replace("ledger.sqlite", postgresql_database)
    file.write_text(moved, encoding="utf-8")
    campaign = Campaign.load(file)
    assert campaign.verify() == before
    # The campaign goes on, and the ledger that was left behind is told from the one that counts.
    campaign.release(3)
    assert copy_ledger(postgresql_database, "back.sqlite", tmp_path) > copied
    file.write_text(moved.replace(postgresql_database, "ledger.sqlite"), encoding="utf-8")
    with pytest.raises(LedgerError, match="is older than that"):
        Campaign.load(file).release(3)
    file.write_text(moved.replace(postgresql_database, "back.sqlite"), encoding="utf-8")
    assert Campaign.load(file).release(4)[0].release.slot == 4


def test_nothing_is_written_over(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 2)
    Campaign.load(file).release(1)
    copy_ledger("ledger.sqlite", "copy.sqlite", tmp_path)
    with pytest.raises(LedgerError, match=r"holds rows already.*Give an empty database"):
        copy_ledger("ledger.sqlite", "copy.sqlite", tmp_path)


def test_a_damaged_ledger_is_not_passed_on(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 2)
    Campaign.load(file).release(1)
    with Database("ledger.sqlite", tmp_path).writing("test") as connection:
        connection.execute(text("DROP TRIGGER adsbpc_entries_no_update"))
        connection.execute(text("UPDATE adsbpc_entries SET pico_rho = 1 WHERE kind = 'charge'"))
    with pytest.raises(LedgerError, match="does not verify"):
        copy_ledger("ledger.sqlite", "copy.sqlite", tmp_path)


def test_the_copy_is_a_ledger(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 2)
    released = Campaign.load(file).release(1)
    copy_ledger("ledger.sqlite", "copy.sqlite", tmp_path)
    spec = Campaign.load(file).spec.campaign
    copy = Ledger("copy.sqlite", tmp_path)
    assert copy.releases(spec.scope, spec.name) == [released[0].text]


def test_who_opened_the_old_ledger_before_cannot_spend_from_it(tmp_path: Path) -> None:
    """`release` and `restore` hold no lock of a data folder: the old file itself refuses them."""
    campaign = Campaign.load(write_campaign(tmp_path, 3))
    campaign.release(1)
    ledger = Ledger("ledger.sqlite", tmp_path)
    spent = ledger.spent(campaign.spec.campaign.scope)
    copy_ledger("ledger.sqlite", "copy.sqlite", tmp_path)
    with pytest.raises(LedgerError, match=r"was moved.*Set \[ledger\] location"):
        campaign.release(2)
    with pytest.raises(LedgerError, match="was moved"):
        campaign.close()
    assert ledger.spent(campaign.spec.campaign.scope) == spent
    published = [each.name for each in tmp_path.rglob("0002.json")]
    assert published == []
