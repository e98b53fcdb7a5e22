"""Who may do what, over HTTP: every role against every endpoint and another tenant's objects."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.model.slots import to_microseconds
from adsbpc.service.access import CSRF_HEADER
from adsbpc.service.app import create_app
from adsbpc.service.principal import Role
from adsbpc.service.rows import Source
from adsbpc.service.sessions import cookie_name
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEXT_DAY = DAY + timedelta(days=1)
NOWHERE = "0" * 32
NUMBERS = count(1)
Headers = dict[str, str]
# Of one advertiser each, released to the end, so that their streams end.
TENANTS = ("Ad-1", "Ad-2")


@dataclass(frozen=True)
class World:
    """A server with a campaign of each advertiser, and headers for everybody who may ask."""

    server: Running
    campaigns: dict[str, str]
    callers: dict[str, Headers]
    http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30))

    def send(self, method: str, path: str, caller: str, call: Call) -> httpx.Response:
        try:
            headers = {**call.headers, **self.callers[caller]}
            url = self.server.url + path
            return self.http.request(method, url, content=call.body(), headers=headers)
        finally:
            self.http.cookies.clear()
            # Wrong keys are sent on purpose here, more than anybody may.
            self.server.backend.throttle.succeeded("127.0.0.1")


@dataclass(frozen=True)
class Call:
    """`allowed` is what each role is answered; who is not named there gets 403, and who is nobody
    gets 401."""

    allowed: dict[str, int]
    body: Callable[[], str] = str
    headers: Headers = field(default_factory=lambda: {"Content-Type": "application/json"})
    is_open: bool = False
    of_campaign: bool = False


def new_content() -> str:
    spec = content(name=f"another {next(NUMBERS)}", scope=f"scope {next(NUMBERS)}")
    return json.dumps({**spec, "campaign": {**spec["campaign"], "start": "2026-04-01"}})


def new_key() -> str:
    return json.dumps({"role": "reader", "label": f"reader {next(NUMBERS)}"})


def no_rows() -> str:
    return "[]"


def push(role: str) -> Call:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "matrix"}
    return Call({role: 200}, no_rows, headers)


READERS = {"operator": 200, "advertiser": 200, "reader of one": 200, "reader of all": 200}
OPERATOR = {"operator": 200}
EVERYBODY = {**READERS, "publisher": 200}
# The table of docs/service.md. Every endpoint of the OpenAPI document has to be here.
TABLE = {
    ("POST", "/v1/impressions"): push("publisher"),
    ("POST", "/v1/conversions"): push("advertiser"),
    ("POST", "/v1/plan"): Call(OPERATOR, new_content),
    ("GET", "/v1/campaigns"): Call(READERS),
    ("POST", "/v1/campaigns"): Call({"operator": 201}, new_content),
    ("GET", "/v1/campaigns/{campaign}"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/verification"): Call(OPERATOR, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/releases"): Call(READERS, of_campaign=True),
    ("POST", "/v1/campaigns/{campaign}/releases"): Call(OPERATOR, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/releases/{slot}"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/report"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/stream"): Call(READERS, of_campaign=True),
    ("GET", "/v1/whoami"): Call(EVERYBODY),
    ("GET", "/v1/keys"): Call(OPERATOR),
    ("POST", "/v1/keys"): Call({"operator": 201}, new_key),
    ("DELETE", "/v1/keys/{key_id}"): Call({"operator": 204}),
    ("GET", "/v1/operations"): Call(OPERATOR),
    ("GET", "/healthz"): Call({}, is_open=True),
    ("GET", "/readyz"): Call({}, is_open=True),
    ("GET", "/metrics"): Call({}, is_open=True),
}
NOBODIES = ("no key", "wrong key", "revoked key", "expired key", "key as a cookie", "wrong session")
ROLES = ("operator", "publisher", "advertiser", "reader of one", "reader of all")
SESSIONS = ("signed in", "signed in, other token", "signed in, with token")
# Pages that anybody may open.
OPEN_PAGES = {"/sign-in", "/docs", "/static/{file}", "/openapi.json"}


def impression(user: str, **fields: Any) -> dict[str, Any]:
    return {
        "user_id": user,
        "publisher_id": "P-1",
        "advertiser_id": "Ad-1",
        "timestamp": DAY,
        "kind": "click",
        **fields,
    }


def conversion(user: str, **fields: Any) -> dict[str, Any]:
    return {"user_id": user, "advertiser_id": "Ad-1", "timestamp": DAY, **fields}


def callers_of(server: Running) -> dict[str, Headers]:
    def bearer(key: str) -> Headers:
        return {"Authorization": f"Bearer {key}"}

    backend = server.backend
    soon = to_microseconds(datetime.now(UTC) + timedelta(milliseconds=200))
    operator, text = backend.keys.create(Role.OPERATOR, "", "operator", None)
    revoked, revoked_text = backend.keys.create(Role.OPERATOR, "", "revoked", None)
    _, expired_text = backend.keys.create(Role.OPERATOR, "", "expired", soon)
    assert backend.keys.revoke(revoked.key_id)
    cookie, token = cookie_name(over_tls=False), backend.sessions.open(operator.key_id)
    signed_in = {"Cookie": f"{cookie}={token}"}
    return {
        "operator": bearer(text),
        "publisher": bearer(server.key("publisher", "P-1")),
        "advertiser": bearer(server.key("advertiser", "Ad-1")),
        "reader of one": bearer(server.key("reader", "Ad-1")),
        "reader of all": bearer(server.key("reader")),
        "no key": {},
        "wrong key": bearer(text[:-2] + ("AA" if text[-2:] != "AA" else "BB")),
        "revoked key": bearer(revoked_text),
        "expired key": bearer(expired_text),
        "key as a cookie": {"Cookie": f"{cookie}={text}"},
        "wrong session": {"Cookie": f"{cookie}={'A' * 43}"},
        "signed in": signed_in,
        "signed in, other token": {**signed_in, CSRF_HEADER: backend.sessions.csrf("A" * 43)},
        "signed in, with token": {**signed_in, CSRF_HEADER: backend.sessions.csrf(token)},
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    clock = SetClock(DAY)
    settings = settings_in(tmp_path_factory.mktemp("isolation"), scheduler={"enabled": False})
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaigns = {}
        for tenant in TENANTS:
            spec = content(name=f"of {tenant}", scope=tenant, advertiser=tenant, slots=1)
            campaigns[tenant] = operator.create_campaign(spec)["id"]
        server.client("publisher", "P-1").push_impressions([impression("u1")])
        server.client("advertiser", "Ad-1").push_conversions([conversion("u1")])
        clock.moment = NEXT_DAY
        for campaign in campaigns.values():
            assert len(operator.release(campaign)) == 1
        callers = callers_of(server)
        while server.backend.keys.authenticate(callers["expired key"]["Authorization"][7:]):
            pass
        yield World(server, campaigns, callers)


def path_of(world: World, path: str, campaign: str) -> str:
    key_id = ""
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
    answer = world.send(method, path_of(world, path, world.campaigns["Ad-1"]), caller, call)
    if call.is_open:
        expected = 200
    elif caller in NOBODIES:
        expected = 401
    elif caller in SESSIONS:
        is_safe = method == "GET" or caller == "signed in, with token"
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
        answer = world.send(method, path_of(world, path, campaign), caller, call)
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


def users_on_disk(server: Running, source: Source) -> list[str]:
    files = [path for tenant in TENANTS for path in server.backend.files.live(source, tenant)]
    return [user for path in set(files) for user in pq.read_table(path)["user_id"].to_pylist()]


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


MARK = "mark4711"


def pushed_marks(server: Running) -> None:
    """Rows of every verdict that carry the mark where personal data stands."""
    marked = f"{MARK}-user"
    impressions = [
        impression(marked, event_id=f"{MARK}-i"),
        impression(marked, event_id=f"{MARK}-i"),
        impression(marked, kind=MARK),
        impression(marked, timestamp=MARK),
        impression(f"{MARK}\0"),
        impression(MARK * 40),
        impression(marked, publisher_id=MARK),
    ]
    conversions = [
        conversion(marked, event_id=f"{MARK}-c", kind=MARK),
        conversion(marked, event_id=f"{MARK}-c"),
        conversion(marked, value=-1),
        conversion(marked, value=MARK),
        conversion(marked, advertiser_id=MARK),
    ]
    for answer in (
        server.client("publisher", "P-1").push_impressions(impressions, "marked"),
        server.client("advertiser", "Ad-1").push_conversions(conversions, "marked"),
    ):
        assert min(answer["accepted"], answer["duplicates"], answer["quarantined"]) > 0
        assert MARK not in json.dumps(answer)


def readable(answer: httpx.Response) -> str:
    if answer.headers.get("content-type") == "application/vnd.apache.parquet":
        return str(pq.read_table(pa.BufferReader(answer.content)).to_pylist())
    return answer.text


def pages() -> list[tuple[str, str]]:
    """Every page of the dashboard: method and path."""
    from adsbpc.service.dashboard import routes

    found, waiting = [("GET", "/openapi.json")], list(routes.router.routes)
    for route in waiting:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            waiting.extend(inner.routes)
        else:
            found += [(method, route.path) for method in route.methods]  # type: ignore[attr-defined]
    assert len(found) > 10
    return sorted(found)


def test_nothing_shows_raw_events(
    caplog: pytest.LogCaptureFixture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    caplog.set_level(logging.DEBUG)
    clock = SetClock(DAY)
    settings = settings_in(tmp_path_factory.mktemp("marks"), scheduler={"enabled": False})
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content(slots=1))["id"]
        pushed_marks(server)
        clock.moment = NEXT_DAY
        assert len(operator.release(campaign)) == 1
        crawled = World(server, {}, callers_of(server))
        gets = [path for method, path in TABLE if method == "GET"]
        gets += [path for method, path in pages() if method == "GET"]
        gets += [
            f"/v1/campaigns/{campaign}/report?format={name}" for name in ("csv", "parquet", "html")
        ]
        answered = 0
        for path in gets:
            asked = path.format(campaign=campaign, slot=1, file="x")
            for caller in crawled.callers:
                answer = crawled.send("GET", asked, caller, Call({}))
                assert answer.status_code < 500
                assert MARK not in readable(answer), f"{asked} as {caller}"
                answered += answer.status_code == 200
        assert answered > 60
        assert MARK in str(users_on_disk(server, "impressions"))
        data = server.backend.settings.data
    told = [str(vars(record)) for record in caplog.records if "http" not in record.name]
    assert len(told) > 100
    assert not [line for line in told if MARK in line]
    # Besides the events and the books of who contributed what, no file knows anybody.
    kept = [path for path in data.rglob("*") if path.is_file()]
    known = {path.relative_to(data).parts[0] for path in kept if MARK.encode() in path.read_bytes()}
    assert known <= {"events", "adsbpc-books"}
    assert len({path.relative_to(data).parts[0] for path in kept}) > 4


def test_pages_are_for_who_is_signed_in(world: World) -> None:
    for method, path in pages():
        asked = path.format(campaign=world.campaigns["Ad-1"], file="x", key_id="0" * 16)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for caller in NOBODIES:
            answer = world.send(method, asked, caller, Call({}, headers=form))
            if path in OPEN_PAGES:
                assert answer.status_code in (200, 404) or (method, path) == ("POST", "/sign-in")
            else:
                assert answer.status_code == 303, f"{method} {path} as {caller}"
                assert answer.headers["location"].startswith("/sign-in")
        if method == "POST" and path != "/sign-in":
            # A cookie alone, as another site could make a browser send it, changes nothing.
            assert world.send(method, asked, "signed in", Call({}, headers=form)).status_code == 403


def figures(url: str) -> dict[str, float]:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    # Those of the request for the figures themselves, and of time passing.
    return {
        name: float(value)
        for name, value in samples.items()
        if 'route="/metrics"' not in name and "looked_at" not in name
    }


def test_figures_do_not_change_with_what_is_pushed(world: World) -> None:
    publisher = world.server.client("publisher", "P-1")
    advertiser = world.server.client("advertiser", "Ad-1")
    publisher.push_impressions([impression("first")])
    before = figures(world.server.url)
    assert before
    for number in range(5):
        rows = [impression(f"u{number}-{row}", event_id=f"e{row % 3}") for row in range(number)]
        publisher.push_impressions([*rows, impression("bad", kind="?")], f"figures-{number}")
        advertiser.push_conversions([conversion(f"u{number}")] * number, f"figures-{number}")
    assert figures(world.server.url) == before


def test_every_decision_is_in_the_audit_log(world: World) -> None:
    audit = world.server.backend.audit
    for (method, path), call in TABLE.items():
        if call.is_open:
            continue
        for caller in (*ROLES, "no key", "wrong key", "signed in"):
            known = audit.newest(1)[0]
            answer = world.send(method, path_of(world, path, world.campaigns["Ad-2"]), caller, call)
            line = audit.newest(1)[0]
            assert line != known, f"{method} {path} as {caller}"
            assert line["request"] == answer.headers["x-request-id"]
            assert line["decision"] == ("allowed" if answer.status_code < 400 else "refused")
