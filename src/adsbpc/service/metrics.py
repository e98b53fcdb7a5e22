"""What monitoring may read, without a key.

Must never hold a figure that follows from users: no rows, no bytes, no batches, no durations of
work on events.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Who pushes how often follows from what users do: only refusals are counted.
PUSH_ROUTES = ("/v1/impressions", "/v1/conversions")


class Metrics:
    """A registry of its own, so that several servers can live in one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "adsbpc_requests", "Requests except pushes, by route and status.",
            ["method", "route", "status"], registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "adsbpc_request_seconds", "Time to answer requests that read.",
            ["route"], buckets=_SECONDS, registry=self._registry,
        )  # fmt: skip
        self._refused = Counter(
            "adsbpc_refused_pushes", "Pushes that were refused, by status.",
            ["route", "status"], registry=self._registry,
        )  # fmt: skip
        self.released = Counter(
            "adsbpc_released_slots", "Slots that this server released.", registry=self._registry
        )
        self.failed = Counter(
            "adsbpc_failed_releases", "Releases that failed.", registry=self._registry
        )
        self.waiting = Gauge(
            "adsbpc_waiting_slots", "Slots that are due and not released.", registry=self._registry
        )
        self.looked = Gauge(
            "adsbpc_scheduler_looked_at_seconds", "When the scheduler last looked, to the minute.",
            registry=self._registry,
        )  # fmt: skip

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        if route in PUSH_ROUTES:
            if status >= 400:
                self._refused.labels(route, str(status)).inc()
            return
        self._requests.labels(method, route, str(status)).inc()
        # Only what reads releases: how long work on events and books takes follows from them.
        if method == "GET" and not route.endswith("/verification"):
            self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
