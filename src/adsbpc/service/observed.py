"""Around every request: one line in the log, its metrics, and an answer whatever goes wrong."""

from __future__ import annotations

import json
import time
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adsbpc.service.logs import log, log_failure
from adsbpc.service.metrics import Metrics
from adsbpc.service.problems import MEDIA_TYPE, Problem, phrase

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# What nginx writes for a client that closed the connection.
_HUNG_UP = 499


class Observed:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def observing(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observing)
        except ClientDisconnect:
            # Nobody is left to answer.
            status = _HUNG_UP
        # The last resort: whatever it was, it is logged without its words, and answered.
        except Exception as error:  # noqa: BLE001
            log_failure("request broke", error, request_id=_request_id(scope))
            if status == 0:
                status = 500
                await _answer(scope, send)
        finally:
            self._note(scope, status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = str(getattr(scope.get("route"), "path", "(no route)"))
        # Anybody may make up methods, and each would be a figure for ever.
        method = scope["method"] if scope["method"] in _METHODS else "(other)"
        self._metrics.answered(method, route, status)
        fields: dict[str, Any] = {"method": method, "route": route, "status": status}
        # How long work on events takes follows from them.
        if scope["method"] == "GET":
            fields["milliseconds"] = round(seconds * 1_000, 1)
        log("request", request_id=_request_id(scope), **fields)


async def _answer(scope: Scope, send: Send) -> None:
    problem = Problem(
        500, phrase(500), "The server failed",
        "Tell the operator the request id: the log says more",
    )  # fmt: skip
    body = json.dumps(problem.details(_request_id(scope)).model_dump()).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 500, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _request_id(scope: Scope) -> str:
    return str(scope.get("state", {}).get("request_id", ""))
