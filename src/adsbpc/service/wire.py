"""HTTP as it comes over the wire: uvicorn's, with an end to headers and to patience.

Must never: hold more of a request than its limit before somebody asked for it, or wait for ever
for the rest.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adsbpc.service.problems import MEDIA_TYPE, Problem, phrase

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
