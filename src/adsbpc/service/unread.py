"""Answers that come before the end of the body: then the connection ends, soon after the answer.

Must never: go on reading what nobody wants, however much a sender has.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A connection that is closed while its sender still writes may lose the answer on the way: so a
# little more is read, and thrown away.
_LINGER_SECONDS = 2
_LINGER_BYTES = 4 * 2**20


class Unread:
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
