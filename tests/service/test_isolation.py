"""Who may do what, over HTTP: every role against every endpoint and another tenant's objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adsbpc.service.auth.permissions import Role
from adsbpc.service.http.app import create_app
from tests.service.clocks import SetClock
from tests.service.matrix import (
    DAY,
    NEXT_DAY,
    NOBODIES,
    NOWHERE,
    OPEN_PAGES,
    ROLES,
    SESSIONS,
    TABLE,
    TENANTS,
    Call,
    Headers,
    World,
    callers_of,
    conversion,
    impression,
    new_campaign,
    pages,
    users_on_disk,
)
from tests.service.running import running, settings_in, trial, with_signing_key


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    clock = SetClock(DAY)
    directory = tmp_path_factory.mktemp("isolation")
    settings = settings_in(
        directory, scheduler={"enabled": False}, statements=with_signing_key(directory)
    )
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaigns = {}
        for tenant in TENANTS:
            spec = trial(name=f"of {tenant}", scope=tenant, advertiser=tenant, slots=1)
            campaigns[tenant] = operator.create_campaign(spec)["id"]
        server.client("publisher", "P-1").push_impressions([impression("u1")])
        server.client("advertiser", "Ad-1").push_conversions([conversion("u1")])
        clock.moment = NEXT_DAY
        for campaign in campaigns.values():
            assert len(operator.release(campaign)) == 1
            server.show(campaign)
        callers = callers_of(server)
        while server.backend.keys.authenticate(callers["expired key"]["Authorization"][7:]):
            pass
        yield World(server, campaigns, callers)


def path_of(world: World, path: str, campaign: str, call: Call) -> str:
    key_id = ""
    tenant = next((name for name, known in world.campaigns.items() if known == campaign), None)
    if call.of_new_campaign and tenant is not None:
        campaign = world.server.client("operator").create_campaign(new_campaign(tenant))["id"]
    if "{key_id}" in path:
        key_id = world.server.backend.keys.create(Role.READER, "", "to revoke", None)[0].key_id
    return path.format(campaign=campaign, slot=1, key_id=key_id)


def test_every_endpoint_has_its_line_in_the_table(world: World) -> None:
    document = create_app(world.server.backend).openapi()
    found = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert found == set(TABLE)


@pytest.mark.parametrize("caller", [*ROLES, *NOBODIES, *SESSIONS])
@pytest.mark.parametrize(("method", "path"), TABLE)
def test_the_matrix(world: World, method: str, path: str, caller: str) -> None:
    call = TABLE[method, path]
    answer = world.send(method, path_of(world, path, world.campaigns["Ad-1"], call), caller, call)
    if call.is_open:
        expected = 200
    elif caller in NOBODIES:
        expected = 401
    elif caller in SESSIONS:
        is_safe = method == "GET" or caller == "signed in, this site"
        expected = call.allowed.get("operator", 403) if is_safe else 403
    elif caller == "publisher" and call.of_campaign:
        # Publishers know of no campaign.
        expected = 404
    else:
        expected = call.allowed.get(caller, 403)
    assert answer.status_code == expected, answer.text
    if expected >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(answer.json()) == {"type", "title", "status", "detail", "to_do", "request_id"}


@pytest.mark.parametrize("caller", ROLES)
@pytest.mark.parametrize(
    ("method", "path"), [key for key, call in TABLE.items() if call.of_campaign]
)
def test_a_campaign_of_another_advertiser_is_like_one_that_is_not_there(
    world: World, method: str, path: str, caller: str
) -> None:
    call = TABLE[method, path]

    def told(campaign: str) -> tuple[int, str, Headers]:
        asked = path_of(world, path, campaign, call)
        campaign = asked.split("/")[3]
        answer = world.send(method, asked, caller, call)
        headers = {k: v for k, v in answer.headers.items() if k not in ("date", "x-request-id")}
        text = answer.text.replace(campaign, "ID").replace(answer.headers["x-request-id"], "R")
        return answer.status_code, text, headers

    others, missing = told(world.campaigns["Ad-2"]), told(NOWHERE)
    assert missing[0] == 404
    if caller in ("operator", "reader of all"):
        assert others[0] == call.allowed.get(caller, 403)
    else:
        assert others == missing


def test_lists_hold_own_campaigns_only(world: World) -> None:
    def listed(caller: str) -> set[str]:
        answer = world.send("GET", "/v1/campaigns", caller, TABLE["GET", "/v1/campaigns"])
        return {each["advertiser"] for each in answer.json()["campaigns"]}

    assert listed("advertiser") == listed("reader of one") == {"Ad-1"}
    assert listed("operator") == listed("reader of all") == {"Ad-1", "Ad-2"}


def test_rows_of_others_are_quarantined_and_not_stored(world: World) -> None:
    server = world.server
    publisher = server.client("publisher", "P-1").push_impressions(
        [impression("mine"), impression("theirs", publisher_id="P-2")]
    )
    advertiser = server.client("advertiser", "Ad-1").push_conversions(
        [conversion("mine"), conversion("theirs", advertiser_id="Ad-2")]
    )
    for answer, reason in (
        (publisher, "publisher of another key"),
        (advertiser, "advertiser of another key"),
    ):
        assert (answer["accepted"], answer["quarantined"]) == (1, 1)
        assert answer["verdicts"] == [{"row": 1, "verdict": "quarantined", "reason": reason}]
    for source in ("impressions", "conversions"):
        users = users_on_disk(server, source)
        assert users.count("mine") == 1
        assert "theirs" not in users


def test_batch_keys_of_others_are_others(world: World) -> None:
    """One sender's key neither answers, nor stops, nor shows another's batch."""
    first = world.server.client("publisher", "P-1").push_impressions([impression("k1")], "shared")
    second = world.server.client("publisher", "P-2").push_impressions(
        [impression("k2", publisher_id="P-2")] * 2, "shared"
    )
    third = world.server.client("advertiser", "P-1").push_conversions(
        [conversion("k3", advertiser_id="P-1")] * 3, "shared"
    )
    answers = (first, second, third)
    assert [(each["rows"], each["repeated"]) for each in answers] == [
        (1, False), (2, False), (3, False),
    ]  # fmt: skip


def test_a_new_key_of_the_same_sender_continues_its_batches(world: World) -> None:
    rows = [impression("rotated")]
    assert not world.server.client("publisher", "P-1").push_impressions(rows, "r")["repeated"]
    assert world.server.client("publisher", "P-1").push_impressions(rows, "r")["repeated"]


def test_pages_are_for_who_is_signed_in(world: World) -> None:
    for method, path in pages():
        asked = path.format(campaign=world.campaigns["Ad-1"], file="x", key_id="0" * 16)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for caller in NOBODIES:
            own = form | {"Origin": world.server.url}
            answer = world.send(method, asked, caller, Call({}, headers=own))
            if path in OPEN_PAGES:
                assert answer.status_code in (200, 404) or (method, path) == ("POST", "/sign-in")
            else:
                assert answer.status_code == 303, f"{method} {path} as {caller}"
                assert answer.headers["location"].startswith("/sign-in")
        if method == "POST" and path != "/sign-in":
            # A cookie alone, as another site could make a browser send it, changes nothing.
            assert world.send(method, asked, "signed in", Call({}, headers=form)).status_code == 403


def test_every_decision_is_in_the_audit_log(world: World) -> None:
    audit = world.server.backend.audit
    for (method, path), call in TABLE.items():
        if call.is_open:
            continue
        for caller in (*ROLES, "no key", "wrong key", "signed in"):
            # As if nobody had been refused in this minute.
            world.server.backend.refused_strangers.close()
            asked = path_of(world, path, world.campaigns["Ad-2"], call)
            known = audit.newest(1)[0]
            answer = world.send(method, asked, caller, call)
            line = audit.newest(1)[0]
            assert line != known, f"{method} {path} as {caller}"
            assert line["request"] == answer.headers["x-request-id"]
            # Who may do it may be told that it cannot be done now.
            may = answer.status_code < 400 or answer.status_code == 409
            assert line["decision"] == ("allowed" if may else "refused")
