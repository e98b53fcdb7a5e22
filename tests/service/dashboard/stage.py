"""A server with campaigns in several states, and visitors who look at its pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.report.outline import Outline
from tests.report.test_page import HOSTILE
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
HOSTILE_NAME = "</title><script>alert(0)</script>"
FROM_A_PAGE = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
PUBLISHERS = ("search", "social", "video")


@dataclass
class Visitor:
    """A browser without eyes: it keeps cookies and asks for pages."""

    http: httpx.Client

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def look(self, path: str) -> Outline:
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return Outline(answer.text)

    def sign_in(self, key: str) -> httpx.Response:
        return self.http.post("/sign-in", data={"key": key})

    def send(self, path: str, fields: dict[str, str]) -> httpx.Response:
        """A form, which browsers send as one even if it has no fields."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.http.post(path, data=fields, headers=kind)


@dataclass
class Stage:
    server: Running
    clock: SetClock
    campaigns: dict[str, str] = field(default_factory=dict)
    visitors: list[httpx.Client] = field(default_factory=list)

    def visitor(self, role: str = "", subject: str = "") -> Visitor:
        """Signed in with a new key of a role, or not at all."""
        http = httpx.Client(
            base_url=self.server.url, headers=FROM_A_PAGE, trust_env=False,
            # Shorter than the server keeps a connection that is not used.
            limits=httpx.Limits(keepalive_expiry=2),
        )  # fmt: skip
        self.visitors.append(http)
        visitor = Visitor(http)
        if role:
            assert visitor.sign_in(self.server.key(role, subject)).status_code == 303
        return visitor

    def create(self, name: str, **campaign: Any) -> str:
        """Of five days, with room for others in its scope."""
        wanted = content(name=name, slots=5, publishers=list(PUBLISHERS)) | {
            "privacy": {"rho": 1.0, "scope_rho": 3.0, "mechanism": "adsbpc"},
            # Hostile names have no events.
            "checks": {"max_other_rate": 1},
        }
        wanted["campaign"] |= campaign
        self.campaigns[name] = self.server.client("operator").create_campaign(wanted)["id"]
        return self.campaigns[name]

    def release_day(self, day: int) -> None:
        """Events of a day, and what is visible after it is over."""
        self.clock.moment = START + timedelta(days=day - 1, hours=20)
        at = self.clock.moment - timedelta(hours=1)
        for place, publisher in enumerate(PUBLISHERS):
            rows = [
                {"user_id": f"u{day}-{user}", "advertiser_id": "Ad-1", "timestamp": at,
                 "kind": "click"}
                for user in range(place, 300, place + 1)
            ]  # fmt: skip
            self.server.client("publisher", publisher).push_impressions(rows, f"day-{day}")
        bought = at + timedelta(minutes=30)
        conversions: list[dict[str, Any]] = [
            {"user_id": f"u{day}-{user}", "timestamp": bought} for user in range(300)
        ]
        conversions.append({"user_id": "u1", "timestamp": "yesterday"})
        self.server.client("advertiser", "Ad-1").push_conversions(conversions, f"day-{day}")
        self.clock.moment = START + timedelta(days=day, minutes=2)
        self.wait_for_releases()

    def wait_for_releases(self) -> None:
        deadline = time.monotonic() + 60
        while any(each.released < each.due for each in self.server.backend.scheduler.standings()):
            assert time.monotonic() < deadline, self.server.backend.scheduler.standings()
            time.sleep(0.05)
        for each in self.server.backend.scheduler.standings():
            if each.released:
                self.server.show(each.campaign_id)


@contextmanager
def staged(directory: Path) -> Iterator[Stage]:
    """Two days are over: of one advertiser "spring" and one with hostile names, "later" has not
    begun, "rival" is of another advertiser."""
    clock = SetClock(START)
    with running(settings_in(directory), clock) as server:
        stage = Stage(server, clock)
        stage.create("spring")
        stage.create(HOSTILE_NAME, publishers=list(HOSTILE), slots=2)
        stage.create("later", start="2026-04-01")
        stage.create("rival", scope="rival", advertiser="Ad-2")
        for day in (1, 2):
            stage.release_day(day)
        try:
            yield stage
        finally:
            for http in stage.visitors:
                http.close()
