"""`adsbpc demo --serve`: a month in a minute, over HTTP, with the dashboard open."""

from __future__ import annotations

import csv
import shutil
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adsbpc.cli.console import stoppable
from adsbpc.cli.demo import made_up
from adsbpc.cli.release import progress_of_slots
from adsbpc.client import Client
from adsbpc.lab.journeys import CHANNELS, SPEND
from adsbpc.service.auth.permissions import Role
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.clock import FastClock
from adsbpc.service.server import serving
from adsbpc.service.settings import Settings

_SECONDS_PER_DAY = 86_400
# Time to create the campaign before the first day.
_BEFORE = timedelta(hours=12)
_DAY, _HOUR, _INSTANT = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)
_PAUSE_SECONDS = 0.1
_LARGEST_BATCH = 5_000
_SECTIONS = ("campaign", "attribution", "privacy", "workload", "measure", "dimensions")


def run(
    directory: Path, users: int, slots: int, model: str, seed: int, port: int, day_seconds: float
) -> None:
    made = made_up(directory, users, slots, model, seed)
    # The folder is a demo's, or it would have been refused.
    shutil.rmtree(directory / "service", ignore_errors=True)
    content = tomllib.loads(made.spec.read_text(encoding="utf-8"))
    content = {section: content[section] for section in _SECTIONS if section in content}
    day = content["campaign"]["start"]
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    clock = FastClock(
        start - _BEFORE, speed=_SECONDS_PER_DAY / day_seconds, until=_before_midnight(start - _DAY)
    )
    backend = open_backend(_settings(directory, port), clock)
    with stoppable(), serving(backend) as url, ExitStack() as stack:
        keys = {role: _key(backend, role, "shoes") for role in (Role.ADVERTISER, Role.READER)}
        keys[Role.OPERATOR] = _key(backend, Role.OPERATOR, "")
        operator = stack.enter_context(Client(url, keys[Role.OPERATOR]))
        campaign = operator.create_campaign(content)
        operator.push_spend(campaign["id"], _spend(directory / SPEND))
        print(f"The dashboard: {url}/campaigns/{campaign['id']}")
        for role, key in keys.items():
            print(f"Sign in as {role}: {key}", flush=True)
        senders = {
            channel.name: stack.enter_context(
                Client(url, _key(backend, Role.PUBLISHER, channel.name))
            )
            for channel in CHANNELS
        }
        advertiser = stack.enter_context(Client(url, keys[Role.ADVERTISER]))
        _play(backend, clock, start, directory, operator, campaign, senders, advertiser)
        print("The month is over. The dashboard stays open until Ctrl-C.", flush=True)
        while True:
            time.sleep(1)


def _settings(directory: Path, port: int) -> Settings:
    return Settings.model_validate(
        {
            "service": {"data": "service", "port": port},
            # Hours of the fast clock: an instant for who watches.
            "scheduler": {"grace": "6h", "every": "1s", "publish_after": "1d"},
            "ingest": {"compact_every": "10s"},
            "directory": directory.resolve(),
        }
    )


def _key(backend: Backend, role: Role, subject: str) -> str:
    return backend.keys.create(role, subject, f"demo {role}", None)[1]


def _horizon(start: datetime, released: int, slots: int) -> datetime:
    """How far the clock may run: on a slow machine it waits for the slot that is being released,
    or that would be late. After the last one, until it is visible."""
    if released == slots:
        return start + (slots + 3) * _DAY
    return start + (released + 2) * _DAY - _HOUR


def _before_midnight(pushed_until: datetime) -> datetime:
    """How far the clock may run once everything up to a moment was pushed: on a busy machine it
    waits for the pushes of a day, which would be rows of the next one."""
    midnight = pushed_until.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (2 if pushed_until + _INSTANT == midnight + _DAY else 1) * _DAY - _INSTANT


def _play(
    backend: Backend,
    clock: FastClock,
    start: datetime,
    directory: Path,
    operator: Client,
    campaign: dict[str, Any],
    senders: dict[str, Client],
    advertiser: Client,
) -> None:
    """Push what has happened by the fast clock, until every slot is visible."""
    impressions = _Journal(directory / "impressions.parquet")
    conversions = _Journal(directory / "conversions.parquet")
    shown = 0
    with progress_of_slots(campaign["slots"]) as advance:
        while shown < campaign["slots"]:
            now = clock.now()
            for publisher, rows in impressions.until(now, "publisher_id"):
                senders[publisher].push_impressions(rows)
            for _, rows in conversions.until(now, "advertiser_id"):
                advertiser.push_conversions(rows)
            for released in operator.releases(campaign["id"], after=shown):
                shown = released["slot"]
                advance(None)
            horizon = _horizon(start, _released(backend, campaign), campaign["slots"])
            clock.until = min(horizon, _before_midnight(now))
            time.sleep(_PAUSE_SECONDS)


def _released(backend: Backend, campaign: dict[str, Any]) -> int:
    registered = backend.campaigns.get(campaign["id"])
    return 0 if registered is None else backend.campaigns.last_slot(registered)


def _spend(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return [{**row, "amount": float(row["amount"])} for row in csv.DictReader(opened)]


class _Journal:
    """Rows in the order of time, handed out once."""

    def __init__(self, file: Path) -> None:
        table = pq.read_table(file)
        zoned = table.column("timestamp").cast(pa.timestamp("us", "UTC"))
        position = table.schema.get_field_index("timestamp")
        self._rows = table.set_column(position, "timestamp", zoned).sort_by("timestamp")
        self._given = 0

    def until(self, moment: datetime, by: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """What happened since the last time, by sender, in batches."""
        happened = pc.sum(pc.less_equal(self._rows["timestamp"], pa.scalar(moment))).as_py() or 0
        news = self._rows.slice(self._given, happened - self._given)
        self._given = happened
        for sender in pc.unique(news[by]).to_pylist():
            own = news.filter(pc.equal(news[by], sender))
            for first in range(0, own.num_rows, _LARGEST_BATCH):
                yield sender, own.slice(first, _LARGEST_BATCH).to_pylist()
