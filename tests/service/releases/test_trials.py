"""Trials in the service: arms by a key that the server keeps, the same for ad servers and for what
is counted, and a secret to everybody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy import delete

from adsbpc import Client
from adsbpc.client import ClientError
from adsbpc.model.arms import KeyedArms
from adsbpc.service.releases.campaign_folder import KEY_FILE
from adsbpc.service.store import campaigns
from tests.service.clocks import SetClock
from tests.service.dashboard.stage import Stage
from tests.service.matrix import pages
from tests.service.running import Running, running, settings_in, trial

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
USERS = [f"user {number}" for number in range(60)]


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, clock: SetClock) -> Iterator[Running]:
    settings = settings_in(tmp_path_factory.mktemp("trial"), scheduler={"enabled": False})
    with running(settings, clock) as found:
        yield found


@pytest.fixture
def operator(server: Running) -> Client:
    return server.client("operator")


def key_file(server: Running, campaign: str) -> Path:
    return server.backend.campaigns.folder_of(campaign) / KEY_FILE


def release_a_day(server: Running, operator: Client, clock: SetClock, campaign: str) -> None:
    """Everybody buys; nobody needs to have seen an ad for that. P-1 led one of them to it."""
    seen = {"user_id": USERS[0], "advertiser_id": "Ad-1", "kind": "click"}
    at = START - timedelta(hours=1)
    server.client("publisher", "P-1").push_impressions([{**seen, "timestamp": at}])
    bought = [{"user_id": user, "timestamp": START} for user in USERS]
    server.client("advertiser", "Ad-1").push_conversions(bought)
    clock.moment = START + DAY
    operator.release(campaign)
    server.show(campaign)


def test_what_is_counted_by_arm_is_what_the_assignment_says(
    server: Running, operator: Client, clock: SetClock
) -> None:
    created = operator.create_campaign(trial())
    assert created["content"]["lift"] == {"shares": {"treatment": 0.5, "control": 0.5}}
    release_a_day(server, operator, clock, created["id"])
    advertiser = server.client("advertiser", "Ad-1")
    told = advertiser.assignment(created["id"])
    arms = KeyedArms(told["key"], tuple((arm, end) for arm, end in told["limits"]))
    people = [arms.arm_of(user) for user in USERS]
    assert told["control"] == "control"
    assert {"treatment", "control"} == set(people), "all in one arm: this tests nothing"
    found = json.loads(advertiser.report(created["id"]))
    totals = {each["arm"]: each["value"] for each in found["arms"]}
    for arm in ("treatment", "control"):
        assert totals[arm] == pytest.approx(people.count(arm), abs=0.5)
    (lift,) = found["lift"]
    difference = people.count("treatment") - people.count("control")
    assert (lift["measure"], lift["arm"], lift["slot"]) == ("buyers", "treatment", 1)
    assert lift["incremental"] == pytest.approx(difference, abs=1)
    assert "balance" in found
    assert "calibration" in found


def test_a_trial_may_count_by_arm_alone(server: Running, operator: Client, clock: SetClock) -> None:
    wanted = trial()
    wanted["measure"] = [{"name": "buyers", "metric": "converters", "by": ["arm"]}]
    campaign = operator.create_campaign(wanted)["id"]
    visitor = Stage(server, clock).visitor("operator")
    assert visitor.get(f"/campaigns/{campaign}").status_code == 200
    release_a_day(server, operator, clock, campaign)
    for path in (f"/campaigns/{campaign}", "/campaigns"):
        assert visitor.get(path).status_code == 200
    assert "What the campaign caused" in visitor.get(f"/campaigns/{campaign}").text


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_the_function_is_the_same_in_sql(server: Running, operator: Client, dialect: Any) -> None:
    campaign = operator.create_campaign(trial())["id"]
    told, text = operator.assignment(campaign), operator.assignment_function(campaign, dialect)
    assert told["key"] not in text
    if dialect == "duckdb":
        arms = KeyedArms(told["key"], tuple((arm, end) for arm, end in told["limits"]))
        users = duckdb.sql("SELECT unnest(?) AS user_id", params=[USERS])  # noqa: F841
        query = f"SELECT {text} FROM users"
        found = duckdb.execute(query, {"key": told["key"]}).fetchall()
        assert [arm for (arm,) in found] == [arms.arm_of(user) for user in USERS]


def test_the_module_for_ad_servers_has_the_arms_and_not_the_key(operator: Client) -> None:
    shares = {"video": 0.3, "control": 0.2, "all": 0.5}
    lift = {
        "shares": shares,
        "people": dict.fromkeys(shares, 900),
        "withholds": {"video": ["P-1"]},
    }
    wanted = {**trial(), "lift": lift}
    created = operator.create_campaign(wanted)
    # In the order in which they were given, wherever they were stored.
    assert list(operator.campaign(created["id"])["content"]["lift"]["shares"]) == list(shares)
    told = operator.assignment(created["id"])
    assert [arm for arm, _ in told["limits"]] == list(shares)
    assert told["withholds"] == {"video": ["P-1"]}
    module = operator.assignment_function(created["id"], "javascript")
    assert f"export const LIMITS = {json.dumps(told['limits'])};" in module
    assert "export async function armOf(key, userId, limits)" in module
    assert told["key"] not in module


def test_the_key_is_in_no_other_answer_and_in_no_log(
    server: Running, operator: Client, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    campaign = operator.create_campaign(trial())["id"]
    release_a_day(server, operator, clock, campaign)
    file = key_file(server, campaign)
    key = file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    reading = (
        "", "/releases", "/releases/1", "/verification", "/statement?format=html", "/statement",
        *(f"/report?format={each}" for each in ("json", "csv", "html")),
    )  # fmt: skip
    asked = [f"/v1/campaigns/{campaign}{path}" for path in reading]
    asked += ["/v1/campaigns", "/v1/operations", "/metrics", "/readyz"]
    asked += [
        path.format(campaign=campaign, file="x") for method, path in pages() if method == "GET"
    ]
    visitor = Stage(server, clock).visitor("operator")
    visitor.http.timeout = 60
    for path in asked:
        answer = visitor.get(path)
        assert answer.status_code in (200, 303, 403, 404), path
        assert key not in answer.text, path
    assert "What the campaign caused" in visitor.get(f"/campaigns/{campaign}").text
    server.client("advertiser", "Ad-1").assignment(campaign)
    assert key not in caplog.text
    lines = [
        line
        for each in (server.backend.settings.data / "audit").iterdir()
        for line in each.read_text().splitlines()
    ]
    # That somebody read it is written down.
    assert [line for line in lines if '"assign arms"' in line and campaign in line]
    assert not [line for line in lines if key in line]


@pytest.mark.parametrize(
    ("lift", "told"),
    [
        ({"key_file": "lift.key"}, "the server makes the key of a trial"),
        ({"table": "arms.csv"}, "the server has no tables of people"),
        ({"shares": {"treatment": 0.9, "control": 0.2}}, "add up to 1.1: expected 1 at most"),
        ({"shares": {"treatment": 0.9}}, "expected two arms or more"),
        ({"shares": {"treatment": 0.9, "control": 0}}, "nobody would be in it"),
        ({"arms": ["a", "b"]}, "belongs to arms by a table"),
        ({"control": "nobody"}, "there is no such arm"),
        ("arms", "[lift]"),
    ],
)
def test_what_is_no_trial_is_refused_and_leaves_nothing(
    server: Running, operator: Client, lift: Any, told: str
) -> None:
    whole = {**trial()["lift"], **lift} if isinstance(lift, dict) else lift
    for send in (operator.create_campaign, operator.plan):
        with pytest.raises(ClientError) as refused:
            send({**trial(), "lift": whole})
        assert refused.value.status == 422
        assert told in refused.value.detail
    assert list((server.backend.settings.data / "campaigns").iterdir()) == []


def test_a_plan_needs_no_key(server: Running, operator: Client) -> None:
    planned = operator.plan(trial())
    assert {each["measure"] for each in planned["queries"]} == {"attributed", "buyers"}
    people = {**trial()["lift"], "people": {"treatment": 9_000, "control": 9_000}}
    (power,) = operator.plan({**trial(), "lift": people}, lift=0.3, rate=0.05)["power"]
    assert 0.5 < power["at_the_end"] <= power["at_the_end_without_privacy"] < 1
    # Without the other figure, or without knowing how many people there are.
    for rate in (None, 0.05):
        with pytest.raises(ClientError) as refused:
            operator.plan(trial(), lift=0.3, rate=rate)
        assert refused.value.status == 422
    assert list((server.backend.settings.data / "campaigns").iterdir()) == []


def test_a_campaign_without_arms_has_no_assignment(server: Running, operator: Client) -> None:
    wanted = trial()
    del wanted["lift"], wanted["measure"]
    campaign = operator.create_campaign(wanted)["id"]
    assert not key_file(server, campaign).exists()
    with pytest.raises(ClientError) as refused:
        operator.assignment(campaign)
    assert (refused.value.status, "no trial" in refused.value.detail) == (404, True)


def test_each_trial_has_a_key_of_its_own_that_goes_with_it(
    server: Running, operator: Client
) -> None:
    room = {"rho": 1.0, "scope_rho": 2.0}
    first, second = (
        operator.create_campaign({**trial(name=name), "privacy": room})["id"]
        for name in ("one", "two")
    )
    assert operator.assignment(first)["key"] != operator.assignment(second)["key"]
    with pytest.raises(ClientError):
        operator.create_campaign({**trial(name="three"), "privacy": room})
    assert len(list((server.backend.settings.data / "campaigns").iterdir())) == 2
    operator.withdraw(first)
    assert not key_file(server, first).exists()
    assert key_file(server, second).exists()


def test_a_trial_goes_on_with_its_key_after_the_database_was_lost(
    server: Running, operator: Client, clock: SetClock
) -> None:
    """Arms are a fixed function of the user id, whatever becomes of the server."""
    first = operator.create_campaign(trial())["id"]
    before = operator.assignment(first)
    release_a_day(server, operator, clock, first)
    with server.backend.store.writing("campaigns") as connection:
        connection.execute(delete(campaigns))
    again = operator.create_campaign(trial())["id"]
    assert again != first
    assert operator.assignment(again) == before
    clock.moment = START + 2 * DAY
    assert [each["slot"] for each in operator.release(again)] == [2]
    # Without any copy of the key nobody knows who was where.
    for campaign in (first, again):
        key_file(server, campaign).unlink()
    with server.backend.store.writing("campaigns") as connection:
        connection.execute(delete(campaigns))
    with pytest.raises(ClientError) as refused:
        operator.create_campaign(trial())
    assert (refused.value.status, "is lost" in refused.value.detail) == (422, True)


def test_another_key_is_never_put_in_place_of_one_that_is_lost(
    server: Running, operator: Client, clock: SetClock
) -> None:
    campaign = operator.create_campaign(trial())["id"]
    release_a_day(server, operator, clock, campaign)
    file = key_file(server, campaign)
    key = file.read_text()
    file.unlink()
    clock.moment = START + 2 * DAY
    for ask in (operator.release, operator.assignment, operator.report):
        with pytest.raises(ClientError) as refused:
            ask(campaign)
        # Where it was is for the log.
        assert refused.value.status == 503
        assert str(server.backend.settings.data) not in str(refused.value)
    # Its events are kept until somebody has put the key back.
    assert [each.campaign_id for each in server.backend.campaigns.all()] == [campaign]
    file.write_text("ab" * 32)
    with pytest.raises(ClientError):
        operator.release(campaign)
    file.write_text(key)
    assert [each["slot"] for each in operator.release(campaign)] == [2]
