"""Headers that every answer carries: what browsers must not do with it, and the request's id."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# What a page might ask a browser for. There is no word for "anything".
_NO_DEVICES = (
    "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), "
    "fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), "
    "payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), "
    "usb=(), xr-spatial-tracking=()"
)

_ALWAYS = {
    "x-content-type-options": "nosniff",
    # Nothing for others. Without any for this server, browsers would hide their origin from it.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": _NO_DEVICES,
}
_OVER_TLS = {"strict-transport-security": "max-age=31536000"}
_UNLESS_SET = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cache-control": "no-store",
}

_REQUEST_ID = "x-request-id"
_GIVEN_ID = re.compile("[A-Za-z0-9._-]{1,64}")


class SecurityHeaders:
    """Must be the outermost part of the server, so that answers to its failures have them too."""

    def __init__(self, app: ASGIApp, over_tls: bool) -> None:
        self._app = app
        self._always = _ALWAYS | _OVER_TLS if over_tls else _ALWAYS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        def complete(headers: MutableHeaders) -> None:
            for name, value in _UNLESS_SET.items():
                headers.setdefault(name, value)
            headers.update(self._always)

        await self._app(scope, receive, _with_headers(send, complete))


class RequestIds:
    """Gives each request an id, in `scope["state"]["request_id"]` and in the answer.

    A client's own id is taken only if nothing but its plain letters can come into a log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).getlist(_REQUEST_ID)
        taken = len(given) == 1 and _GIVEN_ID.fullmatch(given[0])
        request_id = given[0] if taken else secrets.token_hex(12)
        scope.setdefault("state", {})["request_id"] = request_id

        def name(headers: MutableHeaders) -> None:
            headers[_REQUEST_ID] = request_id

        await self._app(scope, receive, _with_headers(send, name))


def _with_headers(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """Sends the same, with the headers of the answer changed; the list that came stays as it is."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            pairs = [(name.lower(), value) for name, value in message.get("headers", [])]
            change(MutableHeaders(raw=pairs))
            message = {**message, "headers": pairs}
        await send(message)

    return sending
