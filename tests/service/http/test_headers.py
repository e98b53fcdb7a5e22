"""Every answer carries the headers; what an answer sets for itself stays where it may."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adsbpc.service.http.headers import CONTENT_SECURITY_POLICY, RequestIds, SecurityHeaders

Pairs = list[tuple[bytes, bytes]]


class Answering:
    """An application that answers with these headers and remembers what it was asked."""

    def __init__(self, headers: Pairs | None = None) -> None:
        self.headers, self.scopes = headers, list[Scope]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        start: Message = {"type": "http.response.start", "status": 418}
        if self.headers is not None:
            start["headers"] = self.headers
        await send(start)
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})


def ask(app: ASGIApp, headers: Pairs | None = None) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/", headers=headers)

    return asyncio.run(asked())


def ask_raw(app: ASGIApp, headers: Pairs) -> tuple[Scope, list[Message]]:
    """Without a client in between, which would refuse to send some headers."""
    scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    async def asked() -> None:
        await app(scope, receive, send)

    asyncio.run(asked())
    return scope, sent


@pytest.mark.parametrize("headers", [None, [], [(b"content-type", b"text/plain")]])
@pytest.mark.parametrize("over_tls", [False, True])
def test_what_every_answer_carries(headers: Pairs | None, over_tls: bool) -> None:
    answer = ask(SecurityHeaders(Answering(headers), over_tls))
    assert (answer.status_code, answer.text) == (418, "one two")
    found = dict(answer.headers)
    permissions = found.pop("permissions-policy").split(", ")
    assert {"camera=()", "microphone=()", "geolocation=()", "payment=()"} <= set(permissions)
    assert all(re.fullmatch(r"[a-z-]+=\(\)", permission) for permission in permissions)
    expected = {
        "content-security-policy": (
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
            "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
    }
    if over_tls:
        expected["strict-transport-security"] = "max-age=31536000"
    assert found == expected | {name.decode(): value.decode() for name, value in headers or []}


def test_what_an_answer_sets_for_itself() -> None:
    own: Pairs = [
        (b"Cache-Control", b"public, max-age=31536000"),
        (b"Content-Security-Policy", b"sandbox"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"X-Frame-Options", b"SAMEORIGIN"),
        (b"x-content-type-options", b""),
    ]
    answer = ask(SecurityHeaders(Answering(own), over_tls=False))
    assert answer.headers.get_list("cache-control") == ["public, max-age=31536000"]
    assert answer.headers.get_list("content-security-policy") == ["sandbox"]
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    # These are not for an answer to choose.
    assert answer.headers.get_list("x-frame-options") == ["DENY"]
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    # The application's own list is left as it was: it may be used again.
    assert len(own) == 6


def test_no_script_of_a_page_itself_may_run() -> None:
    parts = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == "'self'"
    assert not re.search(r"https?:|\*|unsafe-eval", CONTENT_SECURITY_POLICY)


def test_an_id_for_each_request_that_the_application_knows() -> None:
    application = Answering([(b"X-Request-Id", b"of the application")])
    answers = [ask(RequestIds(application)) for _ in range(20)]
    ids = [answer.headers.get_list("x-request-id") for answer in answers]
    assert ids == [[scope["state"]["request_id"]] for scope in application.scopes]
    assert len({each for [each] in ids}) == 20
    assert all(re.fullmatch(r"[0-9a-f]{24}", each) for [each] in ids)


@given(st.binary(max_size=70) | st.from_regex(rb"[A-Za-z0-9._-]{1,70}", fullmatch=True))
@example(b"")
@example(b"a" * 64)
@example(b"a" * 65)
@example(b"abc\n")
@example(b"a b")
@example("\u00e9".encode())
@example("\u0661".encode())
def test_an_id_of_the_client_is_taken_if_it_is_plain(given_id: bytes) -> None:
    app = RequestIds(Answering())
    scope, sent = ask_raw(app, [(b"x-request-id", given_id)])
    taken = scope["state"]["request_id"]
    assert sent[0]["headers"] == [(b"x-request-id", taken.encode())]
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
    if 1 <= len(given_id) <= 64 and set(given_id) <= set(plain):
        assert taken == given_id.decode()
    else:
        assert re.fullmatch(r"[0-9a-f]{24}", taken)
        assert taken.encode() != given_id


def test_two_ids_are_none() -> None:
    scope, _ = ask_raw(
        RequestIds(Answering()), [(b"x-request-id", b"one"), (b"x-request-id", b"two")]
    )
    assert re.fullmatch(r"[0-9a-f]{24}", scope["state"]["request_id"])


def test_what_the_server_keeps_for_a_request_stays() -> None:
    application = Answering()
    state = {"kept": 1}
    scope: Scope = {"type": "http", "headers": [], "state": state}

    async def ignore(_message: Message) -> None:
        pass

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(RequestIds(application)(scope, receive, ignore))
    assert application.scopes[0]["state"]["kept"] == 1
    assert state["request_id"]


def test_what_is_no_http_passes_untouched() -> None:
    seen: list[Scope] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope))
        await send(await receive())

    async def receive() -> Message:
        return {"type": "http.response.start"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    for kind in ("lifespan", "websocket"):
        app = SecurityHeaders(RequestIds(application), over_tls=True)
        asyncio.run(app({"type": kind}, receive, send))
    assert seen == [{"type": "lifespan"}, {"type": "websocket"}]
    assert sent == [{"type": "http.response.start"}] * 2
