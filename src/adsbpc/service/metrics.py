"""What monitoring may read, without a key.

Must never hold a figure that follows from users: no rows, no bytes, no batches, no time that
anything took, nothing of a slot before it is visible.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adsbpc.service.publication import Totals

# Who pushes how often follows from what users do, and so does whether a body can be taken: only
# those are counted who are sent away before it is read.
PUSH_ROUTES = ("/v1/impressions", "/v1/conversions")
_UNREAD = (401, 403)
# What operators ask for, and how it ends, follows from events: whether a release fails, and when
# it is done.
_RELEASES = ("POST", "/v1/campaigns/{campaign}/releases")
_VERIFICATION = "/verification"


class Metrics:
    """Of one server: several can live in one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._refused: Counter[tuple[str, str]] = Counter()

    def answered(self, method: str, route: str, status: int) -> None:
        with self._lock:
            if route in PUSH_ROUTES:
                if status in _UNREAD:
                    self._refused[route, str(status)] += 1
            elif (method, route) != _RELEASES and not route.endswith(_VERIFICATION):
                self._requests[method, route, str(status)] += 1

    def text(self, totals: Totals) -> bytes:
        with self._lock:
            requests, refused = dict(self._requests), dict(self._refused)
        return generate_latest(_Families(requests, refused, totals))


class _Families(Collector):
    def __init__(
        self,
        requests: dict[tuple[str, str, str], int],
        refused: dict[tuple[str, str], int],
        totals: Totals,
    ) -> None:
        self._requests, self._refused, self._totals = requests, refused, totals

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "adsbpc_requests", "Requests by route and status, except pushes and releases by hand.",
            labels=["method", "route", "status"],
        )  # fmt: skip
        refused = CounterMetricFamily(
            "adsbpc_refused_pushes", "Pushes with a key that may not push, by status.",
            labels=["route", "status"],
        )  # fmt: skip
        for labels, number in sorted(self._requests.items()):
            requests.add_metric(labels, number)
        for pair, number in sorted(self._refused.items()):
            refused.add_metric(pair, number)
        yield requests
        yield refused
        yield GaugeMetricFamily(
            "adsbpc_published_slots", "Slots that are visible, of all campaigns.",
            value=self._totals.published,
        )  # fmt: skip
        yield GaugeMetricFamily(
            "adsbpc_late_slots", "Slots that should be visible by now and are not.",
            value=self._totals.late,
        )  # fmt: skip
