"""Requests that nobody means well: refused or harmless, and nothing that was stored is lost."""

from __future__ import annotations

import gzip
import io
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.service.auth.permissions import Role
from adsbpc.service.http import limits
from tests.service.clocks import SetClock
from tests.service.processes import prepared, served
from tests.service.pushed import CONVERSION, IMPRESSION
from tests.service.raw import (
    MEGABYTE,
    assert_problem,
    connected,
    exchange,
    flood,
    http,
    memory_stays_flat,
    received,
    status_of,
)
from tests.service.running import Running, running, settings_in

LIMIT = MEGABYTE
# What a server reads beyond the limit before it hangs up, and what two sockets hold.
SLACK = 16 * MEGABYTE
KEPT = Counter({f"kept-{number}": 1 for number in range(20)})
JSON, NDJSON = "application/json", "application/x-ndjson"
PARQUET = "application/vnd.apache.parquet"
Headers = dict[str, str]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = {"max_body_bytes": LIMIT, "max_unpacked_bytes": 4 * MEGABYTE, "max_rows": 1_000}
    settings = settings_in(
        tmp_path_factory.mktemp("hostile"), ingest=limits, scheduler={"enabled": False}
    )
    with running(settings, SetClock()) as found:
        rows = [{**IMPRESSION, "user_id": user, "event_id": None} for user in KEPT]
        found.client("publisher", "P-1").push_impressions(rows, "kept")
        rows = [{**CONVERSION, "user_id": user, "event_id": None} for user in KEPT]
        found.client("advertiser", "Ad-1").push_conversions(rows, "kept")
        yield found


@pytest.fixture
def server(hostile: Running) -> Iterator[Running]:
    """After each test it still answers, and has what it had before exactly once."""
    yield hostile
    assert hostile.client("publisher", "P-1").whoami()["subject"] == "P-1"
    for source in ("impressions", "conversions"):
        tables = [pq.read_table(file) for file in hostile.backend.files.live(source, "Ad-1")]
        users = Counter(user for table in tables for user in table["user_id"].to_pylist())
        assert {user: users[user] for user in KEPT} == KEPT


def post(server: Running, path: str, role: str, body: bytes, **headers: str) -> httpx.Response:
    subject = {"publisher": "P-1", "advertiser": "Ad-1"}.get(role, "")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    own = {
        "Authorization": f"Bearer {server.key(role, subject)}",
        "Idempotency-Key": role + str(time.time_ns()),
    }
    return http().post(server.url + path, content=body, headers={**own, **named}, timeout=30)


def push(server: Running, body: bytes, media_type: str = JSON, **headers: str) -> httpx.Response:
    return post(server, "/v1/impressions", "publisher", body, Content_Type=media_type, **headers)


GOOD = json.dumps([IMPRESSION])
PACKED = gzip.compress(b"[]", mtime=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[",
        b"null",
        b"17",
        b'"text"',
        GOOD.encode()[:-1],
        GOOD.encode() + b"]",
        GOOD.replace("u1", "\xe9").encode("latin-1"),
        GOOD.encode("utf-16"),
        GOOD.encode("utf-32"),
        GOOD.encode("utf-8-sig"),
        b"\xff\xfe\xfd",
        GOOD.replace('"u1"', '"\\ud800"').encode(),
        b"[" * 100_000,
        b"[" * 500 + b"]" * 500,
        b'{"a":' * 100_000,
        b'[{"user_id":' + b"9" * 100_000 + b"}]",
        gzip.compress(GOOD.encode(), mtime=0),
    ],
)
def test_what_is_no_array_of_rows_is_refused(server: Running, body: bytes) -> None:
    assert_problem(push(server, body), 400, 413)
    answer = push(server, body, NDJSON)
    if answer.status_code == 200:
        assert answer.json()["accepted"] == 0
    else:
        assert_problem(answer, 400, 413)


@pytest.mark.parametrize(
    "fields",
    [
        {"user_id": 7},
        {"user_id": "x" * 201},
        {"user_id": "a\0b"},
        {"user_id": ["u1"]},
        {"user_id": float("nan")},
        {"user_id": float("-inf")},
        {"timestamp": 1_772_000_000},
        {"timestamp": "2026-03-01"},
        {"timestamp": "9999-12-31T23:59:59Z"},
        {"timestamp": "0001-01-01T00:00:00+23:59"},
        {"timestamp": "2026-03-01T11:00:00" + "." + "9" * 10_000 + "Z!"},
        {"kind": "'; DROP TABLE adsbpc_files; --"},
        {"value": 1},
        {"x" * 10_000: 1},
        {"": 1},
    ],
)
def test_a_bad_row_does_not_hurt_its_neighbours(server: Running, fields: dict[str, Any]) -> None:
    rows = [{**IMPRESSION, "event_id": None, **more} for more in ({}, fields, {})]
    answer = push(server, json.dumps(rows).encode()).json()
    assert (answer["accepted"], answer["quarantined"]) == (2, 1)
    assert answer["verdicts"][0]["row"] == 1
    assert len(json.dumps(answer)) < 1_000


@pytest.mark.parametrize("value", ["1e309", "-1", "1" + "0" * 400, "1e-999", "true", '"1"', "[1]"])
def test_values_beyond_any_money(server: Running, value: str) -> None:
    line = json.dumps({**CONVERSION, "event_id": None, "value": 0.5}).replace("0.5", value).encode()
    answer = post(server, "/v1/conversions", "advertiser", line, Content_Type=NDJSON)
    # Too small to tell from nothing is nothing.
    assert answer.json()["accepted"] == (value == "1e-999")


@pytest.mark.parametrize(
    "media_type",
    ["", "text/csv", "application/jsonx", "multipart/form-data; boundary=x", "x" * 5_000],
)
def test_other_media_types_are_refused(server: Running, media_type: str) -> None:
    assert_problem(push(server, GOOD.encode(), media_type), 415)
    for path in ("/v1/plan", "/v1/campaigns", "/v1/keys"):
        assert_problem(post(server, path, "operator", b"{}", Content_Type=media_type), 415)


def chunks(piece: bytes) -> Iterator[bytes]:
    return repeat(b"%x\r\n%s\r\n" % (len(piece), piece))


def head_of(server: Running, path: str, role: str, *lines: str) -> bytes:
    subject = {"publisher": "P-1", "advertiser": "Ad-1"}.get(role, "")
    known = [f"Authorization: Bearer {server.key(role, subject)}"] if role else []
    content_type = "application/x-www-form-urlencoded" if path == "/sign-in" else JSON
    usual = [
        f"POST {path} HTTP/1.1",
        "Host: x",
        "Origin: http://x",
        "Idempotency-Key: k",
        f"Content-Type: {content_type}",
    ]
    return "\r\n".join([*usual, *known, *lines, "", ""]).encode()


@pytest.mark.parametrize("role", ["publisher", "operator", ""])
@pytest.mark.parametrize(
    "path", ["/v1/impressions", "/v1/plan", "/v1/keys", "/sign-in", "/nowhere"]
)
@pytest.mark.parametrize("lines", [["Content-Length: 10000000000"], ["Transfer-Encoding: chunked"]])
def test_ten_gigabytes_are_not_read(
    server: Running, path: str, role: str, lines: list[str]
) -> None:
    piece = b" " * 2**16
    pieces = chunks(piece) if "chunked" in lines[0] else repeat(piece)
    with memory_stays_flat(16 * MEGABYTE):
        sent = flood(server.url, head_of(server, path, role, *lines), pieces)
    assert sent.taken < LIMIT + SLACK
    assert status_of(sent.answer) in (401, 403, 404, 413)
    assert b"application/problem+json" in sent.answer
    assert b"connection: close" in sent.answer
    assert sent.answer.count(b"HTTP/1.1") == 1


def test_a_body_a_little_too_large_gets_its_answer(server: Running) -> None:
    """Whoever sends it learns why, whether or not the size is told first."""
    body = b" " * (LIMIT + 1)
    assert_problem(push(server, body), 413)
    key = server.key("publisher", "P-1")
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "k", "Content-Type": JSON}
    parts = (body[start : start + 10_000] for start in range(0, len(body), 10_000))
    assert_problem(http().post(f"{server.url}/v1/impressions", content=parts, headers=headers), 413)


def test_who_waits_to_be_asked_for_a_large_body_is_not_asked(server: Running) -> None:
    head = head_of(
        server, "/v1/impressions", "publisher", f"Content-Length: {LIMIT + 1}",
        "Expect: 100-continue",
    )  # fmt: skip
    answer = exchange(server.url, head)
    assert status_of(answer) == 413
    assert b"100 Continue" not in answer


def packed_zeros(megabytes: int) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as file:
        for _ in range(megabytes):
            file.write(b"\0" * MEGABYTE)
    return out.getvalue()


def test_a_small_body_that_unpacks_to_much(server: Running) -> None:
    bomb = packed_zeros(500)
    assert len(bomb) < LIMIT
    with memory_stays_flat(16 * MEGABYTE):
        assert_problem(push(server, bomb, Content_Encoding="gzip"), 413)
        toml = post(
            server, "/v1/plan", "operator", bomb, Content_Encoding="gzip", Content_Type=JSON
        )
        assert_problem(toml, 413)


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", PACKED[:-1], 400),
        ("gzip", PACKED + b"x", 400),
        ("gzip", PACKED * 2, 400),
        ("gzip", b"[]", 400),
        ("gzip", gzip.compress(PACKED, mtime=0), 400),
        ("gzip, gzip", gzip.compress(PACKED, mtime=0), 415),
        ("br", b"[]", 415),
        ("deflate", b"[]", 415),
        ("../gzip", b"[]", 415),
    ],
)
def test_other_packings(server: Running, encoding: str, body: bytes, status: int) -> None:
    assert_problem(push(server, body, Content_Encoding=encoding), status)


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, **options)
    return stream.getvalue()


def test_parquet_that_unpacks_to_much(server: Running) -> None:
    words = {"user_id": ["x" * 200_000] * 300, "advertiser_id": ["Ad-1"] * 300}
    deep = pa.array([None] * 10, pa.list_(pa.list_(pa.struct([("a", pa.string())]))))
    bodies = [
        parquet(words, compression="zstd"),
        parquet(words, compression="zstd", use_dictionary=False),
        parquet({"user_id": ["u"] * 1_001}),
        parquet({"user_id": deep}),
        parquet({f"c{number}": [1] for number in range(3_000)}),
    ]
    pa.default_memory_pool().release_unused()
    with memory_stays_flat(48 * MEGABYTE):
        for body in bodies:
            answer = push(server, body, PARQUET)
            if answer.status_code == 200:
                assert answer.json()["accepted"] == 0
            else:
                assert_problem(answer, 400, 413)


def broken(whole: bytes, rng: random.Random) -> bytes:
    body = bytearray(whole)
    if rng.random() < 0.2:
        return bytes(body[: rng.randrange(len(body))])
    # Often near the end, where the sizes stand.
    reach = rng.choice([len(body), 400])
    for _ in range(rng.randrange(1, 6)):
        body[-1 - rng.randrange(reach)] ^= 1 << rng.randrange(8)
    return bytes(body)


def test_broken_parquet(tmp_path: Path) -> None:
    """In a process of its own: what breaks a library must not break the server."""
    names = ("user_id", "publisher_id", "advertiser_id", "kind", "event_id")
    whole = parquet({name: [IMPRESSION[name]] * 50 for name in names})
    config, backend = prepared(tmp_path)
    key = backend.keys.create(Role.PUBLISHER, "P-1", "P-1", None)[1]
    rng = random.Random(2)
    with served(config) as server, httpx.Client(base_url=server.url) as client:
        for number in range(500):
            body = broken(whole, rng)
            answer = client.post(
                "/v1/impressions",
                content=body,
                headers={
                    "Authorization": f"Bearer {key}",
                    "Idempotency-Key": str(number),
                    "Content-Type": PARQUET,
                },
            )
            if answer.status_code != 200:
                assert_problem(answer, 400, 413)
            else:
                assert answer.json()["accepted"] == 0


def test_slow_clients_keep_nobody_waiting(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_HEADER_SECONDS", 5.0)
    monkeypatch.setattr(limits, "_BODY_SECONDS", 5.5)
    half = head_of(server, "/v1/impressions", "publisher", "Content-Length: 1000")
    ends = []

    def dawdle(sent: bytes) -> None:
        with connected(server.url) as opened:
            opened.sendall(sent)
            ends.append(received(opened))

    starts = (b"", b"GET /healthz HTT", half[:-2], half + b"[{")
    threads = [threading.Thread(target=dawdle, args=(sent,)) for sent in starts * 20]
    for thread in threads:
        thread.start()
    assert push(server, GOOD.encode()).status_code == 200
    assert http().get(f"{server.url}/readyz").status_code == 200
    # Answered while all of them still dawdle.
    assert not ends
    for thread in threads:
        thread.join()
    # They were hung up on, with nothing or with a problem.
    assert ends.count(b"") >= 60
