"""Drills: everything but the witness is put back from a backup after people have seen more."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign import restore
from adsbpc.errors import LedgerError, PrivacyError
from adsbpc.ledger import Ledger
from tests.campaign.accidents import Accident
from tests.campaign.drills import (
    MECHANISMS,
    WITNESS,
    accident_in,
    go_on,
    location_of,
    refuse,
)
from tests.campaign.files import FIXED, edit, published, write_campaign
from tests.campaign.victims import (
    die_restoring_at,
    first_in_each_state,
    trace_of,
    trace_restore,
    victim,
)
from tests.effort import first


@pytest.mark.parametrize(
    ("privacy", "database"),
    [
        pytest.param(
            privacy,
            database,
            id=f"{name}-{database}",
            # One mechanism on both databases; all of them in the long run.
            marks=[] if name == "personal" else [pytest.mark.slow],
        )
        for name, privacy in MECHANISMS.items()
        for database in ("sqlite", "postgresql")
    ],
)
def test_a_drill(
    privacy: str,
    database: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accident = accident_in(tmp_path, privacy, location_of(database, request))
    refuse(accident, monkeypatch)
    restored = accident.campaign().restore(accident.seen)
    assert [one.release.slot for one in restored.releases] == [4, 5]
    assert restored.lost == {}
    go_on(accident)


def test_a_witness_on_postgresql(
    postgresql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accident = accident_in(tmp_path, witness=postgresql_database)
    refuse(accident, monkeypatch)
    accident.campaign().restore(accident.seen)
    go_on(accident)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("privacy", first(1, [FIXED, ""]), ids=["personal", "adsbpc"])
def test_without_a_witness_the_files_speak(
    privacy: str, marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was published stands on another disk; also where its mark is gone."""
    accident = accident_in(tmp_path, privacy, witness=None, releases_too=False)
    if not marked:
        (accident.home / "adsbpc-releases" / "acme" / "ledger.json").unlink()
    refuse(accident, monkeypatch)
    # From the campaign's own folder.
    assert len(accident.campaign().restore().releases) == 2
    go_on(accident)


def test_a_slot_that_was_drawn_again_is_refused(tmp_path: Path) -> None:
    """Without a witness, and with everything restored, nothing could be told; the files that people
    have then show it."""
    accident = accident_in(tmp_path, witness=None)
    accident.campaign().release(through="2026-03-05")
    with pytest.raises(LedgerError, match=r"0004\.json: is not what the ledger has of slot 4"):
        accident.campaign().restore(accident.seen)
    shutil.copy(accident.seen / "0005.json", accident.home / "adsbpc-releases" / "acme" / "spring")
    with pytest.raises(LedgerError, match="campaign 'spring', slot 5: counts as spent"):
        accident.campaign().release()
    with pytest.raises(LedgerError, match="published of slot 5: is not what the ledger has of"):
        accident.campaign().restore()


def test_a_slot_that_was_drawn_again_behind_the_witness(tmp_path: Path) -> None:
    """What follows it in the files does not follow from what the ledger has now."""
    accident = accident_in(tmp_path)
    witness = accident.home / WITNESS
    witness.rename(witness.with_name("put aside"))
    accident.campaign().release(4)
    witness.with_name("put aside").rename(witness)
    for slot in (1, 2, 3, 4):
        (accident.seen / f"000{slot}.json").unlink()
    with pytest.raises(LedgerError, match="what was published of slot 4: is not what the ledger"):
        accident.campaign().restore(accident.seen)
    assert accident.ledger.last_slot("acme", "spring") == 4


# ---- more that was lost ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_campaign_that_started_after_the_backup(tmp_path: Path) -> None:
    """Its plan is made anew, and must be the one that was released with."""
    accident = accident_in(tmp_path, FIXED.replace("[", "scope_rho = 2.0\n[", 1))
    summer = accident.file.with_name("summer.toml")
    summer.write_text(accident.file.read_text().replace('"spring"', '"summer"'))
    accident.campaign().restore(accident.seen)
    shutil.rmtree(accident.kept)
    accident.backup()
    first = Campaign.load(summer).release(through="2026-03-02")
    seen = tmp_path / "seen of summer"
    shutil.copytree(accident.home / "adsbpc-releases" / "acme" / "summer", seen)
    shutil.rmtree(accident.home)
    shutil.copytree(accident.kept, accident.home)
    summer.write_text(accident.file.read_text().replace('"spring"', '"summer"'))
    for file in (summer, accident.file):
        with pytest.raises(LedgerError, match="campaign 'summer', slots 1 to 2: count as spent"):
            Campaign.load(file).release()
    edit(summer, "allowance = 1.0", "allowance = 2.0")
    with pytest.raises((LedgerError, PrivacyError)):
        Campaign.load(summer).restore(seen)
    assert accident.ledger.campaign("acme", "summer") is None
    edit(summer, "allowance = 2.0", "allowance = 1.0")
    restored = Campaign.load(summer).restore(seen)
    assert [one.text for one in restored.releases] == [one.text for one in first]
    assert len(Campaign.load(summer).release()) == 8
    assert len(accident.campaign().release()) == 8


def test_every_campaign_hands_back_its_own(tmp_path: Path) -> None:
    file = write_campaign(tmp_path / "home", 8, privacy="scope_rho = 2.0", witness=WITNESS)
    summer = file.with_name("summer.toml")
    summer.write_text(file.read_text().replace('"spring"', '"summer"'))
    for each in (file, summer):
        Campaign.load(each).release(1)
    accident = Accident(file)
    accident.backup()
    for each in (file, summer):
        Campaign.load(each).release(2)
    accident.strike()
    lost = r"'spring', slot 2: counts as spent; campaign 'summer', slot 2: counts as spent"
    for each in (file, summer):
        with pytest.raises(LedgerError, match=lost):
            Campaign.load(each).release()
    assert Campaign.load(file).restore(accident.seen).lost == {"summer": [2]}
    for each in (file, summer):
        with pytest.raises(LedgerError, match=r"Not in it: campaign 'summer', slot 2: counts"):
            Campaign.load(each).release()
    seen = accident.undisturbed / "adsbpc-releases" / "acme" / "summer"
    assert Campaign.load(summer).restore(seen).lost == {}
    for each in (file, summer):
        assert len(Campaign.load(each).release()) == 8
        assert Campaign.load(each).verify().problem is None


def test_a_fit_comes_back_with_its_release(tmp_path: Path) -> None:
    file = write_campaign(tmp_path / "home", 5, witness=WITNESS, model="shapley", privacy=FIXED)
    edit(file, 'model = "shapley"', 'model = "shapley"\n[attribution.fit]\nslots = 2\nrho = 0.2')
    accident = Accident(file)
    accident.campaign().release(1)
    accident.backup()
    accident.campaign().release(through="2026-03-03")
    fit = accident.campaign().fit()
    assert fit is not None
    accident.strike()
    accident.campaign().restore(accident.seen)
    assert accident.campaign().fit() == fit
    go_on(accident)


@pytest.mark.parametrize("every_line", [False, True], ids=["states", "lines"])
@pytest.mark.slow
def test_a_restore_that_was_killed_goes_on(every_line: bool, tmp_path: Path) -> None:
    """In every state of the disk, or at every line that adopts a slot and commits it: whoever comes
    next finishes it."""
    accident = accident_in(tmp_path / "0", FIXED)
    if every_line:
        points = [
            (acted.__code__.co_filename, line)
            for acted in (restore._restore_slot, restore._adopt, Ledger._add)
            for line in sorted({line for _, _, line in acted.__code__.co_lines() if line})
        ]
    else:
        traced = tmp_path / "traced" / "home" / "spring.toml"
        shutil.copytree(tmp_path / "0", traced.parent.parent)
        points = first_in_each_state(trace_of(trace_restore, traced, accident.seen))
    died = 0
    for number, point in enumerate(points, start=1):
        home = tmp_path / str(number) / "home"
        shutil.copytree(tmp_path / "0", home.parent)
        process = victim(die_restoring_at, home / "spring.toml", accident.seen, point)
        process.join()
        died += process.exitcode == -signal.SIGKILL
        again = Accident(home / "spring.toml")
        again.campaign().restore(accident.seen)
        # Files that are still missing are published, as after any crash.
        assert all(one.replayed for one in again.campaign().release(through="2026-03-05"))
        assert again.standing() == accident.before, point
        assert again.campaign().verify().problem is None, point
        shutil.rmtree(home.parent)
    assert died > 25 if every_line else died == len(points) > 5


@pytest.mark.slow
def test_a_second_accident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restore the entries are others, and the marks follow them."""
    accident = accident_in(tmp_path, FIXED)
    accident.campaign().restore(accident.seen)
    for folder in (accident.kept, accident.seen, accident.undisturbed):
        shutil.rmtree(folder)
    accident.backup()
    accident.campaign().release(through="2026-03-07")
    accident.strike()
    refuse_again = "campaign 'spring', slots 6 to 7: count as spent"
    with pytest.raises(LedgerError, match=refuse_again):
        accident.campaign().release()
    assert len(accident.campaign().restore(accident.seen).releases) == 2
    assert published(accident.home) == accident.before["published"]
    go_on(accident)
