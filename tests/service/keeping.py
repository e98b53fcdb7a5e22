"""A service without a server, whose clock the test sets: campaigns, events, and lives that end."""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adsbpc.errors import AdsbpcError
from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.clock import now_us
from adsbpc.service.ingest.bodies import NDJSON, check_body
from adsbpc.service.ingest.compaction import compact
from adsbpc.service.ingest.event_files import LOCK
from adsbpc.service.ingest.rows import SCHEMAS, Source
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.settings import IngestSection
from tests.service.clocks import SetClock
from tests.service.pushed import CONVERSION, IMPRESSION, arrived, lines
from tests.service.running import content, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
OPERATOR = Principal("key", Role.OPERATOR, "")
PERSONAL = {"rho": 1.0, "mechanism": "personal-budget", "personal_budget": {"allowance": 5}}


class Service:
    """A service without a server, whose clock the test sets."""

    def __init__(self, directory: Path, keep: str | None = None) -> None:
        self.clock = SetClock(START)
        retention = {} if keep is None else {"events": keep}
        scheduler = {"grace": "1m", "publish_after": "2m"}
        wanted = settings_in(directory, scheduler=scheduler, retention=retention)
        self.backend: Backend = open_backend(wanted, self.clock)
        self.data = self.backend.settings.data

    def close(self) -> None:
        self.backend.store.close()
        self.backend.presence.close()

    def create(self, name: str, days: int = 2, **campaign: Any) -> Registered:
        wanted = content(**{"name": name, "scope": name, "slots": days, **campaign})
        short = {"model": "last_touch", "click_lookback": "1d", "view_lookback": "1d"}
        wanted |= {"privacy": PERSONAL, "attribution": short}
        return self.backend.campaigns.create(wanted, OPERATOR)

    def put(self, *users: str, day: int = 0, advertiser: str = "Ad-1") -> None:
        """A click and a purchase of each, stored as if they had been pushed at once."""
        moment = START + day * DAY + timedelta(hours=12)
        known: dict[Source, dict[str, Any]] = {"impressions": IMPRESSION, "conversions": CONVERSION}
        for source, row in known.items():
            happened = moment + timedelta(hours=source == "conversions")
            rows = [
                {**row, "user_id": user, "event_id": f"{user} {day}", "advertiser_id": advertiser,
                 "timestamp": happened.isoformat()}
                for user in users
            ]  # fmt: skip
            good = check_body(
                lines(rows), NDJSON, source, "P-1" if source == "impressions" else advertiser,
                now_us(SetClock(moment + 2 * DAY)), IngestSection(),
            )  # fmt: skip
            assert not good.quarantined
            name = self.backend.files.write(source, arrived(good.table))
            with self.backend.store.writing(LOCK) as connection:
                self.backend.files.list_new(connection, source, name, advertiser, len(users))

    def release(self, registered: Registered, through: int) -> None:
        self.clock.moment = START + through * DAY + timedelta(minutes=2)
        self.backend.scheduler.release(registered, through)

    def users(self, source: Source = "impressions") -> Counter[str]:
        files = self.backend.files
        names = files.listed(source)
        return Counter(
            user
            for name in names
            for user in pq.read_table(files.folder / name)["user_id"].to_pylist()
        )

    def anywhere(self, text: str) -> list[Path]:
        """Files of the service that hold a text in some column, listed or not."""
        found = []
        for file in self.data.rglob("*.parquet"):
            if text in str(pq.read_table(file, partitioning=None).to_pylist()):
                found.append(file)
        return found


def live_for_ever(began: Any, directory: Path, keep: str, now: datetime, life: int) -> None:
    """Release, close, forget, delete and merge in any order, and write down who was forgotten
    before it is begun."""
    service, chance = Service(directory, keep), random.Random(life)
    service.clock.moment = now
    backend = service.backend
    asked = os.open(directory / "asked", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def forget() -> None:
        user = f"gone-{chance.randrange(20)}"
        os.write(asked, f"{user}\n".encode())
        backend.retention.forget(user)

    def close() -> None:
        doomed = [each for each in backend.campaigns.all() if each.name.startswith("closed")]
        if doomed:
            backend.lifecycle.close(chance.choice(doomed))

    def merge() -> None:
        for source in SCHEMAS:
            compact(backend.files, backend.store, source)

    def look() -> None:
        for each in backend.campaigns.all():
            backend.scheduler.release(each)

    began.set()
    while True:
        # Whoever is not started or was closed says so.
        with suppress(AdsbpcError):
            chance.choice((forget, forget, close, merge, look, backend.retention.apply))()
