"""Kill -9 in the middle of ingest, again and again: what was acknowledged is there once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select

from adsbpc.service.auth.permissions import Role
from adsbpc.service.backend import Backend
from adsbpc.service.ingest.rows import Source
from adsbpc.service.store import event_files
from tests.service.processes import prepared, served, start
from tests.service.pushed import lines
from tests.service.raw import http

# These servers run by the system's clock, and take no row that is too old.
MOMENT = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
SENDERS: tuple[tuple[Role, str, Source], ...] = (
    (Role.PUBLISHER, "P-1", "impressions"),
    (Role.PUBLISHER, "P-2", "impressions"),
    (Role.ADVERTISER, "Ad-1", "conversions"),
)


def rows_of(sender: str, batch: int, number: int, has_ids: bool) -> list[dict[str, Any]]:
    kind = {"kind": "click", "advertiser_id": "Ad-1"} if sender.startswith("P") else {}
    return [
        {
            "user_id": f"{sender}/{batch}/{row}",
            "timestamp": MOMENT,
            **({"event_id": f"{batch}/{row}"} if has_ids else {}),
            **kind,
        }
        for row in range(number)
    ]


@dataclass
class Sender:
    """Pushes batch after batch to whichever server lives, and notes what it was told."""

    source: Source
    name: str
    key: str
    rng: random.Random
    url: str = ""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    acknowledged: set[int] = field(default_factory=set)
    broken: int = 0
    stopping: bool = False

    def run(self) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while not self.stopping:
                number = self.rng.randrange(1, 60)
                rows = rows_of(self.name, len(self.batches), number, self.rng.random() < 0.5)
                self.batches.append(rows)
                # Some try again until they know; others give up, and come back at the end.
                while not self.push(client, len(self.batches) - 1) and not self.stopping:
                    time.sleep(0.02)
                    if self.rng.random() < 0.3:
                        break

    def push(self, client: httpx.Client, batch: int) -> bool:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Idempotency-Key": f"batch-{batch}",
            "Content-Type": "application/x-ndjson",
        }
        rows = self.batches[batch]
        try:
            answer = client.post(
                f"{self.url}/v1/{self.source}", content=lines(rows), headers=headers
            )
        except httpx.TransportError as error:
            # A server that is not there yet broke nothing.
            self.broken += not isinstance(error, httpx.ConnectError)
            return False
        if answer.status_code in (429, 503):
            return False
        assert answer.status_code == 200, answer.text
        assert answer.json()["accepted"] == len(rows)
        self.acknowledged.add(batch)
        return True


def stored(backend: Backend, source: Source) -> Counter[str]:
    tables = [pq.read_table(path) for path in backend.files.live(source, "Ad-1")]
    return Counter(user for table in tables for user in table["user_id"].to_pylist())


def check(backend: Backend, senders: list[Sender]) -> None:
    """Every acknowledged row once, every other batch whole or not at all."""
    found = {source: stored(backend, source) for _, _, source in SENDERS}
    for sender in senders:
        for batch, rows in enumerate(sender.batches):
            times = {found[sender.source].pop(row["user_id"], 0) for row in rows}
            allowed = [{1}] if batch in sender.acknowledged else [{0}, {1}]
            assert times in allowed, f"{sender.name}, batch {batch}"
    assert not any(found.values())


def wait_for(url: str) -> None:
    while True:
        try:
            assert http().get(f"{url}/healthz").status_code == 200
            return
        except httpx.TransportError:
            time.sleep(0.005)


def wait_for_more(senders: list[Sender]) -> None:
    """Until another batch is acknowledged."""
    known, deadline = acknowledged(senders), time.monotonic() + 20
    while acknowledged(senders) == known and time.monotonic() < deadline:
        time.sleep(0.005)


def acknowledged(senders: list[Sender]) -> int:
    return sum(len(each.acknowledged) for each in senders)


def retired_files(backend: Backend) -> int:
    counted = select(func.count()).where(event_files.c.retired_us.is_not(None))
    with backend.store.reading() as connection:
        return int(connection.execute(counted).scalar_one())


@pytest.mark.parametrize("kills", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_kills_lose_and_double_nothing(kills: int, tmp_path: Path) -> None:
    config, backend = prepared(tmp_path, '[ingest]\ncompact_every = "1s"\n')
    rng = random.Random(8)
    senders = [
        Sender(source, name, backend.keys.create(role, name, name, None)[1], random.Random(name))
        for role, name, source in SENDERS
    ]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for number in range(kills):
        server = start(config, hurried=True)
        for sender in senders:
            sender.url = server.url
        if number == 0:
            for thread in threads:
                thread.start()
        wait_for(server.url)
        if number % 5:
            # However slow the machine is, most lives have something to lose.
            wait_for_more(senders)
        time.sleep(rng.uniform(0, 0.3))
        server.kill()
    for sender in senders:
        sender.stopping = True
    for thread in threads:
        thread.join()

    check(backend, senders)
    assert acknowledged(senders) > kills / 2
    assert sum(len(each.batches) for each in senders) - acknowledged(senders) > kills / 10
    # Otherwise the kills came at harmless moments.
    assert all(each.broken > kills / 2 for each in senders)
    assert retired_files(backend) > kills / 2

    with served(config) as server, httpx.Client(timeout=30, trust_env=False) as client:
        for sender in senders:
            sender.url = server.url
            for batch in range(len(sender.batches)):
                while batch not in sender.acknowledged:
                    sender.push(client, batch)
        server.stop()
    check(backend, senders)
    assert all(len(each.acknowledged) == len(each.batches) for each in senders)
