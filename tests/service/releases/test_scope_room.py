"""Campaigns that wait to start: each that was let in finds its budget when it starts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adsbpc.client import ClientError
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 3, 1, 9, tzinfo=UTC))


def wanted(name: str, **privacy: Any) -> dict[str, Any]:
    made = content(name=name)
    made["privacy"] |= privacy
    return made


def released(server: Running, clock: SetClock) -> dict[str, int]:
    """The newest slot of each campaign, once the first day is over."""
    clock.moment = datetime(2026, 3, 2, 1, tzinfo=UTC)
    server.backend.scheduler.look()
    book = server.backend.campaigns
    return {each.name: book.last_slot(each) for each in book.all()}


def test_a_second_one_without_room_is_refused_when_it_is_created(
    tmp_path: Path, clock: SetClock
) -> None:
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server:
        operator = server.client("operator")
        operator.create_campaign(wanted("first"))
        with pytest.raises(ClientError, match=r"no room for .*'second'.*left 0 ") as refused:
            operator.create_campaign(wanted("second", rho=0.5))
        assert refused.value.status == 409
        assert released(server, clock) == {"first": 1}


def test_all_that_are_let_in_start(tmp_path: Path, clock: SetClock) -> None:
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server:
        operator = server.client("operator")
        operator.create_campaign(wanted("first", scope_rho=2.0))
        # It might start first, and open the scope with a limit that keeps the other out.
        with pytest.raises(ClientError, match="Say scope_rho = 2"):
            operator.create_campaign(wanted("second"))
        with pytest.raises(ClientError, match="the two do not add up"):
            operator.create_campaign(wanted("second", scope_rho=2.0, adjacency="substitute"))
        operator.create_campaign(wanted("second", scope_rho=2.0))
        with pytest.raises(ClientError, match="no room for campaign 'third'"):
            operator.create_campaign(wanted("third", scope_rho=2.0, rho=0.1))
        assert released(server, clock) == {"first": 1, "second": 1}


def test_those_that_have_started_count_as_well(tmp_path: Path, clock: SetClock) -> None:
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server:
        operator = server.client("operator")
        operator.create_campaign(wanted("first", scope_rho=2.0))
        assert released(server, clock) == {"first": 1}
        late = wanted("second", rho=0.75)
        late["campaign"]["start"] = "2026-03-10"
        operator.create_campaign(late)
        late = wanted("third", rho=0.5)
        late["campaign"]["start"] = "2026-03-05"
        with pytest.raises(ClientError, match=r"spent 1\.75, left 0\.25"):
            operator.create_campaign(late)


def test_one_that_has_its_room_already_is_taken_up_again(tmp_path: Path, clock: SetClock) -> None:
    """The service's database was lost: the ledger knows what goes on."""
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server:
        server.client("operator").create_campaign(wanted("first", scope_rho=2.0))
        assert released(server, clock) == {"first": 1}
    for file in (tmp_path / "data").glob("service.sqlite*"):
        file.unlink()
    with running(settings, clock) as server:
        operator = server.client("operator")
        later = wanted("second", scope_rho=2.0)
        later["campaign"]["start"] = "2026-03-10"
        operator.create_campaign(later)
        operator.create_campaign(wanted("first", scope_rho=2.0))
