"""What monitoring sees of every request: figures without a key, and one line in the log.

Must never hold a figure that follows from users: no rows, no bytes, no batches, no time that
anything took, nothing of a slot before it is visible.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adsbpc.service.http.problems import MEDIA_TYPE, Problem, phrase
from adsbpc.service.http.sharing import Labels, SharedNumbers
from adsbpc.service.http.strangers import Strangers
from adsbpc.service.logs import log, log_failure
from adsbpc.service.releases.publication import Totals

# Who pushes how often follows from what users do, and so does whether a body can be taken: only
# those are counted who are sent away before it is read.
PUSH_ROUTES = ("/v1/impressions", "/v1/conversions")
_UNREAD = (401, 403)
# What operators ask for, and how it ends, follows from events: whether a release fails, and when
# it is done.
_RELEASES = ("POST", "/v1/campaigns/{campaign}/releases")
_VERIFICATION = "/verification"


class Metrics:
    """Of one server, whichever of its processes is asked."""

    def __init__(self, numbers: SharedNumbers) -> None:
        self._numbers = numbers

    def count_answer(self, method: str, route: str, status: int) -> None:
        if route in PUSH_ROUTES:
            if status in _UNREAD:
                self._numbers.add_one(_REFUSED, route, str(status))
        elif (method, route) != _RELEASES and not route.endswith(_VERIFICATION):
            self._numbers.add_one(_REQUESTS, method, route, str(status))

    def text(self, totals: Totals) -> bytes:
        return generate_latest(_Families(self._numbers.totals(), totals))


_REQUESTS, _REFUSED = "requests", "refused"


@dataclass(frozen=True)
class _Families(Collector):
    numbers: dict[Labels, int]
    totals: Totals

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "adsbpc_requests",
            "Requests by route and status, except pushes and releases by hand.",
            labels=["method", "route", "status"],
        )
        refused = CounterMetricFamily(
            "adsbpc_refused_pushes",
            "Pushes with a key that may not push, by status.",
            labels=["route", "status"],
        )
        for kind, family in ((_REQUESTS, requests), (_REFUSED, refused)):
            for (counted, *labels), number in sorted(self.numbers.items()):
                if counted == kind:
                    family.add_metric(labels, number)
            yield family
        for name, text, value in (
            ("published", "Slots that are visible, of all campaigns.", self.totals.published),
            ("late", "Slots that should be visible by now and are not.", self.totals.late),
        ):
            yield GaugeMetricFamily(f"adsbpc_{name}_slots", text, value=value)


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# What nginx writes for a client that closed the connection.
_HUNG_UP = 499


class RequestLog:
    """Around every request: one line in the log, its figures, and an answer whatever goes wrong.
    Of those who carry no valid key there are few lines, and the others are counted."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        strangers: Strangers,
        address_of: Callable[[Request], str],
    ) -> None:
        self._app, self._metrics = app, metrics
        self._strangers, self._address_of = strangers, address_of

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
        self._metrics.count_answer(method, route, status)
        is_known = scope.get("state", {}).get("is_known", False)
        if not (is_known or self._strangers.may_write(self._address_of(Request(scope)))):
            return
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
