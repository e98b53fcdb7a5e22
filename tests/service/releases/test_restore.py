"""The service's data folder is put back from a backup after advertisers have seen more."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.settings import Settings, load_settings
from tests.cli.program import adsbpc
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running

DAY = timedelta(days=1)
SETTINGS = """
[service]
data = "data"
port = 0
[ledger]
witness = "../elsewhere"
[scheduler]
enabled = false
grace = "1m"
"""
PERSONAL = {
    "rho": 1.0,
    "mechanism": "personal-budget",
    "personal_budget": {"allowance": 1.0},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "service.toml").write_text(SETTINGS, encoding="utf-8")
    return load_settings(tmp_path / "service.toml", {})


def push(server: Running, clock: SetClock) -> None:
    """Ten people click, and convert half an hour later."""
    moments = [(clock.moment - timedelta(minutes=m)).isoformat() for m in (60, 30)]
    rows = [{"advertiser_id": "Ad-1", "user_id": f"u{k}"} for k in range(10)]
    clicks = [{**row, "timestamp": moments[0], "kind": "click"} for row in rows]
    server.client("publisher", "P-1").push_impressions(clicks)
    sales = [{**row, "timestamp": moments[1]} for row in rows]
    server.client("advertiser", "Ad-1").push_conversions(sales)


def released(backend: Backend) -> list[str]:
    return backend.campaigns.ledger.releases("acme", "spring")


def test_a_drill(settings: Settings, tmp_path: Path) -> None:
    clock, backup, seen = SetClock(), tmp_path / "backup", tmp_path / "seen"
    clock.moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign({**content(), "privacy": PERSONAL})[
            "id"
        ]
        for _ in range(2):
            server.backend.scheduler.look()
            push(server, clock)
            clock.moment += DAY
    assert len(released(server.backend)) == 1
    shutil.copytree(settings.data, backup)
    with running(settings, clock) as server:
        server.backend.scheduler.look()
        before = released(server.backend)
    assert len(before) == 2
    witness = json.loads((tmp_path / "elsewhere" / "acme.json").read_text())
    assert len(witness["campaigns"]["spring"]) == 2
    shutil.copytree(settings.data / "adsbpc-releases" / "acme" / "spring", seen)
    shutil.rmtree(settings.data)
    shutil.copytree(backup, settings.data)
    with running(settings, clock) as server:
        server.backend.scheduler.look()
        (standing,) = server.backend.scheduler.standings()
        assert "campaign 'spring', slot 2: counts as spent" in standing.problem
        assert released(server.backend) == before[:1]
    command = ("restore", "--config", "service.toml", "--campaign")
    refused = adsbpc(*command, "0" * 32, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no such campaign" in refused.stderr
    done = adsbpc(*command, campaign, "--releases", seen, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Restored slot 2" in done.stdout
    clock.moment += DAY
    backend = open_backend(settings, clock)
    backend.scheduler.look()
    assert released(backend)[:2] == before
    assert len(released(backend)) == 3
    (registered,) = backend.campaigns.all()
    assert registered.campaign.verify().problem is None
    backend.store.close()


def test_the_witness_of_every_scope_is_its_own(settings: Settings) -> None:
    backend = open_backend(settings)
    for scope in ("acme", "a/b"):
        spec = backend.campaigns.spec(content(scope=scope))
        assert spec.ledger.location == settings.ledger.location
        assert spec.ledger.witness == f"../elsewhere/{scope.replace('/', '%2F')}.json"
    backend.store.close()
    url = "postgresql://adsbpc:hunter2@elsewhere/witness"
    update = {"ledger": settings.ledger.model_copy(update={"witness": url})}
    remote = settings.model_copy(update=update)
    backend = open_backend(remote)
    assert backend.campaigns.spec(content()).ledger.witness == url
    backend.store.close()
    assert "hunter2" not in json.dumps(remote.without_secrets())
