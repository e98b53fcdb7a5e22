"""Accidents after which a ledger is put back from a backup, and what must hold then."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.errors import LedgerError
from adsbpc.privacy import SecureRandomness
from tests.campaign.accidents import Accident
from tests.campaign.book_files import attempts
from tests.campaign.files import FIXED, PERSONAL, write_campaign

SVT = "[privacy.adsbpc]\nbounds = 'svt'\nquantile_slots = 2\nthreshold = 3"
MECHANISMS = {"histograms": "", "svt": SVT, "personal": PERSONAL, "allowance": FIXED}
WITNESS = "../elsewhere/witness.json"
LOST = r"campaign 'spring', slots 4 to 5: count as spent"


def accident_in(
    tmp_path: Path,
    privacy: str = "",
    location: str = "ledger.sqlite",
    witness: str | None = WITNESS,
    backup_after: int = 3,
    releases_too: bool = True,
) -> Accident:
    """Three slots are in the backup, and people have seen five."""
    file = write_campaign(tmp_path / "home", 8, privacy=privacy, location=location, witness=witness)
    accident = Accident(file, location)
    if backup_after:
        accident.campaign().release(through=f"2026-03-0{backup_after}")
    accident.backup()
    accident.campaign().release(through="2026-03-05")
    accident.strike(releases_too)
    return accident


def refuse(accident: Accident, monkeypatch: pytest.MonkeyPatch, message: str = LOST) -> None:
    """Nothing is drawn, charged or shown, whoever asks."""
    head = accident.ledger.head("acme")

    def draw(*_: object) -> None:
        raise AssertionError("drawn")

    with monkeypatch.context() as patched:
        for sampler in ("gaussian", "laplace", "choose"):
            patched.setattr(SecureRandomness, sampler, draw)
        campaign = accident.campaign()
        for act in (campaign.release, campaign.status, campaign.report):
            with pytest.raises(LedgerError, match=rf"{message}.*adsbpc restore FILE --releases"):
                act()
    assert "as spent" in str(campaign.verify().problem)
    assert accident.ledger.head("acme") == head
    assert attempts(accident.home, 4) == set()


def go_on(accident: Accident) -> None:
    """What people saw is what stands, and the next slot follows."""
    assert accident.standing() == accident.before
    assert accident.campaign().verify().problem is None
    last = len(accident.before["releases"])
    (released,) = accident.campaign().release(last + 1)
    assert not released.replayed
    rest = accident.campaign().release()
    assert [one.text for one in rest][:last] == accident.before["releases"]
    assert accident.campaign().verify().problem is None
    assert 0.99 < accident.campaign().status().campaign_budget.spent <= 1


def location_of(database: str, request: pytest.FixtureRequest) -> str:
    if database == "sqlite":
        return "ledger.sqlite"
    return str(request.getfixturevalue("postgresql_database"))
