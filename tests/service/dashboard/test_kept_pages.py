"""Pages that are kept: never older than what is visible, never anybody else's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adsbpc.campaign import Campaign
from adsbpc.ledger import Ledger, Stage
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.dashboard.campaigns import Sight, body_of, sight_of
from tests.service.clocks import SetClock
from tests.service.dashboard import stage as stages
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
BY_HAND: dict[str, Any] = {"enabled": False, "grace": "1m", "publish_after": "2m"}


def over(days: int) -> datetime:
    return START + timedelta(days=days, minutes=2)


def sight(backend: Backend, campaign: str) -> Sight:
    registered = backend.campaigns.get(campaign)
    assert registered is not None
    return sight_of(backend, registered)


def of_two(server: Running, clock: SetClock, days: int = 1) -> tuple[str, str]:
    """A campaign of each of two advertisers, with days that are visible."""
    operator = server.client("operator")
    shared = {"privacy": {"rho": 1.0, "scope_rho": 2.0, "mechanism": "adsbpc"}}
    own = operator.create_campaign(content() | shared)["id"]
    other = operator.create_campaign(content(scope="rival", advertiser="Ad-2") | shared)["id"]
    clock.moment = over(days)
    for each in (own, other):
        operator.release(each, days)
        server.show(each)
    return own, other


def test_a_slot_shows_at_once_whichever_worker_released_it(tmp_path: Path) -> None:
    clock, settings = SetClock(START), settings_in(tmp_path, scheduler=BY_HAND)
    with running(settings, clock) as server:
        campaign, _ = of_two(server, clock)
        worker = open_backend(settings, clock)
        before = sight(worker, campaign)
        first = body_of(before)
        assert body_of(sight(server.backend, campaign)) is first
        clock.moment = over(2)
        server.client("operator").release(campaign, 2)
        server.show(campaign)
        after = sight(worker, campaign)
        assert (before.slot, after.slot) == (1, 2)
        body = body_of(after)
        assert first is not None
        assert body is not None
        assert "day 2 of 3" in body.masthead
        assert body.rest != first.rest


def test_what_a_closed_campaign_returned_is_not_shown_as_its_own(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        campaign, _ = of_two(server, clock)
        before = body_of(sight(server.backend, campaign))
        registered = server.backend.campaigns.get(campaign)
        assert registered is not None
        server.backend.lifecycle.close(registered)
        after = body_of(sight(server.backend, campaign))
        assert before != after
        budget = registered.campaign.status().campaign_budget
        assert budget.limit_pico_rho == budget.spent_pico_rho > 0


def test_what_others_of_the_scope_spend_shows_at_once(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        privacy = {"privacy": {"rho": 1.0, "scope_rho": 2.0, "mechanism": "adsbpc"}}
        own = operator.create_campaign(content() | privacy)["id"]
        beside = operator.create_campaign(content(name="summer") | privacy)["id"]
        clock.moment = over(1)
        operator.release(own, 1)
        server.show(own)
        before = sight(server.backend, own)
        operator.release(beside, 1)
        # Charged, and nobody's to see yet.
        assert sight(server.backend, own).version == before.version
        server.show(beside)
        assert sight(server.backend, own).version != before.version


def test_spend_that_is_pushed_while_a_page_is_made_is_on_the_next(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        campaign, _ = of_two(server, clock)
        read_before = server.backend.campaigns.get(campaign)
        assert read_before is not None
        rows = [{"publisher_id": "P-1", "day": "2026-03-01", "amount": 250.0}]
        server.client("operator").push_spend(campaign, rows)
        without = body_of(sight_of(server.backend, read_before))
        paid = body_of(sight(server.backend, campaign))
        assert without is not None
        assert paid is not None
        assert without.rest != paid.rest


def test_a_kept_page_is_nobody_elses(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        own, other = of_two(server, clock)
        stage = stages.Stage(server, clock)
        try:
            operator, advertiser = stage.visitor("operator"), stage.visitor("advertiser", "Ad-1")
            # Whoever looks first has it made.
            for each in (own, other):
                assert "Close for good" in operator.look(f"/campaigns/{each}").words
            seen = advertiser.look(f"/campaigns/{own}").words
            assert "Close for good" not in seen
            assert "Ad-2" not in seen
            assert "rival" not in seen
            assert advertiser.get(f"/campaigns/{other}").status_code == 404
            assert stage.visitor().get(f"/campaigns/{own}").status_code in (303, 401)
            bodies = [body_of(sight(server.backend, each)) for each in (own, other)]
            assert None not in bodies
            assert bodies[0] != bodies[1]
        finally:
            for http in stage.visitors:
                http.close()


def test_a_page_that_is_kept_looks_at_the_ledger_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        campaign, _ = of_two(server, clock)
        stage = stages.Stage(server, clock)
        try:
            visitor = stage.visitor("operator")
            first = visitor.get(f"/campaigns/{campaign}").text
            asked: list[str] = []
            look = Ledger.stage

            def counted(self: Ledger, scope: str, *rest: Any) -> Stage:
                asked.append(scope)
                return look(self, scope, *rest)

            def never(*_: object, **__: object) -> None:
                raise AssertionError("more than a look")

            monkeypatch.setattr(Ledger, "stage", counted)
            monkeypatch.setattr(Campaign, "report", never)
            for name in ("snapshot", "campaign", "releases", "spent", "last_slot"):
                monkeypatch.setattr(Ledger, name, never)
            assert visitor.get(f"/campaigns/{campaign}").text == first
            assert asked == ["acme"]
        finally:
            for http in stage.visitors:
                http.close()
