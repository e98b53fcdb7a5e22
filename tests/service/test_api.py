"""Campaigns, releases, reports, the stream and keys, over HTTP."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from adsbpc import Client
from adsbpc.client import ClientError
from adsbpc.service.releases import publication
from tests.service.clocks import SetClock
from tests.service.pushed import CONVERSION, IMPRESSION
from tests.service.raw import assert_problem, http
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TOML = """
[campaign]
name = "from a file"
scope = "toml"
advertiser = "Ad-1"
start = 2026-03-01
end = 2026-03-03
publishers = ["P-1"]

[privacy]
rho = 0.5
"""


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, clock: SetClock) -> Iterator[Running]:
    """Its scheduler releases nothing by itself."""
    settings = settings_in(tmp_path_factory.mktemp("api"), scheduler={"enabled": False})
    with running(settings, clock) as found:
        yield found


@pytest.fixture
def operator(server: Running) -> Client:
    return server.client("operator")


def send(server: Running, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {server.key('operator')}", **more.pop("headers", {})}
    sent = {"content": body} if isinstance(body, (str, bytes)) else {"json": body}
    if body is None:
        sent = {}
    return http().request(method, server.url + path, headers=headers, **sent, **more)


def at(day: float) -> datetime:
    """After so many slots, and the grace period."""
    return START + day * DAY + timedelta(minutes=10)


# ---- campaigns -------------------------------------------------------------------------------


def test_a_campaign_is_what_was_sent(server: Running, operator: Client) -> None:
    created = operator.create_campaign(content())
    assert operator.campaign(created["id"]) == created
    # What was left to the version at hand is stated, because a later one might choose otherwise.
    left_open = {"heavy_user": None, "histogram_share": None}
    stated = {"mechanism": "adsbpc", "personal_budget": left_open}
    # What the settings say of late impressions is stated, too, and that nobody has to come first.
    further = {"events": {"settle": "0d", "wait": "0d"}, "checks": {"min_rows": 0}}
    privacy = {**content()["privacy"], **stated}
    assert created["content"] == {**content(), "privacy": privacy, **further}
    assert (created["released"], created["due"], created["problem"]) == (0, 0, "")
    assert created["guarantee"]["rho"] == 1.0
    (listed,) = operator.campaigns()
    assert listed.items() <= created.items()
    assert server.client("advertiser", "Ad-1").campaigns() == [listed]


def test_a_campaign_may_come_as_toml_with_its_last_day(server: Running) -> None:
    headers = {"Content-Type": "application/toml; charset=utf-8"}
    planned = send(server, "POST", "/v1/plan", TOML, headers=headers)
    assert planned.status_code == 200
    answer = send(server, "POST", "/v1/campaigns", TOML, headers=headers)
    assert answer.status_code == 201
    assert (answer.json()["slots"], answer.json()["start"]) == (3, "2026-03-01")


def test_the_last_day_may_stand_in_json(operator: Client) -> None:
    spec = content(end="2026-03-31")
    del spec["campaign"]["slots"]
    assert operator.create_campaign(spec)["slots"] == 31


def test_planning_writes_nothing(server: Running, operator: Client) -> None:
    before = sorted(path for path in server.backend.settings.data.rglob("*") if path.is_file())
    planned = operator.plan(content())
    assert planned["guarantee"]["rho"] == 1.0
    after = sorted(path for path in server.backend.settings.data.rglob("*") if path.is_file())
    assert [path for path in after if path not in before and "audit" not in path.parts] == []
    assert operator.campaigns() == []


def test_every_problem_of_a_campaign_is_told_at_once(operator: Client) -> None:
    spec = content(slots=0, start="yesterday", colour="red", publishers=[])
    spec["privacy"]["rho"] = -1
    with pytest.raises(ClientError) as told:
        operator.create_campaign({**spec, "campaign": {**spec["campaign"], "start": "2026-03-01"}})
    assert told.value.status == 422
    for key in ("slots", "colour", "publishers", "rho"):
        assert key in told.value.detail
    with pytest.raises(ClientError, match="expected a day such as 2026-03-01"):
        operator.create_campaign(spec)


@pytest.mark.parametrize(
    "change", [{"start": "2026-02-27", "slots": 9}, {"end": "2026-03-05"}, {"timezone": "Mars/X"}]
)
def test_campaigns_that_cannot_be_are_refused(operator: Client, change: dict[str, Any]) -> None:
    with pytest.raises(ClientError) as told:
        operator.create_campaign(content(**change))
    assert told.value.status == 422
    assert operator.campaigns() == []


def test_a_scope_has_the_room_that_it_has(operator: Client, clock: SetClock) -> None:
    first = operator.create_campaign(content(slots=1))["id"]
    clock.moment = at(1)
    operator.release(first)
    with pytest.raises(ClientError) as told:
        operator.create_campaign(content(name="second", start="2026-03-05"))
    assert told.value.status == 409


def test_one_of_many_creates_a_name(server: Running) -> None:
    def create(_: int) -> int:
        return send(server, "POST", "/v1/campaigns", content()).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(create, range(8))) == [201] + [422] * 7


# ---- releases --------------------------------------------------------------------------------


def test_slots_are_released_by_hand_when_they_are_due(
    server: Running, operator: Client, clock: SetClock
) -> None:
    campaign = operator.create_campaign(content())["id"]
    assert operator.release(campaign) == []
    with pytest.raises(ClientError, match="slot 1: is not due yet") as told:
        operator.release(campaign, through=1)
    assert told.value.status == 409
    # Over, but for less than the grace period, which is 5 minutes here.
    clock.moment = START + DAY + timedelta(minutes=4)
    assert operator.release(campaign) == []
    clock.moment = at(2)
    # The first has missed its moment, and comes with the second.
    visible_at = (START + 2 * DAY + timedelta(minutes=15)).isoformat().replace("+00:00", "Z")
    done = {"replayed": False, "visible_at": visible_at}
    assert operator.release(campaign, through=1) == [{"slot": 1, **done}]
    assert operator.release(campaign) == [{"slot": 2, **done}]
    assert operator.releases(campaign) == []
    with pytest.raises(ClientError, match="Slot 2 is the last that is"):
        operator.release(campaign, through=3)

    server.show(campaign)
    assert clock.moment == START + 2 * DAY + timedelta(minutes=15)
    path = f"/v1/campaigns/{campaign}/releases"
    before = send(server, "GET", path).content
    assert operator.release(campaign) == operator.release(campaign, through=1) == []
    assert send(server, "GET", path).content == before
    assert [each["slot"] for each in operator.releases(campaign, after=1)] == [2]
    assert send(server, "GET", f"{path}/2").json() == operator.releases(campaign)[1]
    assert_problem(send(server, "GET", f"{path}/3"), 404)


def test_two_hands_release_a_slot_once(server: Running, clock: SetClock, operator: Client) -> None:
    campaign = operator.create_campaign(content())["id"]
    clock.moment = at(3)

    def release(_: int) -> list[dict[str, Any]]:
        answer = send(server, "POST", f"/v1/campaigns/{campaign}/releases")
        return list(answer.json()["released"]) if answer.status_code == 200 else []

    with ThreadPoolExecutor(4) as pool:
        done = [each for one in pool.map(release, range(4)) for each in one]
    first = sorted(each["slot"] for each in done if not each["replayed"])
    assert first == [1, 2, 3]
    server.show(campaign)
    assert [each["slot"] for each in operator.releases(campaign)] == [1, 2, 3]
    assert operator.verification(campaign)["verified"]


def test_reports_in_every_format(server: Running, operator: Client, clock: SetClock) -> None:
    campaign = operator.create_campaign(content())["id"]
    path = f"/v1/campaigns/{campaign}/report"
    assert_problem(send(server, "GET", path), 404)
    server.client("publisher", "P-1").push_impressions([IMPRESSION | {"timestamp": START}])
    server.client("advertiser", "Ad-1").push_conversions([CONVERSION | {"timestamp": START}])
    clock.moment = at(1)
    operator.release(campaign)
    assert_problem(send(server, "GET", path), 404)
    server.show(campaign)
    report = json.loads(operator.report(campaign))
    lines = operator.report(campaign, "csv").decode().splitlines()
    table = pq.read_table(io.BytesIO(operator.report(campaign, "parquet")))
    assert len(lines) - 1 == table.num_rows > 0
    assert lines[0].split(",") == table.column_names
    assert report["budget"]["campaign"]["spent"] > 0
    wide = operator.report(campaign, "csv", level=0.99)
    assert wide != operator.report(campaign, "csv", level=0.5)
    (cell, *_) = json.loads(operator.report(campaign, band=True))["cells"]
    assert cell["band_low"] < cell["low"] < cell["high"] < cell["band_high"]
    assert "band_low" not in report["cells"][0]
    page = send(server, "GET", f"{path}?format=html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    for query in ("format=xlsx", "level=1", "level=nan", "adjusted=perhaps", "band=maybe"):
        assert_problem(send(server, "GET", f"{path}?{query}"), 422)


# ---- the stream ------------------------------------------------------------------------------


def listened(server: Running, campaign: str, query: str = "", **headers: str) -> list[str]:
    """All lines until the stream ends."""
    answer = send(server, "GET", f"/v1/campaigns/{campaign}/stream{query}", headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return answer.text.splitlines()


def test_a_stream_tells_slots_and_ends_after_the_last(
    server: Running, operator: Client, clock: SetClock
) -> None:
    campaign = operator.create_campaign(content())["id"]
    heard: list[int] = []
    listener = threading.Thread(
        target=lambda: heard.extend(server.client("reader", "Ad-1").listen(campaign, after=0))
    )
    listener.start()
    for day in (1, 2, 3):
        clock.moment = at(day)
        operator.release(campaign)
        server.show(campaign)
        deadline = time.monotonic() + 5
        while day not in heard and time.monotonic() < deadline:
            time.sleep(0.01)
        assert heard[-1] == day
    listener.join(5)
    assert not listener.is_alive()
    assert heard == [1, 2, 3]

    event = ["event: release", "id: 3", f'data: {{"campaign": "{campaign}", "slot": 3}}', ""]
    assert listened(server, campaign, "?after=2") == [": listening", "", *event]
    # Browsers say by themselves what they heard last.
    assert listened(server, campaign, "?after=0", **{"Last-Event-ID": "2"})[2:] == event
    everything = listened(server, campaign, "?after=0", **{"Last-Event-ID": "nonsense"})
    assert [line for line in everything if line.startswith("id:")] == ["id: 1", "id: 2", "id: 3"]
    assert listened(server, campaign) == [": listening", ""]


def test_a_stream_ends_when_its_key_does(
    server: Running, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "_KEEP_ALIVE_SECONDS", 0.1)
    campaign = operator.create_campaign(content())["id"]
    made = operator.create_key("reader", "Ad-1")
    headers = {"Authorization": f"Bearer {made['key']}"}
    url = f"{server.url}/v1/campaigns/{campaign}/stream"
    with http().stream("GET", url, headers=headers) as answer:
        lines = answer.iter_lines()
        assert next(lines) == ": listening"
        operator.revoke_key(made["key_id"])
        for number, line in enumerate(lines):
            assert line in ("", ": listening")
            assert number < 100, "it goes on"


def test_a_revoked_key_hears_of_no_slot(server: Running, operator: Client, clock: SetClock) -> None:
    campaign = operator.create_campaign(content())["id"]
    made = operator.create_key("reader", "Ad-1")
    with Client(server.url, made["key"]) as client:
        slots = client.listen(campaign, after=0)
        clock.moment = at(1)
        operator.release(campaign)
        server.show(campaign)
        assert next(slots) == 1
        operator.revoke_key(made["key_id"])
        clock.moment = at(3)
        operator.release(campaign)
        server.show(campaign)
        assert list(slots) == []


def test_a_listener_does_not_hold_up_the_end(
    tmp_path: Any, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[list[int]] = []
    opened: list[int] = []
    slots = publication.Watch.slots

    def noted(self: publication.Watch, registered: Any, after: int) -> Any:
        opened.append(after)
        return slots(self, registered, after)

    monkeypatch.setattr(publication.Watch, "slots", noted)
    with running(settings_in(tmp_path), clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        client = Client(server.url, server.key("reader"))

        def listen() -> None:
            heard.append(list(client.listen(campaign)))

        listeners = [threading.Thread(target=listen) for _ in range(5)]
        for listener in listeners:
            listener.start()
        while len(opened) < len(listeners):
            time.sleep(0.01)
    for listener in listeners:
        listener.join()
    client.close()
    # A stream that was cut off, at the end of the server's patience, would have raised an error.
    assert heard == [[]] * 5


# ---- keys and health -------------------------------------------------------------------------


def test_keys_are_made_listed_and_revoked(server: Running, operator: Client) -> None:
    ends = datetime.now(UTC) + timedelta(days=30)
    made = operator.create_key("publisher", "P-9", "spring", ends)
    with Client(server.url, made["key"], attempts=1) as client:
        assert client.whoami() == {
            "key_id": made["key_id"], "role": "publisher", "subject": "P-9",
        }  # fmt: skip
        known = operator.keys()
        listed = next(each for each in known if each["key_id"] == made["key_id"])
        assert listed == {name: value for name, value in made.items() if name != "key"}
        assert datetime.fromisoformat(listed["expires_at"]) == ends
        assert made["key"] not in json.dumps(known)
        operator.revoke_key(made["key_id"])
        with pytest.raises(ClientError) as told:
            client.whoami()
        assert told.value.status == 401
    with pytest.raises(ClientError) as told:
        operator.revoke_key(made["key_id"])
    assert told.value.status == 404
    known = operator.keys()
    assert {each["state"] for each in known} == {"valid", "revoked"}


@pytest.mark.parametrize(
    "wanted",
    [
        {"role": "emperor", "label": "x"},
        {"role": "publisher", "label": "x"},
        {"role": "operator", "subject": "me", "label": "x"},
        {"role": "reader", "label": ""},
        {"role": "reader"},
        {"role": "reader", "label": "x", "expires_at": "2020-01-01T00:00:00Z"},
        {"role": "reader", "label": "x", "expires_at": "2099-01-01T00:00:00"},
        {"role": "reader", "label": "x", "expires_at": 4_000_000_000},
        {"role": "reader", "label": "x", "secret": "mine"},
    ],
)
def test_keys_that_cannot_be_are_refused(server: Running, wanted: dict[str, Any]) -> None:
    answer = send(server, "POST", "/v1/keys", wanted)
    assert_problem(answer, 422)
    assert len(server.backend.keys.list()) == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_monitors_may_ask_without_a_body(server: Running, path: str) -> None:
    answer = http().head(f"{server.url}{path}")
    assert (answer.status_code, answer.content) == (200, b"")


def test_health(server: Running) -> None:
    assert http().get(f"{server.url}/healthz").json() == {"status": "up"}
    assert http().get(f"{server.url}/readyz").json() == {"status": "ready"}
    (server.backend.settings.data / "ledger.sqlite").write_bytes(b"no database at all" * 500)
    assert_problem(http().get(f"{server.url}/readyz"), 503)
    assert http().get(f"{server.url}/healthz").status_code == 200
