"""Two worlds that differ in one person's events, and everything that others can see of them.

Noise is left out, so that what is seen can be compared byte by byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsbpc.campaign import Released
from adsbpc.campaign.run import Run
from adsbpc.model import CampaignSpec
from adsbpc.privacy import SecureRandomness
from adsbpc.service.releases import publication
from tests.service.clocks import SetClock
from tests.service.matrix import OPEN_PAGES, TABLE, pages
from tests.service.raw import http
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
SCHEDULER = {"enabled": False, "grace": "1m", "publish_after": "5m"}
STREAM = "/v1/campaigns/{campaign}/stream"
# Everything that others than operators may read, and who reads it.
_NO_FIGURES = ("/operations", "/campaigns/new", "/static", "/deliveries")
READ = {
    **{
        path: "nobody" if call.is_open else "advertiser"
        for (method, path), call in TABLE.items()
        if method == "GET"
        and (call.is_open or "advertiser" in call.allowed)
        # What a sender sent it knows: it is shown at once.
        and path not in (STREAM, "/v1/deliveries")
    },
    # Files of the other formats take long to make, and are made of the same report.
    "/v1/campaigns/{campaign}/report?format=csv": "advertiser",
    **{
        path: "nobody" if path in OPEN_PAGES else "browser"
        for method, path in pages()
        if method == "GET" and not path.startswith(_NO_FIGURES)
    },
}
_SHARED = ("/v1/campaigns/{campaign}", "/campaigns/{campaign}")
# Minutes after midnight in which everybody looks: around the moments, and in between.
_WATCHED = (-1, 1, 4, 5, 6, 9, 10)
# Differs from run to run, whoever looks; a stream is counted when the server sees that nobody
# listens any more.
_BY_CHANCE = re.compile(
    rb'"request_id":"[^"]*"|"key_id":"[^"]*"|'
    rb'adsbpc_requests_total{method="GET",route="/v1/campaigns/{campaign}/stream".*|'
    rb'"(?:hash|ledger_hash|sha256|commitment|seal|made_at)":\s*"[^"]*"'
)

Seen = dict[str, tuple[int, bytes]]


@dataclass
class World:
    """`seen` is what is seen in each minute, one look after the other."""

    server: Running
    clock: SetClock
    campaigns: dict[str, str] = field(default_factory=dict)
    callers: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: dict[datetime, list[Seen]] = field(default_factory=dict)

    def open(self) -> None:
        """Two campaigns of one scope, keys of everybody but the operator, a few events."""
        operator = self.server.client("operator")
        for name in ("spring", "summer"):
            wanted = content(name=name)
            wanted["privacy"] |= {"rho": 0.5, "scope_rho": 2.0}
            self.campaigns[name] = operator.create_campaign(wanted)["id"]
            # Campaigns of one moment are listed by their ids, which are random.
            self.clock.moment += MINUTE
        bearer = f"Bearer {self.server.key('advertiser', 'Ad-1')}"
        self.callers["advertiser"] = {"Authorization": bearer}
        signed_in = http().post(
            f"{self.server.url}/sign-in",
            data={"key": self.server.key("reader", "Ad-1")},
            headers={"Origin": self.server.url},
        )
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        self.callers["browser"] = {"Cookie": cookie, "Accept": "text/html"}
        self.callers["nobody"] = {}
        self.push("u1", 1)
        sale = {"user_id": "u1", "timestamp": self.clock.moment}
        self.server.client("advertiser", "Ad-1").push_conversions([sale])

    def push(self, user: str, impressions: int) -> None:
        row = {"user_id": user, "advertiser_id": "Ad-1", "kind": "click"}
        for first in range(0, impressions, 1_000):
            rows = [
                {**row, "timestamp": self.clock.moment - MINUTE, "event_id": f"{first + number}"}
                for number in range(min(1_000, impressions - first))
            ]
            self.server.client("publisher", "P-1").push_impressions(rows)

    def live(self, until: datetime) -> None:
        """Minute by minute: the scheduler looks, and everybody looks before and after it."""
        self.look()
        while self.clock.moment < until:
            self.server.backend.scheduler.look()
            self.pass_minute()

    def holds(self, spec: CampaignSpec) -> bool:
        return bool(spec.directory == self.server.backend.settings.data)

    def pass_minute(self) -> None:
        """To be seen at its end, and at the beginning of the next."""
        self.look()
        self.clock.moment += MINUTE
        self.look()

    def look(self) -> None:
        """At everything, which must not change within a minute."""
        if (self.clock.moment - START - DAY) // MINUTE not in _WATCHED:
            return
        found: Seen = {}
        for path, caller in READ.items():
            # The other campaign is there for what they share.
            for name in self.campaigns if path in _SHARED else ["spring"]:
                place = path.format(campaign=self.campaigns[name], slot=1)
                answer = http().get(f"{self.server.url}{place}", headers=self.callers[caller])
                told = _BY_CHANCE.sub(b"", answer.content)
                for known, identity in self.campaigns.items():
                    told = told.replace(identity.encode(), known.encode())
                found[f"{path} of {name}"] = answer.status_code, told
        found[STREAM] = 200, repr(self.heard()).encode()
        looks = self.seen.setdefault(self.clock.moment, [])
        looks.append(found)
        changed = differences(looks[0], found)
        # Which count requests.
        assert [each for each in changed if "/metrics" not in each] == [], self.clock.moment

    def heard(self) -> list[str]:
        """The slots that a stream tells at once: before and after them it says that it listens."""
        place = f"{self.server.url}{STREAM.format(campaign=self.campaigns['spring'])}?after=0"
        slots, listening = [], 0
        with http().stream("GET", place, headers=self.callers["advertiser"]) as answer:
            for line in answer.iter_lines():
                listening += line == ": listening"
                slots += [line] if line.startswith("id:") else []
                if listening == 2:
                    break
        return slots

    def told(self, moment: datetime, path: str) -> str:
        return self.seen[moment][-1][f"{path} of spring"][1].decode()


def differences(one: Seen, other: Seen) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name in one if one[name] != other[name]]


@contextmanager
def world(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    clock = SetClock(START + timedelta(hours=12))
    monkeypatch.setattr(
        SecureRandomness, "gaussian", lambda _self, _scale, size: np.zeros(size, np.int64)
    )
    monkeypatch.setattr("adsbpc.service.releases.scheduler._FIRST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(publication, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(publication, "_KEEP_ALIVE_SECONDS", 0)
    with running(settings_in(directory, scheduler=SCHEDULER), clock) as server:
        found = World(server, clock)
        found.open()
        yield found


def takes_long(found: World, monkeypatch: pytest.MonkeyPatch, minutes: int) -> list[datetime]:
    """A release of the first campaign takes minutes before it commits, and one more after that.
    Returns when it committed."""
    release, committed = Run.release_next, []

    def slow(self: Run, *given: Any) -> Released:
        spec = self.running.spec
        if not found.holds(spec) or spec.campaign.name != "spring":
            return release(self, *given)
        for _ in range(minutes):
            found.pass_minute()
        released = release(self, *given)
        committed.append(found.clock.moment)
        found.pass_minute()
        return released

    monkeypatch.setattr(Run, "release_next", slow)
    return committed


def fails_until(
    found: World, monkeypatch: pytest.MonkeyPatch, works: Callable[[datetime], bool]
) -> list[datetime]:
    """A release fails for a while; returns when it did."""
    release, failed = Run.release_next, []

    def failing(self: Run, *given: Any) -> Released:
        if found.holds(self.running.spec) and not works(found.clock.moment):
            failed.append(found.clock.moment)
            raise ZeroDivisionError
        return release(self, *given)

    monkeypatch.setattr(Run, "release_next", failing)
    return failed
