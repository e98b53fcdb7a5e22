"""Limits on what comes over the wire: headers, patience, bodies that nobody wants, wrong keys.

Must never: hold more of a request than its limit before somebody asked for it, wait for ever for
the rest, or go on reading what nobody wants.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from threading import Lock

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.http.problems import MEDIA_TYPE, Problem, phrase
from adsbpc.service.http.sharing import Note, SharedNotes

# Request line, headers, trailers, and what frames chunks of a body: each of them.
_MOST_BYTES = 2**16
_HEADER_SECONDS = 30
_BODY_SECONDS = 300


class Wire(HttpToolsProtocol):
    _silent_bytes = 0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(_HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._silent_bytes += len(data)
        super().data_received(data)
        if self._silent_bytes > _MOST_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The header has more than {_MOST_BYTES} bytes")

    def on_message_begin(self) -> None:
        self._wait(_HEADER_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._silent_bytes = 0
        self._wait(_BODY_SECONDS)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent_bytes = 0
        self._wait(None)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """In the shape of every other error."""
        problem = Problem(400, phrase(400), msg.rstrip("."), "Send a request of HTTP/1.1")
        body = problem.details("").model_dump_json().encode()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _wait(self, seconds: float | None) -> None:
        """For what comes next; None if nothing is waited for."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self.transport.close()


# A connection that is closed while its sender still writes may lose the answer on the way: so a
# little more is read, and thrown away.
_LINGER_SECONDS = 2
_LINGER_BYTES = 4 * 2**20


class UnreadBodies:
    """Answers that come before the end of the body: then the connection ends, soon after them.

    nginx has limits of its own; without it, and without this, uvicorn would read the ten gigabytes
    of a sender who was refused (tests/service/http/test_hostile.py).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        is_whole = False

        async def receiving() -> Message:
            nonlocal is_whole
            message = await receive()
            is_whole = is_whole or not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if is_whole:
                await send(message)
            elif message["type"] == "http.response.start":
                headers = [*message.get("headers", []), (b"connection", b"close")]
                await send({**message, "headers": headers})
            elif message.get("more_body", False):
                await send(message)
            else:
                await send({**message, "more_body": True})
                await linger()
                await send({"type": "http.response.body"})

        async def linger() -> None:
            thrown_away = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_SECONDS):
                    while not is_whole and thrown_away < _LINGER_BYTES:
                        thrown_away += len((await receiving()).get("body", b""))

        await self._app(scope, receiving, sending)


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


_MOST_ADDRESSES = 10_000
_LONGEST_ADDRESS = 100


class Throttle:
    """An address may fail `failures` times within `within_seconds`; then it has to wait. `notes`
    are of failures in other processes of the server, which count as well.

    `clock` must be the time of the real world.
    """

    def __init__(
        self,
        clock: Clock,
        failures: int = 10,
        within_seconds: int = 60,
        notes: SharedNotes | None = None,
    ) -> None:
        self._clock, self._failures = clock, failures
        self._notes = notes or SharedNotes.alone()
        self._within_us = within_seconds * MICROSECONDS_PER_SECOND
        self._lock = Lock()
        # Moments of the last failures by address; who failed last stands at the end.
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()

    def refused_for(self, address: str) -> int | None:
        """Seconds until this address may try again; None if it may now."""
        now = now_us(self._clock)
        with self._lock:
            self._follow()
            moments = self._failed.get(counted_as(address))
            if moments is None or len(moments) < self._failures:
                return None
            # A clock that was set back must not shut anybody out for long.
            if moments[-1] > now:
                return None
            left_us = moments[0] + self._within_us - now
        return -(-left_us // MICROSECONDS_PER_SECOND) if left_us > 0 else None

    def record_failure(self, address: str) -> None:
        note = Note(counted_as(address), now_us(self._clock))
        with self._lock:
            self._follow()
            self._notes.add(note)
            self._count(note)

    def record_success(self, address: str) -> None:
        name = counted_as(address)
        with self._lock:
            self._follow()
            if self._failed.pop(name, None) is not None:
                self._notes.add(Note(name, now_us(self._clock), ends=True))

    def _follow(self) -> None:
        """Count what other processes have noted."""
        for note in self._notes.news():
            if note.ends:
                self._failed.pop(note.name, None)
            else:
                self._count(note)

    def _count(self, note: Note) -> None:
        moments = self._failed.setdefault(note.name, deque(maxlen=self._failures))
        moments.append(note.moment_us)
        self._failed.move_to_end(note.name)
        while len(self._failed) > _MOST_ADDRESSES or self._is_over(note.moment_us):
            self._failed.popitem(last=False)

    def _is_over(self, now: int) -> bool:
        oldest = next(iter(self._failed.values()))
        return oldest[-1] + self._within_us <= now


def counted_as(address: str) -> str:
    """Whoever has an IPv6 address has the 2**64 addresses around it as well.

    >>> counted_as("2001:db8::1") == counted_as("2001:db8::ffff:2")
    True
    >>> counted_as("::ffff:192.0.2.1")
    '192.0.2.1'
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:_LONGEST_ADDRESS]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
