"""Eight processes release the same slot at once: one charge, one release, on both databases."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign import release
from adsbpc.campaign.planning import plan_anew
from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import Measures
from adsbpc.model import CampaignSpec, Release
from tests.campaign.book_files import FILES, attempts, committed, kept, rows_of
from tests.campaign.files import FIXED, PERSONAL, published, write_campaign
from tests.campaign.victims import release_together, victim

RACERS = 8


def race(file: Path, slot: int) -> list[tuple[str, bool]]:
    context = multiprocessing.get_context("forkserver")
    barrier, answers = context.Barrier(RACERS), context.Queue()
    racers = [victim(release_together, file, slot, barrier, answers) for _ in range(RACERS)]
    found = [answers.get(timeout=120) for _ in racers]
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
    return found


def location_of(database: str, request: pytest.FixtureRequest) -> str:
    if database == "sqlite":
        return "ledger.sqlite"
    return str(request.getfixturevalue("postgresql_database"))


def race_through(file: Path, location: str, slots: int) -> None:
    """The first slot also races for creating the ledger, its schema, scope and campaign."""
    directory, ledger = file.parent, Ledger(location, file.parent)
    for slot in range(1, slots + 1):
        found = race(file, slot)
        texts, replays = {text for text, _ in found}, [replayed for _, replayed in found]
        assert len(texts) == 1
        assert replays.count(False) == 1
        assert ledger.releases("acme", "spring")[slot - 1 :] == list(texts)
        assert published(directory)[slot] == texts.pop()
    # scope, campaign, and for each slot its charges, a state, a release
    stored = map(Release.from_text, ledger.releases("acme", "spring"))
    charges = sum(len(each.charges) for each in stored)
    assert ledger.verify("acme").entries == 2 + charges + slots * 2
    assert Campaign.load(file).verify().problem is None


DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.mark.parametrize("database", DATABASES)
def test_eight_processes_on_one_slot(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    location = location_of(database, request)
    race_through(write_campaign(tmp_path, location=location), location, 3)


@pytest.mark.slow
@pytest.mark.parametrize("database", DATABASES)
def test_eight_processes_on_one_slot_with_books(
    database: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Each writes books of its own and one of them counts. From the fifth slot on, all eight sweep
    what the first one left, too."""
    location = location_of(database, request)
    race_through(write_campaign(tmp_path, location=location, privacy=PERSONAL), location, 5)
    folders = committed(tmp_path, location)
    assert any(len(attempts(tmp_path, slot)) > 1 for slot in (2, 3, 4, 5)), "nobody raced"
    assert attempts(tmp_path, 1) == {folders[0].name}
    with pytest.raises(FileNotFoundError):
        rows_of(folders[0], ["users.parquet"])
    # Twelve people, who all came on the first slot.
    assert len(rows_of(folders[-1])["users.parquet"]) == 12
    assert [len(rows_of(each, FILES[:1])[FILES[0]]) for each in folders] == [12, 0, 0, 0, 0]


@pytest.mark.slow
def test_racers_that_keep_the_same(tmp_path: Path) -> None:
    """Of eight attempts at every slot none is counted on top of another: what is let in is what a
    single process lets in."""
    alone = write_campaign(tmp_path / "alone", privacy=FIXED)
    Campaign.load(alone).release()
    file = write_campaign(tmp_path / "raced", privacy=FIXED)
    for slot in (1, 2, 3):
        race(file, slot)
    Campaign.load(file).release()
    assert kept(file.parent) == kept(alone.parent)
    assert rows_of(committed(file.parent)[-1]) == rows_of(committed(alone.parent)[-1])


def started_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next to plan a campaign finds, when it asks for room, that another has started it."""

    def slow_plan(spec: CampaignSpec) -> Measures:
        monkeypatch.undo()
        assert not Campaign(spec).release(slot=1)[0].replayed
        return plan_anew(spec)

    monkeypatch.setattr(release, "plan_anew", slow_plan)


@pytest.mark.parametrize("privacy", ["", "scope_rho = 5.0"], ids=["no more room", "room for more"])
def test_another_starts_the_campaign_meanwhile(
    privacy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_campaign(tmp_path, privacy=privacy)
    campaign, ledger = Campaign.load(file), Ledger("ledger.sqlite", tmp_path)
    started_by_another(monkeypatch)
    found = campaign.release(through="2026-03-02")
    assert [one.replayed for one in found] == [True, False]
    # Its budget is reserved once.
    assert ledger.reserved("acme") == campaign.status().campaign_budget.limit_pico_rho
    assert campaign.verify().problem is None


def test_the_plan_of_who_came_late_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_campaign(tmp_path, privacy="scope_rho = 5.0")
    campaign, ledger = Campaign.load(file), Ledger("ledger.sqlite", tmp_path)
    started_by_another(monkeypatch)
    with pytest.raises(LedgerError, match="was started by another process meanwhile"):
        campaign.release(slot=2)
    assert ledger.last_slot("acme", "spring") == 1
    assert not campaign.release(slot=2)[0].replayed
    assert ledger.reserved("acme") == campaign.status().campaign_budget.limit_pico_rho
