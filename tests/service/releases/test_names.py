"""Names that could never release are refused when a campaign is created; a closed one rests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from adsbpc.client import ClientError
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

BY_HAND = {"enabled": False, "grace": "1m", "publish_after": "2m"}


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


def close(server: Running, campaign: str) -> None:
    """As adsbpc close does, on the server's machine."""
    registered = server.backend.campaigns.get(campaign)
    assert registered is not None
    registered.campaign.close()


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ({"scope": "ACME"}, r"\[campaign\] scope = 'ACME': .*scope = 'acme'.*capitals"),
        ({"scope": "other", "advertiser": "AD-1"}, "advertiser = 'AD-1': .*'Ad-1'.*capitals"),
    ],
)
def test_names_that_differ_in_capitals_only(
    tmp_path: Path, clock: SetClock, names: dict[str, str], told: str
) -> None:
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        with pytest.raises(ClientError, match=told) as refused:
            operator.create_campaign(content(name="second", **names))
        assert refused.value.status == 422
        # What is left finds its scope, and others can still be created.
        clock.moment += timedelta(days=1)
        assert len(operator.release(campaign)) == 1
        start = "2026-03-02"
        operator.create_campaign(content(name="third", scope="third", start=start))


def test_a_scope_of_the_ledger_in_other_capitals(tmp_path: Path, clock: SetClock) -> None:
    """Somebody else's, who releases from the command line."""
    settings = settings_in(tmp_path, scheduler=BY_HAND)
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        clock.moment += timedelta(days=1)
        operator.release(campaign)
    for file in settings.data.glob("service.sqlite*"):
        file.unlink()
    with running(settings, clock) as server:
        with pytest.raises(ClientError, match=r"has a scope 'acme'.*capitals") as refused:
            server.client("operator").create_campaign(content(scope="ACME", start="2026-03-02"))
        assert refused.value.status == 409


def test_nothing_is_due_of_a_campaign_that_was_closed(tmp_path: Path, clock: SetClock) -> None:
    settings = settings_in(tmp_path, scheduler=BY_HAND)
    with running(settings, clock) as server:
        operator, scheduler = server.client("operator"), server.backend.scheduler
        campaign = operator.create_campaign(content())["id"]
        clock.moment += timedelta(days=1)
        scheduler.look()
        close(server, campaign)
        clock.moment += timedelta(days=2)
        scheduler.look()
        (standing,) = scheduler.standings()
        assert (standing.released, standing.due, standing.problem) == (1, 1, "")
        assert "adsbpc_late_slots 0.0" in httpx.get(f"{server.url}/metrics", trust_env=False).text
        with pytest.raises(ClientError, match="was closed after slot 1") as refused:
            operator.release(campaign)
        assert refused.value.status == 409
        # Who listens waits for no other slot.
        assert list(operator.listen(campaign, after=0)) == [1]


def test_the_name_of_a_campaign_that_was_closed(tmp_path: Path, clock: SetClock) -> None:
    """The ledger knows it, whoever registered it there."""
    settings = settings_in(tmp_path, scheduler=BY_HAND)
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        clock.moment += timedelta(days=1)
        operator.release(campaign)
        close(server, campaign)
    for file in settings.data.glob("service.sqlite*"):
        file.unlink()
    with running(settings, clock) as server:
        operator = server.client("operator")
        with pytest.raises(ClientError, match=r"was closed after slot 1.*another name") as refused:
            operator.create_campaign(content())
        assert refused.value.status == 409
        again = content(name="another", start="2026-03-02")
        again["privacy"] |= {"rho": 0.1}
        assert operator.create_campaign(again)["name"] == "another"


@pytest.mark.parametrize(
    ("slot", "hour", "first"),
    [("1h", 12, "2026-03-02"), ("1h", 0, "2026-03-01"), ("1d", 12, "2026-03-01")],
)
def test_the_first_day_that_can_be_is_told(
    tmp_path: Path, clock: SetClock, slot: str, hour: int, first: str
) -> None:
    clock.moment = datetime(2026, 3, 1, hour, 30, tzinfo=UTC)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        with pytest.raises(ClientError, match=f"Start on {first} or later"):
            operator.create_campaign(content(slot=slot, start="2026-02-28"))
        assert operator.create_campaign(content(slot=slot, start=first))["start"] == first


def test_who_listens_to_a_campaign_that_is_withdrawn(tmp_path: Path, clock: SetClock) -> None:
    """The stream ends, and is not broken off."""
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        with httpx.stream(
            "GET", f"{server.url}/v1/campaigns/{campaign}/stream",
            headers={"Authorization": f"Bearer {server.key('operator')}"}, trust_env=False,
        ) as stream:  # fmt: skip
            lines = stream.iter_lines()
            assert next(lines) == ": listening"
            operator.withdraw(campaign)
            assert not any(lines)
