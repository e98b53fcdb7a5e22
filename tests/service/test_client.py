"""The client: sends again what may not have arrived, with the same key, and tells refusals."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adsbpc import Client
from adsbpc.client import ClientError
from tests.service.clocks import START, SetClock
from tests.service.pushed import IMPRESSION
from tests.service.running import content, running, settings_in

ANSWER = {"rows": 2, "accepted": 2, "quarantined": 0, "repeated": False}
# In place of an answer: the connection breaks before, or after the head of the answer.
BREAK, HALF = "break", "half"


def answer(status: int, body: object, **headers: str) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in {"Content-Length": len(text), **named}.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} x", *lines, "Connection: close", "", ""])
    return head.encode() + text


LATER = answer(429, {}, Retry_After="0")
UNAVAILABLE = answer(503, {}, Retry_After="0")


class Scripted:
    """A server that gives the answers that it was told to, one a connection, and keeps what it
    got."""

    def __init__(self, answers: list[bytes | str]) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for each in self._answers:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                lines = iter(stream.readline, b"\r\n")
                next(lines)
                headers = dict(line.decode().strip().split(": ", 1) for line in lines)
                headers = {name.lower(): value for name, value in headers.items()}
                self.got.append((headers, stream.read(int(headers.get("content-length", 0)))))
                if each == HALF:
                    connection.sendall(answer(200, ANSWER)[:-5])
                elif isinstance(each, bytes):
                    connection.sendall(each)

    def close(self) -> None:
        # Closing alone would leave it waiting.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@contextmanager
def scripted(*answers: bytes | str) -> Iterator[Scripted]:
    server = Scripted(list(answers))
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the client would have waited, in order."""
    seconds: list[float] = []
    monkeypatch.setattr("adsbpc.client.client.time", SimpleNamespace(sleep=seconds.append))
    return seconds


@pytest.mark.parametrize(
    "before",
    [[LATER], [UNAVAILABLE, LATER], [BREAK], [HALF], [answer(502, b"proxy")], [BREAK, UNAVAILABLE]],
)
@pytest.mark.parametrize("pack", [False, True])
def test_a_push_is_sent_again_the_same(before: list[bytes | str], pack: bool) -> None:
    with scripted(*before, answer(200, ANSWER)) as server, Client(server.url, "k", pack=pack) as c:
        assert c.push_impressions(iter([{"user_id": "u"}, {"user_id": "v"}])) == ANSWER
    assert len(server.got) == len(before) + 1
    (headers, body), *others = server.got
    assert headers["idempotency-key"]
    assert headers["authorization"] == "Bearer k"
    plain = gzip.decompress(body) if pack else body
    assert plain == b'{"user_id": "u"}\n{"user_id": "v"}'
    for more, same in others:
        assert (more["idempotency-key"], same) == (headers["idempotency-key"], body)


def test_each_push_has_a_key_of_its_own_unless_one_is_given() -> None:
    with scripted(*[answer(200, ANSWER)] * 3) as server, Client(server.url, "k") as client:
        for batch in (None, None, "mine"):
            client.push_conversions([], batch)
    keys = [headers["idempotency-key"] for headers, _ in server.got]
    assert keys[2] == "mine"
    assert len(set(keys)) == 3


def test_it_waits_as_long_as_it_is_told(waited: list[float]) -> None:
    later = (
        answer(429, {}, Retry_After="7"),
        answer(503, {}, Retry_After="86400"),
        answer(503, {}, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
        answer(503, {}, Retry_After="-1"),
    )
    with scripted(*later, answer(200, ANSWER)) as server, Client(server.url, "k") as client:
        client.push_impressions([])
    assert waited[:2] == [7, 30]
    assert len(waited) == 4
    assert all(0 <= seconds <= 30 for seconds in waited)


@pytest.mark.parametrize("refusal", [LATER, BREAK])
def test_it_gives_up(refusal: bytes | str) -> None:
    with scripted(*[refusal] * 9) as server, Client(server.url, "k", attempts=3) as client:
        with pytest.raises(ClientError) as told:
            client.push_impressions([])
        assert told.value.status == (429 if refusal == LATER else 0)
        assert len(server.got) == 3


def test_nobody_there() -> None:
    with scripted() as server:
        url = server.url
    with Client(url, "secret-key", attempts=2) as client:
        for ask in (
            client.whoami,
            lambda: client.push_impressions([]),
            lambda: next(client.listen("x")),
        ):
            with pytest.raises(ClientError, match="cannot be reached") as told:
                ask()
            assert told.value.status == 0
            assert "secret-key" not in repr(told.value) + repr(client)


def test_what_is_asked_is_not_sent_again() -> None:
    """Only pushes have a key that makes it safe."""
    with scripted(UNAVAILABLE, answer(200, {})) as server, Client(server.url, "k") as client:
        with pytest.raises(ClientError) as told:
            client.create_campaign({})
        assert told.value.status == 503
        assert len(server.got) == 1


@pytest.mark.parametrize(
    "body", [b"<html>bad gateway</html>", b"", b"[]", b'{"title": 1}', b"null"]
)
def test_words_of_a_proxy_are_told_as_they_are(body: bytes) -> None:
    with scripted(answer(404, body)) as server, Client(server.url, "k") as client:
        with pytest.raises(ClientError, match="HTTP 404") as told:
            client.whoami()
        assert told.value.status == 404


def test_a_redirect_is_not_followed_with_the_key() -> None:
    with scripted() as elsewhere, scripted(answer(302, b"", Location=elsewhere.url)) as server:
        with Client(server.url, "k") as client, pytest.raises(ClientError):
            client.whoami()
        assert elsewhere.got == []


def test_refusals_carry_what_the_server_said(tmp_path: Path) -> None:
    with running(settings_in(tmp_path), SetClock(START)) as server:
        with Client(server.url, "adsbpc_wrong") as client, pytest.raises(ClientError) as told:
            client.whoami()
        assert (told.value.status, told.value.title) == (401, "Unauthorized")
        assert told.value.to_do.startswith("Send the header Authorization")
        with pytest.raises(ClientError) as told:
            list(server.client("operator").listen("0" * 32))
        assert told.value.status == 404
        with pytest.raises(ClientError, match="has more than 10000 rows"):
            Client(server.url, server.key("publisher", "P-1"), max_rows=20_000).push_impressions(
                [IMPRESSION] * 10_001
            )


def test_moments_and_days_are_sent_as_text(tmp_path: Path) -> None:
    with running(settings_in(tmp_path), SetClock(START)) as server:
        row: dict[str, Any] = {**IMPRESSION, "timestamp": datetime(2026, 3, 1, 11, tzinfo=UTC)}
        publisher = Client(server.url, server.key("publisher", "P-1"), pack=True)
        with publisher:
            assert publisher.push_impressions([row])["accepted"] == 1
        spec = content(start=datetime(2026, 3, 1, tzinfo=UTC).date())
        assert server.client("operator").plan(spec)["guarantee"]["rho"] == 1.0
        with pytest.raises(TypeError, match="cannot be sent as JSON"):
            server.client("operator").plan({"campaign": object()})


def test_listening_ends_with_the_campaign(tmp_path: Path) -> None:
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())["id"]
        clock.moment = datetime(2026, 3, 5, tzinfo=UTC)
        server.wait_for(campaign, 3)
        assert list(operator.listen(campaign, after=0)) == [1, 2, 3]
        assert list(operator.listen(campaign)) == []


def test_without_httpx_the_extra_is_named() -> None:
    """Only the extras bring httpx: who has the package alone is told which one to install."""
    program = "import sys; sys.modules['httpx'] = None\nfrom adsbpc import Client"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("Install the extra: pip install 'adsbpc[service]'"), last
