"""`adsbpc restore` after a backup was put back, for a campaign file and for the service."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.campaign.accidents import Accident
from tests.campaign.files import FIXED, write_campaign
from tests.cli.program import adsbpc


@pytest.fixture
def accident(tmp_path: Path) -> Accident:
    """One slot is in the backup, and people have seen three."""
    witness = "../elsewhere/witness.json"
    found = Accident(write_campaign(tmp_path / "home", 8, privacy=FIXED, witness=witness))
    found.campaign().release(1)
    found.backup()
    found.campaign().release(through="2026-03-03")
    found.strike()
    return found


def test_refused_restored_and_gone_on(accident: Accident) -> None:
    home = accident.home
    for command in ("release", "status", "report"):
        done = adsbpc(command, "spring.toml", cwd=home)
        assert (done.returncode, done.stdout) == (1, "")
        assert "campaign 'spring', slots 2 to 3: count as spent" in done.stderr
        assert "adsbpc restore FILE --releases FOLDER" in done.stderr
    done = adsbpc("restore", "spring.toml", "--releases", accident.seen, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "Restored slots 2 to 3, as published: nothing was drawn." in done.stdout
    assert "Budget of the campaign" in done.stdout
    assert accident.standing() == accident.before
    again = adsbpc("restore", "spring.toml", "--json", cwd=home)
    assert json.loads(again.stdout) == {"restored": [], "lost": {}}
    assert adsbpc("release", "spring.toml", "--slot", 4, cwd=home).returncode == 0
    done = adsbpc("status", "spring.toml", "--verify", "--json", cwd=home)
    assert json.loads(done.stdout)["verified"] is True


def test_what_is_still_lost_is_told(accident: Accident) -> None:
    (accident.seen / "0003.json").unlink()
    done = adsbpc("restore", "spring.toml", "--releases", accident.seen, cwd=accident.home)
    assert done.returncode == 0
    assert "Restored slot 2" in done.stdout
    told = " ".join(done.stderr.split())
    assert "Still not in the ledger: campaign 'spring', slot 3: counts as spent." in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a campaign file; or, for the service, --campaign ID and --config"),
        (("spring.toml", "--campaign", "0" * 32), "give a campaign file; or"),
        (("spring.toml", "--config", "service.toml"), "give a campaign file; or"),
        (("spring.toml", "--releases", "no/where"), "--releases no/where: is no folder"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    write_campaign(tmp_path)
    done = adsbpc("restore", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_was_changed(accident: Accident) -> None:
    file = accident.seen / "0003.json"
    file.write_text(file.read_text().replace('"scale":', '"scale":1'))
    done = adsbpc("restore", "spring.toml", "--releases", accident.seen, cwd=accident.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert "0003.json: is not what was published for slot 3" in done.stderr
    shutil.rmtree(accident.seen)
