"""Headers that every answer carries: what browsers must not do with it, and the request's id."""

from __future__ import annotations

import re
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# What a page might ask a browser for. There is no word for "anything".
_DEVICES = (
    "accelerometer",
    "autoplay",
    "camera",
    "display-capture",
    "encrypted-media",
    "fullscreen",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "picture-in-picture",
    "publickey-credentials-get",
    "screen-wake-lock",
    "usb",
    "xr-spatial-tracking",
)

_ALWAYS = {
    "x-content-type-options": "nosniff",
    # Nothing for others. Without any for this server, browsers would hide their origin from it.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": ", ".join(f"{device}=()" for device in _DEVICES),
}
_OVER_TLS = {"strict-transport-security": "max-age=31536000"}
_UNLESS_SET = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cache-control": "no-store",
}

_REQUEST_ID = b"x-request-id"
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")

Headers = list[tuple[bytes, bytes]]


class SecurityHeaders:
    """Must be the outermost part of the server, so that answers to its failures have them too."""

    def __init__(self, app: ASGIApp, over_tls: bool) -> None:
        self._app = app
        self._always = _encoded(_ALWAYS | _OVER_TLS if over_tls else _ALWAYS)
        self._unless_set = _encoded(_UNLESS_SET)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._complete(message.get("headers", []))}
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _complete(self, headers: Headers) -> Headers:
        fixed = {name for name, _ in self._always}
        kept = [(name, value) for name, value in headers if name.lower() not in fixed]
        present = {name.lower() for name, _ in kept}
        added = [(name, value) for name, value in self._unless_set if name not in present]
        return kept + added + self._always


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
        request_id = _given_id(scope["headers"]) or secrets.token_hex(12)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", [])
                others = [pair for pair in headers if pair[0].lower() != _REQUEST_ID]
                own = (_REQUEST_ID, request_id.encode("ascii"))
                message = {**message, "headers": [*others, own]}
            await send(message)

        await self._app(scope, receive, send_with_id)


def _given_id(headers: Headers) -> str | None:
    given = [value for name, value in headers if name == _REQUEST_ID]
    if len(given) != 1 or not _GIVEN_ID.fullmatch(given[0]):
        return None
    return given[0].decode("ascii")


def _encoded(headers: dict[str, str]) -> Headers:
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
