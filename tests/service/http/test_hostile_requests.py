"""Requests that are tricks: on the wire, in headers and paths, and in names of things."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adsbpc.client import ClientError
from tests.service.clocks import START, SetClock
from tests.service.pushed import IMPRESSION
from tests.service.raw import (
    MEGABYTE,
    assert_problem,
    exchange,
    flood,
    http,
    memory_stays_flat,
    status_of,
)
from tests.service.running import Running, content, running, settings_in

SQL = "'); DROP TABLE adsbpc_campaigns; DELETE FROM adsbpc_keys; --"
NAMES = [
    "../../../../tmp/evil",
    "..",
    ".",
    "/etc/passwd",
    "C:\\windows\\system32",
    "%2e%2e%2f%2e%2e%2fetc",
    "adsbpc-releases",
    "CON",
    "~root",
    "$(reboot) `reboot` ; reboot |",
    "<script>alert(1)</script>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    'a"; filename="evil.html',
    SQL,
    "x" * 200,
    "\U0001f4a5" * 200,
    "caf\u00e9",
    "\u0430cme",  # a Cyrillic a
]
REFUSED_NAMES = [
    "",
    " padded ",
    "x" * 201,
    "line\nbreak",
    "nul\0",
    "bell\a",
    "\u202egnissim",  # written from right to left
    "\u200bhidden",
    "\ud800",
    7,
    None,
    ["a"],
    {"a": "b"},
]


@pytest.fixture(scope="module")
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, clock: SetClock) -> Iterator[Running]:
    settings = settings_in(tmp_path_factory.mktemp("tricks"), scheduler={"enabled": False})
    with running(settings, clock) as found:
        yield found


def asked(server: Running, *lines: str, role: str = "operator", body: bytes = b"") -> bytes:
    key = server.key(role, "P-1" if role == "publisher" else "")
    head = [*lines, f"Authorization: Bearer {key}", "", ""]
    return "\r\n".join(head).encode("latin-1") + body


WHOAMI = ("GET /v1/whoami HTTP/1.1", "Host: x")
SMUGGLED = b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n"
PUSH = (
    "POST /v1/impressions HTTP/1.1", "Host: x", "Idempotency-Key: k",
    "Content-Type: application/json",
)  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (["Content-Length: 4", "Transfer-Encoding: chunked"], b"2\r\n[]\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 2"], b"0\r\n\r\n"),
        (["Content-Length: 2", "Content-Length: 40"], b"[]"),
        (["Content-Length: +2"], b"[]"),
        (["Content-Length: -2"], b"[]"),
        (["Content-Length: 0x2"], b"[]"),
        (["Content-Length: 2, 2"], b"[]"),
        (["Content-Length : 2"], b"[]"),
        (["Transfer-Encoding: xchunked"], b"2\r\n[]\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked, identity"], b"2\r\n[]\r\n0\r\n\r\n"),
        (["Transfer-Encoding : chunked"], b"2\r\n[]\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"-2\r\n[]\r\n0\r\n\r\n"),
        (["Transfer-Encoding: chunked"], b"2;\r[]\r\n0\r\n\r\n"),
        (["X: a", " Content-Length: 2"], b"[]"),
        (["\0: a"], b""),
        (["X: a\rContent-Length: 2"], b"[]"),
    ],
)
def test_requests_of_two_meanings_are_refused(
    server: Running, lines: list[str], body: bytes
) -> None:
    """Whoever stands in front may see one request where this server would see two."""
    sent = asked(server, *PUSH, *lines, role="publisher", body=body)
    answer = exchange(server.url, sent + SMUGGLED)
    assert status_of(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer
    assert b"application/problem+json" in answer


def test_two_requests_at_once_get_two_answers(server: Running) -> None:
    sent = asked(server, *WHOAMI) + asked(server, *WHOAMI, "Connection: close", role="publisher")
    answer = exchange(server.url, sent)
    assert re.findall(rb'"role":"(\w+)"', answer) == [b"operator", b"publisher"]


@pytest.mark.parametrize("line", ["", "\x16\x03\x01\x02\x00", "GET / HTTP/9.9", "GET /\0 HTTP/1.1"])
def test_what_is_no_http_is_refused(server: Running, line: str) -> None:
    answer = exchange(server.url, f"{line}\r\n\r\n\r\n\r\n".encode(), timeout=1)
    assert not answer or status_of(answer) == 400


def test_two_keys_are_none(server: Running) -> None:
    other = f"Authorization: Bearer {server.key('publisher', 'P-1')}"
    assert (
        status_of(exchange(server.url, asked(server, *WHOAMI, other, "Connection: close"))) == 401
    )


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "bearer adsbpc_",
        "Bearer \x80\xff",
        "Bearer " + "a" * 9_000,
    ],
)
def test_odd_keys_are_wrong_keys(server: Running, header: str) -> None:
    sent = "\r\n".join([*WHOAMI, f"Authorization: {header}", "Connection: close", "", ""])
    assert status_of(exchange(server.url, sent.encode("latin-1"))) == 401
    server.backend.throttle.record_success("127.0.0.1")


def test_headers_come_to_an_end(server: Running) -> None:
    for start in (b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n"):
        piece = b"X: a\r\n" * 1_000 if start.endswith(b"\n") else b"a" * 6_000
        with memory_stays_flat(16 * MEGABYTE):
            sent = flood(server.url, start, (piece for _ in range(100_000)))
        assert sent.taken < 16 * MEGABYTE
        assert status_of(sent.answer) == 400


def test_trailers_come_to_an_end(server: Running) -> None:
    head = asked(server, *PUSH, "Transfer-Encoding: chunked", role="publisher")
    with memory_stays_flat(16 * MEGABYTE):
        sent = flood(
            server.url, head + b"2\r\n[]\r\n0\r\n", (b"X: a\r\n" * 1_000 for _ in range(10_000))
        )
    assert sent.taken < 16 * MEGABYTE


@pytest.mark.parametrize("host", ["[", "x\x80", "a b", "x/y?z", "evil.example:99999999", ""])
def test_any_host_is_harmless(server: Running, host: str) -> None:
    for target in ("/v1/whoami", "/nowhere", "/campaigns/x", "/"):
        for accepted in ("*/*", "text/html"):
            lines = (
                f"GET {target} HTTP/1.1",
                f"Host: {host}",
                f"Accept: {accepted}",
                "Connection: close",
            )
            answer = exchange(server.url, asked(server, *lines))
            assert status_of(answer) in (200, 303, 400, 404)
            assert b"evil.example" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/v1/campaigns/../../etc/passwd",
        "/v1/campaigns/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/campaigns/%00",
        "/v1/campaigns/" + "0" * 32 + "%0d%0aSet-Cookie:%20a=b",
        "/v1/campaigns/" + "0" * 31 + "%EF%BC%90",
        "/v1/campaigns/" + "0" * 32 + "/releases/999999999999999999999",
        "/v1/campaigns/" + "0" * 32 + "/releases/1%00",
        "/v1/campaigns/" + "0" * 32 + "/releases/-1",
        "/static/../../../../etc/passwd",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e",
        "/static/..\\..\\service.sqlite",
        "/static//etc/passwd",
        "//etc/passwd",
        "/%2e%2e/data/service.sqlite",
        "/campaigns/%00",
        "/campaigns/..%2f..%2fetc",
        "/campaigns/" + "a" * 10_000,
        "/sign-in?next=//evil.example",
        "/sign-in?next=https:%2f%2fevil.example",
        "/%ff%fe",
    ],
)
def test_paths_lead_nowhere_else(server: Running, path: str) -> None:
    for accepted in ("application/json", "text/html"):
        lines = (f"GET {path} HTTP/1.1", "Host: x", f"Accept: {accepted}", "Connection: close")
        answer = exchange(server.url, asked(server, *lines))
        assert status_of(answer) in ((200,) if path.startswith("/sign-in") else (303, 404, 422))
        for secret in (b"root:", b"SQLite format", b"Set-Cookie", b"set-cookie", b"evil.example"):
            assert secret not in answer.split(b"\r\n\r\n")[0] + answer


def test_methods_that_are_made_up_leave_no_figure(server: Running) -> None:
    odd = ("PROPFIND", "MKCOL", "LOCK", "SUBSCRIBE", "PURGE", "TRACE")
    for method in odd:
        answer = http().request(method, f"{server.url}/v1/whoami")
        assert_problem(answer, 405)
        assert answer.headers["allow"] == "GET"
    figures = http().get(f"{server.url}/metrics").text
    assert 'method="(other)"' in figures
    assert not [method for method in odd if method in figures]


def test_the_address_of_a_client_is_not_its_to_say(server: Running) -> None:
    throttle = server.backend.throttle
    for number in range(10):
        headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": f"10.0.0.{number}"}
        assert_problem(http().get(f"{server.url}/v1/whoami", headers=headers), 401)
    answer = http().get(f"{server.url}/v1/whoami", headers={"Authorization": "Bearer wrong"})
    assert_problem(answer, 429)
    assert 0 < int(answer.headers["retry-after"]) <= 60
    throttle.record_success("127.0.0.1")


def test_an_id_of_the_client_comes_back_only_if_it_is_plain(server: Running) -> None:
    for given, taken in (("run-7.a", True), ("a b", False), ("x" * 65, False), ("a\x80", False)):
        headers = {b"X-Request-ID": given.encode("latin-1")}
        answer = http().get(f"{server.url}/healthz", headers=headers)
        assert (answer.headers["x-request-id"] == given) is taken


def test_names_are_only_names(server: Running, clock: SetClock) -> None:
    """As name, scope, advertiser, publisher: kept as given, and no file appears elsewhere."""
    operator = server.client("operator")
    around = server.backend.settings.data.parent
    campaigns = {}
    for number, name in enumerate(NAMES):
        named = {"scope": name, "publishers": [name, "P-1"], "slots": 1}
        spec = content(name=name, advertiser=name, **named)
        campaigns[name] = operator.create_campaign(spec)["id"]
        pushed = server.client("publisher", name).push_impressions(
            [{**IMPRESSION, "publisher_id": name, "advertiser_id": name}],
            batch=re.sub(r"[^\x21-\x7e]", "_", name),
        )
        assert pushed["accepted"] == 1, number
    # A second spelling of the same letters is the same name.
    twin = unicodedata.normalize("NFD", "caf\u00e9")
    with pytest.raises(ClientError, match="has a campaign of that name"):
        operator.create_campaign(content(name=twin, scope=twin, advertiser="caf\u00e9", slots=1))
    clock.moment = START + timedelta(days=1)
    for name, campaign in campaigns.items():
        assert [each["slot"] for each in operator.release(campaign)] == [1]
        server.show(campaign)
        advertiser = server.client("advertiser", name)
        assert [each["id"] for each in advertiser.campaigns()] == [campaign]
        shown = advertiser.campaign(campaign)
        assert (shown["name"], shown["scope"], shown["publishers"][0]) == (name, name, name)
        key = server.key("operator")
        report = http().get(
            f"{server.url}/v1/campaigns/{campaign}/report?format=csv",
            headers={"Authorization": f"Bearer {key}"},
        )
        told = report.headers["content-disposition"]
        assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_-]+\.csv"', told)
    clock.moment = START
    assert len(operator.campaigns()) == len(NAMES)
    assert {path.name for path in around.iterdir()} == {"data"}
    assert not list(Path("/tmp").glob("evil*"))


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_names_that_deceive_are_refused(server: Running, name: Any) -> None:
    headers = {
        "Authorization": f"Bearer {server.key('operator')}",
        "Content-Type": "application/json",
    }
    for field in ("name", "scope", "advertiser"):
        if (field, name) == ("advertiser", " padded "):
            # An id of the events, letter by letter.
            continue
        body = json.dumps(content(**{field: name}))
        answer = http().post(f"{server.url}/v1/campaigns", content=body, headers=headers)
        assert_problem(answer, 400, 422)
    key = json.dumps({"role": "publisher", "subject": name, "label": "x"})
    if name != " padded ":
        assert_problem(http().post(f"{server.url}/v1/keys", content=key, headers=headers), 422)


@pytest.mark.parametrize(
    "batch", ["", "a b", "\t", "caf\u00e9", "x" * 201, "a\x00", "a\r\nX-Evil: 1"]
)
def test_names_of_batches(server: Running, batch: str) -> None:
    lines = (
        *PUSH[:2],
        *PUSH[3:],
        f"Idempotency-Key: {batch}",
        "Content-Length: 2",
        "Connection: close",
    )
    answer = exchange(server.url, asked(server, *lines, role="publisher", body=b"[]"))
    # A line break makes two headers, which is what it says.
    assert status_of(answer) == (200 if "\n" in batch else 400 if "\0" in batch else 422)
    assert b"x-evil" not in answer.lower()


FILES: list[dict[str, Any]] = [
    {"events": {"impressions": "/etc/passwd", "conversions": "x.parquet"}},
    {"engine": {"options": {"database": "/tmp/evil.duckdb"}}},
    {"ledger": {"location": "/tmp/evil.sqlite"}},
    {"directory": "/etc"},
    {"attribution": {"model": "markov", "fit": {"parameters": "/etc/passwd"}}},
    {"attribution": {"model": "markov", "fit": {"previous": "/etc"}}},
    {
        "attribution": {
            "model": "shapley",
            "fit": {"rho": 0.1, "slots": 1, "holdout": "/etc/passwd"},
        }
    },
    {
        "privacy": {
            "rho": 1.0,
            "mechanism": "personal-budget",
            "personal_budget": {"previous": "/etc"},
        }
    },
    {"campaign": {**content()["campaign"], "publishers": "/etc/passwd"}},
    {"workload": [{"queries": "matrix", "matrix": "/etc/passwd"}]},
    {"workload": [{}, {"queries": "matrix", "matrix": "/etc/passwd"}]},
    {"spend": {"file": "/etc/passwd"}},
]


@pytest.mark.parametrize("path", ["/v1/plan", "/v1/campaigns"])
@pytest.mark.parametrize("section", FILES)
def test_campaigns_that_name_files_are_refused(
    server: Running, path: str, section: dict[str, Any]
) -> None:
    headers = {
        "Authorization": f"Bearer {server.key('operator')}",
        "Content-Type": "application/json",
    }
    body = json.dumps({**content(name="files", scope="files"), **section})
    answer = http().post(server.url + path, content=body, headers=headers)
    assert_problem(answer, 422)
    assert "root:" not in answer.text
    told = answer.json()["detail"]
    rules = (
        "names a file",
        "is decided by the server",
        "the rest is the server's",
        "unknown key [directory]",
        "the id of",
    )
    assert any(rule in told for rule in rules)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("a = " + "[" * 30_000, 400),
        ("a = " + "[" * 5_000 + "]" * 5_000, 400),
        (".".join("a" * 30_000) + " = 1", 413),
        ("\n".join(".".join(f"{line}" + "a" * 490) + " = 1" for line in range(60)), 422),
        ("a = " + "9" * 10_000, 400),
        ("a = 1\n" * 2, 400),
        ("a = '" + "x" * 70_000 + "'", 413),
        ("\ufeffa = 1", 400),
    ],
)
def test_toml_that_grows(server: Running, body: str, status: int) -> None:
    headers = {
        "Authorization": f"Bearer {server.key('operator')}",
        "Content-Type": "application/toml",
    }
    with memory_stays_flat(128 * MEGABYTE):
        answer = http().post(f"{server.url}/v1/plan", content=body.encode(), headers=headers)
    assert_problem(answer, status)
