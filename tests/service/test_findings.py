"""What went wrong once, or could have: each would fail again if its cause came back."""

from __future__ import annotations

import shutil
import stat
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text, update

from adsbpc.client import ClientError
from adsbpc.service.http.problems import Problem
from adsbpc.service.store import campaigns
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

NIGHT = datetime(2026, 3, 2, 0, 2, tzinfo=UTC)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


def by_hand() -> dict[str, dict[str, object]]:
    """Without a scheduler: a test looks itself."""
    return {"scheduler": {"enabled": False, "grace": "1m"}}


def push(server: Running, users: int = 5) -> None:
    row = {"advertiser_id": "Ad-1", "timestamp": "2026-03-01T11:00:00Z"}
    rows = [{**row, "user_id": f"u{k}", "kind": "click"} for k in range(users)]
    server.client("publisher", "P-1").push_impressions(rows)
    row["timestamp"] = "2026-03-01T11:30:00Z"
    rows = [{**row, "user_id": f"u{k}"} for k in range(users)]
    server.client("advertiser", "Ad-1").push_conversions(rows)


def test_a_moment_for_a_day_is_understood_or_refused(tmp_path: Path, clock: SetClock) -> None:
    """TOML has moments; one that was stored as it came could not be read again by anybody."""
    body = """[campaign]
name = "moment"
advertiser = "Ad-1"
start = 2026-03-01T00:00:00
slots = 3
publishers = ["P-1"]
[privacy]
rho = 1.0
"""
    with running(settings_in(tmp_path), clock) as server:
        headers = {
            "Authorization": f"Bearer {server.key('operator')}",
            "Content-Type": "application/toml",
        }
        url = f"{server.url}/v1/campaigns"
        answer = httpx.post(url, content=body, headers=headers, trust_env=False)
        assert answer.status_code in (201, 422)
        listed = server.client("reader").campaigns()
        assert [each["start"] for each in listed] == ["2026-03-01"] * (answer.status_code == 201)


def test_a_campaign_that_cannot_be_read_hides_no_other(tmp_path: Path, clock: SetClock) -> None:
    with running(settings_in(tmp_path), clock) as server:
        operator = server.client("operator")
        broken = operator.create_campaign(content(name="broken"))["id"]
        sound = operator.create_campaign(content(name="sound", scope="other"))["id"]
        with server.backend.store.writing("campaigns") as connection:
            connection.execute(
                update(campaigns)
                .where(campaigns.c.campaign_id == broken)
                .values(spec='{"campaign": {"start": "2026-03-01 00:00:00"}}')
            )
        push(server)
        clock.moment = NIGHT
        server.wait_for(sound, 1)
        assert [each["id"] for each in operator.campaigns()] == [sound]
        with pytest.raises(ClientError) as refused:
            operator.campaign(broken)
        assert refused.value.status == 503
        assert "2026-03-01" not in refused.value.detail


def test_what_a_crash_left_unpublished_is_published(tmp_path: Path, clock: SetClock) -> None:
    settings = settings_in(tmp_path)
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        push(server)
        clock.moment = NIGHT
        server.wait_for(campaign, 1)
    published = settings.data / "adsbpc-releases" / "acme" / "spring" / "0001.json"
    before = published.read_text(encoding="utf-8")
    published.unlink()
    with running(settings_in(tmp_path, **by_hand()), clock) as server:
        server.backend.scheduler.look()
        assert published.read_text(encoding="utf-8") == before


def test_a_scope_is_one_advertisers(tmp_path: Path, clock: SetClock) -> None:
    """Or one would see the other's spending in the scope's budget."""
    with running(settings_in(tmp_path), clock) as server:
        operator = server.client("operator")
        operator.create_campaign(content())
        with pytest.raises(ClientError, match="belongs to another advertiser"):
            operator.create_campaign(content(name="other", advertiser="Ad-2"))
        without = content(name="third", advertiser="Ad-3")
        del without["campaign"]["scope"]
        assert operator.create_campaign(without)["scope"] == "Ad-3"


def test_a_clock_that_was_set_back_loses_nothing(tmp_path: Path, clock: SetClock) -> None:
    """Rows that come after a release count in a later slot, whatever the clock says."""
    spec = content()
    spec["privacy"]["rho"] = 1e6
    with running(settings_in(tmp_path), clock) as server:
        campaign = server.client("operator").create_campaign(spec)["id"]
        clock.moment = NIGHT
        server.wait_for(campaign, 1)
        clock.moment = NIGHT - timedelta(minutes=10)
        push(server, users=7)
        clock.moment = NIGHT + timedelta(days=1)
        server.wait_for(campaign, 2)
        (measured,) = server.client("reader").releases(campaign)[1]["measures"]
    _, by_publisher = measured["slot_totals"]
    assert round(by_publisher["values"][0]) == 7


def test_a_failing_campaign_is_tried_later_and_later(
    tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsbpc.service.releases.scheduler._FIRST_PAUSE_SECONDS", 60)
    with running(settings_in(tmp_path, **by_hand()), clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        clock.moment = NIGHT
        folder = server.backend.settings.data / "adsbpc-releases"
        folder.write_text("in the way", encoding="utf-8")
        scheduler = server.backend.scheduler
        for _ in range(5):
            scheduler.look()
        _, failures = scheduler._failures[campaign]
        assert failures == 1
        folder.unlink()
        # By hand there is no waiting.
        server.client("operator").release(campaign)
        scheduler.look()
        registered = server.backend.campaigns.get(campaign)
        assert registered is not None
        assert server.backend.campaigns.last_slot(registered) == 1


def test_a_lease_of_a_wrong_clock_is_free(tmp_path: Path, clock: SetClock) -> None:
    with running(settings_in(tmp_path, **by_hand()), clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        clock.moment = NIGHT
        with server.backend.store.writing("campaigns") as connection:
            connection.execute(
                text("UPDATE adsbpc_campaigns SET lease_until_us = 9000000000000000")
            )
        server.backend.scheduler.look()
        server.wait_for(campaign, 1)


def test_only_the_owner_looks_into_the_data(tmp_path: Path, clock: SetClock) -> None:
    with running(settings_in(tmp_path), clock) as server:
        folder = server.backend.settings.data
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_releases_and_durations_are_no_metric(tmp_path: Path, clock: SetClock) -> None:
    with running(settings_in(tmp_path, **by_hand()), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        clock.moment = NIGHT
        operator.release(campaign)
        operator.campaigns()
        figures = httpx.get(f"{server.url}/metrics", trust_env=False).text
    assert 'adsbpc_requests_total{method="GET",route="/v1/campaigns",status="200"} 1.0' in figures
    assert "seconds" not in figures
    assert "created" not in figures
    assert "/releases" not in figures


def test_a_lost_database_of_the_service_ends_no_campaign(tmp_path: Path, clock: SetClock) -> None:
    """The ledger knows that it has started: it is registered again, and goes on."""
    settings = settings_in(tmp_path)
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        clock.moment = NIGHT
        server.wait_for(campaign, 1)
    for file in settings.data.glob("service.sqlite*"):
        file.unlink()
    shutil.rmtree(settings.data / "events")
    with running(settings, clock) as server:
        operator = server.client("operator")
        with pytest.raises(ClientError, match="the first slot is over"):
            operator.create_campaign(content(name="new", scope="new"))
        campaign = operator.create_campaign(content())["id"]
        clock.moment = NIGHT + timedelta(days=1)
        server.wait_for(campaign, 2)


def test_one_sender_cannot_take_all_the_room(tmp_path: Path, clock: SetClock) -> None:
    """However much it sends at once, others get in."""
    with running(settings_in(tmp_path, ingest={"waiting_batches": 4}), clock) as server:
        entered = server.backend.intake.entered
        with ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(entered("publisher:P-1"))
            with pytest.raises(Problem, match="429"), entered("publisher:P-1"):
                pass
            for sender in ("P-2", "P-3"):
                stack.enter_context(entered(f"publisher:{sender}"))
            with pytest.raises(Problem, match="429"), entered("publisher:P-4"):
                pass
        with entered("publisher:P-1"), entered("publisher:P-4"):
            pass
