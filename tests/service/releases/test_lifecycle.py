"""Campaigns that are withdrawn, paused, resumed, closed and continued, over HTTP and by command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from typer.testing import CliRunner

from adsbpc.cli.main import app
from adsbpc.client import ClientError
from adsbpc.errors import AdsbpcError
from adsbpc.model import PICO_RHO
from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.backend import open_backend
from adsbpc.service.ingest.rows import SCHEMAS
from tests.effort import examples
from tests.service.clocks import SetClock
from tests.service.keeping import PERSONAL, Service
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
BY_HAND: dict[str, Any] = {"enabled": False, "grace": "1m", "publish_after": "2m"}


def over(days: int) -> datetime:
    return START + days * DAY + timedelta(minutes=2)


def reserved(server: Running, scope: str = "acme") -> float:
    ledger = server.backend.campaigns.ledger
    return ledger.reserved(scope) / PICO_RHO if ledger.exists() else 0.0


def test_a_campaign_that_has_not_started_is_withdrawn_and_its_room_is_free(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        first = operator.create_campaign(content())["id"]
        with pytest.raises(ClientError, match="no room"):
            operator.create_campaign(content(name="second"))
        operator.withdraw(first)
        with pytest.raises(ClientError, match="no campaign"):
            operator.campaign(first)
        again = operator.create_campaign(content())["id"]
        clock.moment = over(1)
        operator.release(again, 1)
        with pytest.raises(ClientError, match="has started"):
            operator.withdraw(again)
        assert operator.campaign(again)["state"] == "open"
        assert reserved(server) == 1.0


def test_a_paused_campaign_releases_nothing_and_loses_nothing(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator, scheduler = server.client("operator"), server.backend.scheduler
        campaign = operator.create_campaign(content())["id"]
        assert operator.pause(campaign)["state"] == "paused"
        clock.moment = over(1)
        scheduler.look()
        with pytest.raises(ClientError, match="is paused"):
            operator.release(campaign)
        found = operator.campaign(campaign)
        assert (found["released"], found["due"], found["state"]) == (0, 0, "paused")
        assert server.backend.publication.totals().late == 0
        assert operator.resume(campaign)["state"] == "open"
        clock.moment = over(2)
        scheduler.look()
        server.show(campaign)
        assert operator.campaign(campaign)["released"] == 2


def test_a_closed_campaign_returns_what_it_has_not_spent(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        with pytest.raises(ClientError, match="has not started"):
            operator.close_campaign(campaign)
        clock.moment = over(1)
        operator.release(campaign, 1)
        spent = server.backend.campaigns.ledger.spent("acme") / PICO_RHO
        closed = operator.close_campaign(campaign)
        assert closed["state"] == "closed"
        assert 0 < float(closed["returned"]) == pytest.approx(1 - spent)
        assert reserved(server) == pytest.approx(spent)
        # Again, and nothing more goes back.
        assert operator.close_campaign(campaign) == closed
        assert reserved(server) == pytest.approx(spent)
        for refused in (operator.pause, operator.release):
            with pytest.raises(ClientError, match="was closed"):
                refused(campaign)
        clock.moment = over(3)
        server.backend.scheduler.look()
        server.show(campaign)
        found = operator.campaign(campaign)
        assert (found["released"], found["due"]) == (1, 1)
        assert operator.verification(campaign)["verified"]


def test_a_campaign_continues_another_of_its_advertiser(tmp_path: Path) -> None:
    personal = {"rho": 0.5, "scope_rho": 1.0, "mechanism": "personal-budget"}
    clock = SetClock(START)
    with running(settings_in(tmp_path, scheduler=BY_HAND), clock) as server:
        operator = server.client("operator")

        def create(name: str, previous: str | None = None, **campaign: Any) -> dict[str, Any]:
            own = {} if previous is None else {"personal_budget": {"previous": previous}}
            wanted = {**content(name=name, **campaign), "privacy": {**personal, **own}}
            return operator.create_campaign(wanted)

        first = create("first")["id"]
        clock.moment = over(1)
        operator.release(first, 1)
        with pytest.raises(ClientError, match="still runs"):
            create("second", first, start="2026-03-02")
        clock.moment = over(3)
        operator.release(first)
        for wrong in ("0" * 32, "../../etc", "adsbpc-releases/acme/first"):
            with pytest.raises(ClientError, match="expected the id of a campaign"):
                create("second", wrong, start="2026-03-04")
        with pytest.raises(ClientError, match="expected the id of a campaign"):
            create("theirs", first, start="2026-03-04", advertiser="Ad-2", scope="theirs")
        second = create("second", first, start="2026-03-04")["id"]
        clock.moment = over(4)
        operator.release(second, 1)
        assert operator.verification(second)["verified"]


def test_the_commands_do_the_same(tmp_path: Path) -> None:
    settings = tmp_path / "service.toml"
    settings.write_text('[service]\ndata = "data"\n', encoding="utf-8")
    own = settings_in(tmp_path, service={"data": "data", "port": 0})
    backend = open_backend(own, SetClock(START))
    by = Principal("key", Role.OPERATOR, "")
    campaign = backend.campaigns.create(content(), by).campaign_id

    def run(*arguments: str) -> Any:
        given = ["campaigns", *arguments, "--config", str(settings), "--json"]
        answer = CliRunner().invoke(app, given, catch_exceptions=False)
        assert answer.exit_code == 0, answer.output
        return json.loads(answer.stdout)

    def states() -> list[str]:
        return [each["state"] for each in run("list")["campaigns"]]

    assert states() == ["open"]
    run("pause", campaign)
    assert states() == ["paused"]
    run("resume", campaign)
    registered = backend.campaigns.get(campaign)
    assert registered is not None
    with backend.campaigns.ready(registered, 1) as ready:
        ready.release(1)
    assert run("close", campaign, "--yes")["state"] == "closed"
    assert states() == ["closed"]
    other = backend.campaigns.create(content(name="other", scope="other"), by).campaign_id
    run("withdraw", other)
    assert [each["id"] for each in run("list")["campaigns"]] == [campaign]
    unknown = ["campaigns", "pause", "0" * 32, "--config", str(settings)]
    assert CliRunner().invoke(app, unknown).exit_code != 0
    noted = [(line["action"], line["target"], line["decision"], line["address"])
             for line in reversed(backend.audit.newest(10))]  # fmt: skip
    assert noted == [
        ("pause or resume campaign", campaign, "allowed", "command line"),
        ("pause or resume campaign", campaign, "allowed", "command line"),
        ("close campaign", campaign, "allowed", "command line"),
        ("withdraw campaign", other, "allowed", "command line"),
        ("pause or resume campaign", "0" * 32, "refused", "command line"),
    ]
    backend.store.close()
    backend.presence.close()


NAMES = st.sampled_from(["a", "b", "c"])
PEOPLE = ("ann", "bob")
SLOTS = 3


class LifecycleMachine(RuleBasedStateMachine):
    """Anything in any order against a model: what is charged is never returned, and campaigns
    that run or wait never promise more than their scope has."""

    folder: Path
    limit = 2

    def __init__(self) -> None:
        super().__init__()
        # Each example has a folder of its own.
        type(self).folder = self.folder.parent / f"{int(self.folder.name or 0) + 1}"
        self.service = Service(self.folder, keep="1d")
        self.clock, self.backend = self.service.clock, self.service.backend
        self.ids: dict[str, str] = {}
        self.charged: dict[str, int] = {}
        self.open: set[str] = set()
        self.paused: set[str] = set()

    def teardown(self) -> None:
        self.service.close()

    def _registered(self, name: str) -> Any:
        return self.backend.campaigns.get(self.ids[name])

    def _ledger_charges(self) -> dict[str, int]:
        ledger = self.backend.campaigns.ledger
        return {name: ledger.spent("acme", {n: 0 for n in self.charged if n != name})
                for name in self.charged}  # fmt: skip

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        wanted = content(name=name)
        wanted["privacy"] = {**PERSONAL, "scope_rho": float(self.limit)}
        holding = sum(1 for each in self.open)
        ledger = self.backend.campaigns.ledger
        spent = ledger.reserved("acme") if ledger.exists() else 0
        waiting = sum(PICO_RHO for each in self.open if each not in self.charged)
        fits = spent + waiting + PICO_RHO <= self.limit * PICO_RHO
        try:
            made = self.backend.campaigns.create(wanted, Principal("key", Role.OPERATOR, ""))
        except AdsbpcError:
            over = self.clock.moment >= START + DAY
            assert name in self.ids or not fits or over or holding
        else:
            assert fits
            assert name not in self.ids
            self.ids[name] = made.campaign_id
            self.open.add(name)

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        if name not in self.ids:
            return
        if name in self.charged:
            with pytest.raises(AdsbpcError, match="has started"):
                self.backend.lifecycle.withdraw(self._registered(name))
            return
        self.backend.lifecycle.withdraw(self._registered(name))
        del self.ids[name]
        self.open.discard(name)
        self.paused.discard(name)

    @rule(name=NAMES)
    def pause(self, name: str) -> None:
        if name in self.open:
            self.backend.lifecycle.pause(self._registered(name))
            self.paused.add(name)

    @rule(name=NAMES)
    def resume(self, name: str) -> None:
        if name in self.ids:
            self.backend.lifecycle.resume(self._registered(name))
            self.paused.discard(name)

    @rule(name=NAMES)
    def close(self, name: str) -> None:
        if name not in self.ids:
            return
        if name not in self.charged:
            with pytest.raises(AdsbpcError, match="has not started"):
                self.backend.lifecycle.close(self._registered(name))
            return
        was_open = name in self.open
        before = self.backend.campaigns.ledger.reserved("acme")
        returned = self.backend.lifecycle.close(self._registered(name)) * PICO_RHO
        after = self.backend.campaigns.ledger.reserved("acme")
        assert returned == PICO_RHO - self._ledger_charges()[name]
        assert before - after == (returned if was_open else 0)
        self.open.discard(name)
        self.paused.discard(name)

    @rule()
    def let_a_day_pass_and_look(self) -> None:
        if self.clock.moment < over(6):
            self.service.put(*PEOPLE, day=(self.clock.moment - START).days)
            self.clock.moment = self.clock.moment.replace(hour=0, minute=2) + DAY
        self.backend.scheduler.look()
        for name in self.open - self.paused:
            if self.backend.campaigns.last_slot(self._registered(name)):
                self.charged.setdefault(name, 0)

    @rule(user=st.sampled_from(PEOPLE))
    def forget(self, user: str) -> None:
        with self._only_what_is_over_ends():
            self.backend.retention.forget(user)
        for source in SCHEMAS:
            assert user not in self.service.users(source)

    @rule()
    def delete_what_is_old(self) -> None:
        with self._only_what_is_over_ends():
            self.backend.retention.apply()

    @contextmanager
    def _only_what_is_over_ends(self) -> Iterator[None]:
        """Whatever erases books closes their campaign: never one that may release another slot,
        and what it has not spent goes back, once."""
        ledger, charges = self.backend.campaigns.ledger, {}
        before, released = 0, dict.fromkeys(self.open, 0)
        if ledger.exists():
            before, charges = ledger.reserved("acme"), self._ledger_charges()
            released = {name: ledger.last_slot("acme", name) for name in self.open}
        yield
        if not ledger.exists():
            return
        records = {name: ledger.campaign("acme", name) for name in self.open}
        ended = {name for name, record in records.items() if record is not None and record.closed}
        assert all(released[name] == SLOTS for name in ended)
        assert self._ledger_charges() == charges
        returned = sum(PICO_RHO - charges[name] for name in ended)
        assert before - ledger.reserved("acme") == returned
        self.open -= ended
        self.paused -= ended

    @invariant()
    def nothing_is_refunded_or_overspent(self) -> None:
        ledger = self.backend.campaigns.ledger
        if not ledger.exists():
            return
        charges = self._ledger_charges()
        for name, before in self.charged.items():
            assert charges[name] >= before
            self.charged[name] = charges[name]
        assert sum(charges.values()) <= ledger.reserved("acme") <= self.limit * PICO_RHO


def test_any_life_of_campaigns_against_a_model(tmp_path: Path) -> None:
    LifecycleMachine.folder = tmp_path / "0"
    run_state_machine_as_test(
        LifecycleMachine, settings=effort(max_examples=examples(4, 60), stateful_step_count=12)
    )


def test_who_is_forgotten_early_or_late_brings_no_budget_back(tmp_path: Path) -> None:
    """One life of the model that a few random ones may miss: people are forgotten and old books
    deleted while a campaign runs, when it is over, and when it was closed."""
    LifecycleMachine.folder = tmp_path / "0"
    machine = LifecycleMachine()
    try:
        for name in ("a", "b"):
            machine.create(name)
        for day in range(6):
            machine.let_a_day_pass_and_look()
            machine.forget("ann" if day % 2 else "bob")
            machine.delete_what_is_old()
            if day == 1:
                machine.close("b")
            machine.nothing_is_refunded_or_overspent()
        assert set(machine.charged) == {"a", "b"}
        assert machine.open == set()
        assert not machine.service.anywhere("ann")
    finally:
        machine.teardown()
