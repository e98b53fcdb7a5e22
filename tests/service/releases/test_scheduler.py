"""The scheduler: catches up, releases a slot once however many servers run, tells failures; and
the end of a server, which loses nothing that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import update

from adsbpc import Client
from adsbpc.campaign import data_path
from adsbpc.client import ClientError
from adsbpc.engines import Relation
from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.errors import ReleaseError
from adsbpc.events import read_events
from adsbpc.model import CampaignSpec
from adsbpc.service.auth.permissions import Role
from adsbpc.service.ingest.event_files import LOCK
from adsbpc.service.releases import leases
from adsbpc.service.settings import Settings
from adsbpc.service.store import campaigns
from tests.service.clocks import SetClock
from tests.service.processes import prepared, served
from tests.service.pushed import CONVERSION, IMPRESSION
from tests.service.raw import assert_problem, http
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
QUICK = {"every": "1s", "grace": "1m"}


def settings_on(
    database: str, directory: Path, request: pytest.FixtureRequest, **sections: dict[str, Any]
) -> Settings:
    if database == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
        sections["ledger"] = {"location": location}
        sections["service"] = {"port": 0, "data": "data", "database": location}
    return settings_in(directory, **sections)


def wait(until: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


def released(server: Running, campaign: str) -> int:
    found = server.backend.campaigns.get(campaign)
    assert found is not None
    return server.backend.campaigns.last_slot(found)


def push(server: Running, day: int = 0) -> None:
    moment = START + day * DAY
    impressions = [IMPRESSION | {"timestamp": moment, "user_id": f"u{day}", "event_id": None}]
    conversions = [CONVERSION | {"timestamp": moment, "user_id": f"u{day}", "event_id": None}]
    server.client("publisher", "P-1").push_impressions(impressions, f"day {day}".replace(" ", "-"))
    server.client("advertiser", "Ad-1").push_conversions(conversions, f"day-{day}")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_it_catches_up_after_downtime(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_on(database, tmp_path, request)
    clock = SetClock(START)
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        push(server)
        clock.moment = START + DAY + timedelta(seconds=59)
        time.sleep(1.2)
        assert released(server, campaign) == 0
    clock.moment = START + 2 * DAY + timedelta(minutes=2)
    with running(settings, clock) as server:
        wait(lambda: released(server, campaign) == 2)
        clock.moment = START + 30 * DAY
        wait(lambda: released(server, campaign) == 3)
        assert server.client("operator").verification(campaign)["verified"]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_two_servers_release_each_slot_once(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_on(database, tmp_path, request)
    clock = SetClock(START)
    with ExitStack() as stack:
        servers = [stack.enter_context(running(settings, clock)) for _ in range(2)]
        operator = servers[0].client("operator")
        made = [
            operator.create_campaign(content(name=f"campaign {number}", scope=f"scope {number}"))
            for number in range(3)
        ]
        # Pushed to both: a batch that is repeated to the other one counts once.
        rows = [IMPRESSION | {"timestamp": START}]
        first = servers[0].client("publisher", "P-1").push_impressions(rows, "once")
        second = servers[1].client("publisher", "P-1").push_impressions(rows, "once")
        assert (first["repeated"], second["repeated"]) == (False, True)
        for days in (1, 3):
            clock.moment = START + days * DAY + timedelta(minutes=2)
            # By hand as well, of what the schedulers are at.
            hands = [
                threading.Thread(target=_release, args=(one, made[0]["id"])) for one in servers
            ]
            for hand in hands:
                hand.start()
            for hand in hands:
                hand.join()
            wait(lambda: all(released(servers[0], each["id"]) == days for each in made))  # noqa: B023
        for each in made:
            servers[0].show(each["id"])
        for each in made:
            shown = servers[1].client("operator").releases(each["id"])
            assert [one["slot"] for one in shown] == [1, 2, 3]
            assert operator.releases(each["id"]) == shown
            assert operator.verification(each["id"])["verified"]
        assert [figure(one, "adsbpc_published_slots") for one in servers] == [9, 9]
        assert [each["problem"] for each in operator.operations()["scheduler"]] == [""] * 3


def _release(server: Running, campaign: str) -> None:
    server.client("operator").release(campaign)


def figure(server: Running, name: str) -> float:
    lines = http().get(f"{server.url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def test_campaigns_of_an_advertiser_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what one of them fails with is its own."""
    scans: list[str] = []
    table, read = DuckDBEngine.table, read_events

    def noted(self: DuckDBEngine, what: str, sql: str, row_key: str | None = None) -> Relation:
        scans.extend([what] if what.endswith("_by_advertiser") else [])
        return table(self, what, sql, row_key)

    def failing(spec: CampaignSpec, *arguments: Any, **named: Any) -> Any:
        if spec.campaign.name == "campaign 1":
            raise ReleaseError("it cannot be read. Look at it")
        return read(spec, *arguments, **named)

    monkeypatch.setattr(DuckDBEngine, "table", noted)
    monkeypatch.setattr(data_path, "read_events", failing)
    clock = SetClock(START)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server:
        operator = server.client("operator")
        made = [
            operator.create_campaign(
                content(name=f"campaign {k}", scope=f"scope {k}")
                | {"attribution": {"model": "uniform" if k == 1 else "last_touch"}}
            )["id"]
            for k in range(3)
        ]
        push(server)
        clock.moment = START + DAY + timedelta(minutes=2)
        server.backend.scheduler.look()
        assert scans == ["impressions_by_advertiser", "conversions_by_advertiser"]
        assert [released(server, each) for each in made] == [1, 0, 1]
        problems = {one["name"]: one["problem"] for one in operator.operations()["scheduler"]}
        assert problems == {
            "campaign 0": "", "campaign 1": "it cannot be read. Look at it", "campaign 2": "",
        }  # fmt: skip


def test_a_faster_server_leaves_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot after the one that was due is not over: nothing of it may be closed or released."""
    clock = SetClock(START)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "grace": "1m"})
    with running(settings, clock) as server, running(settings, clock) as faster:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        clock.moment = START + DAY + timedelta(minutes=2)
        scheduler = server.backend.scheduler
        scheduler.look()
        assert released(server, campaign) == 1
        clock.moment += DAY
        held = scheduler._leases.held

        @contextmanager
        def held_late(campaign_id: str) -> Iterator[bool]:
            with held(campaign_id) as ours:
                faster.client("operator").release(campaign)
                yield ours

        monkeypatch.setattr(scheduler._leases, "held", held_late)
        scheduler.look()
        assert released(server, campaign) == 2
        assert operator.campaign(campaign)["problem"] == ""
        push(server)
        (file,) = server.backend.files.live("conversions", "Ad-1")
        assert pq.read_table(file)["arrived_at"].to_pylist() == [clock.moment]


def test_a_failure_is_told_to_operators_and_goes_away(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        operator, advertiser = server.client("operator"), server.client("advertiser", "Ad-1")
        campaign = operator.create_campaign(content())["id"]
        push(server)
        (file,) = server.backend.files.live("impressions", "Ad-1")
        kept = file.read_bytes()
        file.write_bytes(kept.replace(b"u0", b"\xff\xff")[:-20])
        clock.moment = START + DAY + timedelta(minutes=2)
        wait(lambda: operator.campaign(campaign)["problem"] != "")
        problem = operator.campaign(campaign)["problem"]
        assert operator.operations()["scheduler"][0]["problem"] == problem
        assert operator.operations()["scheduler"][0]["lag_seconds"] == 60
        assert advertiser.campaign(campaign)["problem"] == ""
        with pytest.raises(ClientError) as told:
            operator.release(campaign)
        assert told.value.status in (409, 503)
        # Others go on meanwhile, and so does this one when it can.
        other = operator.create_campaign(
            content(name="other", scope="other", advertiser="Ad-2", start="2026-03-02")
        )["id"]
        clock.moment = START + 2 * DAY + timedelta(minutes=2)
        wait(lambda: released(server, other) == 1)
        file.write_bytes(kept)
        wait(lambda: released(server, campaign) == 2)
        assert operator.campaign(campaign)["problem"] == ""
        assert operator.verification(campaign)["verified"]


def test_what_the_disk_refuses_does_not_end_the_scheduler(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        folder = server.backend.settings.data / "campaigns"
        folder.rmdir()
        folder.write_text("a file where a folder should be")
        clock.moment = START + DAY + timedelta(minutes=2)
        wait(lambda: operator.campaign(campaign)["problem"] != "")
        folder.unlink()
        folder.mkdir()
        wait(lambda: released(server, campaign) == 1)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_lease_of_a_server_that_died_ends(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    clock = SetClock(START)
    with running(settings_on(database, tmp_path, request), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        until = time.time() + 2.5
        with server.backend.store.writing("campaigns") as connection:
            connection.execute(
                update(campaigns).values(lease_holder="dead", lease_until_us=int(until * 1e6))
            )
        assert operator.operations()["scheduler"][0]["holder"] == "dead"
        clock.moment = START + DAY + timedelta(minutes=2)
        while time.time() < until - 0.2:
            assert released(server, campaign) == 0
            time.sleep(0.1)
        wait(lambda: released(server, campaign) == 1)
        wait(lambda: operator.operations()["scheduler"][0]["holder"] == "")


def test_a_lease_is_kept_while_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LASTS_SECONDS", 3)
    with running(settings_in(tmp_path, scheduler={"enabled": False}), SetClock(START)) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        store = server.backend.store
        ours, others = leases.Leases(store), leases.Leases(store)
        with ours.held(campaign) as have:
            assert have
            for _ in range(10):
                with others.held(campaign) as taken:
                    assert not taken
                time.sleep(0.45)
            assert others.holders() == {campaign: ours.holder}
        with others.held(campaign) as taken:
            assert taken


def test_what_waits_is_stored_before_the_end(tmp_path: Path) -> None:
    """And who comes when nothing more can wait is told to come again."""
    answers: list[httpx.Response] = []
    # Of which one sender has half.
    limits = {"waiting_batches": 6}
    holding, going = threading.Event(), threading.Event()
    with running(settings_in(tmp_path, ingest=limits), SetClock(START)) as server:
        backend, url = server.backend, server.url
        key = server.key("publisher", "P-1")

        def hold() -> None:
            with backend.store.writing(LOCK):
                holding.set()
                going.wait()
                # Until after the server has begun to stop.
                time.sleep(0.5)

        def send(number: int) -> None:
            rows = [IMPRESSION | {"timestamp": str(START), "user_id": f"waited-{number}"}]
            headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"w{number}"}
            answers.append(http().post(f"{url}/v1/impressions", json=rows, headers=headers))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        threads.insert(0, threading.Thread(target=hold))
        for thread in threads:
            thread.start()
            holding.wait()
        wait(lambda: len(answers) == 5)
        for answer in answers:
            assert_problem(answer, 429)
            assert int(answer.headers["retry-after"]) > 0
        going.set()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers[5:]] == [200] * 3
    assert all(answer.json()["accepted"] == 1 for answer in answers[5:])
    tables = [pq.read_table(path) for path in backend.files.live("impressions", "Ad-1")]
    assert sum(table.num_rows for table in tables) == 3


def test_a_server_that_stops_is_not_ready(tmp_path: Path) -> None:
    with running(settings_in(tmp_path), SetClock(START)) as server:
        server.backend.watch.stopping = True
        assert_problem(http().get(f"{server.url}/readyz"), 503)
        assert http().get(f"{server.url}/healthz").status_code == 200


def test_sigterm_ends_a_server_that_is_listened_to(tmp_path: Path) -> None:
    config, backend = prepared(tmp_path)
    key = backend.keys.create(Role.OPERATOR, "", "operator", None)[1]
    heard: list[int] = []
    with served(config) as server, Client(server.url, key) as client:
        start = (datetime.now(UTC) + DAY).date().isoformat()
        campaign = client.create_campaign(content(start=start))["id"]
        listening = threading.Event()

        def listen() -> None:
            url, bearer = f"{server.url}/v1/campaigns/{campaign}/stream", f"Bearer {key}"
            with http().stream("GET", url, headers={"Authorization": bearer}) as answer:
                lines = answer.iter_lines()
                assert next(lines) == ": listening"
                listening.set()
                heard.append(sum(line.startswith("data:") for line in lines))

        listener = threading.Thread(target=listen)
        listener.start()
        assert listening.wait(60)
        server.stop()
        listener.join()
    # A stream that was cut off would have raised an error.
    assert heard == [0]
