"""Batches for tests, and what is stored of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.bodies import NDJSON, check_body
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.intake import Answer, Batch, Intake
from adsbpc.service.ingest.lateness import Lateness, Waiting
from adsbpc.service.ingest.rows import Checked, Source
from adsbpc.service.settings import IngestSection
from tests.service.clocks import SetClock

Opener = Callable[..., Intake]

# Of a server without campaigns, to whom nothing is late.
PATIENT = Lateness(tuple, Waiting(0, 2**40))
# Rows of tests happen before the clocks of tests start.
BEFORE = "2026-03-01T11:00:00Z"
SUBJECTS = {"impressions": "P-1", "conversions": "Ad-1"}
IMPRESSION: dict[str, Any] = {
    "user_id": "u1",
    "publisher_id": "P-1",
    "advertiser_id": "Ad-1",
    "timestamp": BEFORE,
    "kind": "click",
    "event_id": "e1",
}
CONVERSION: dict[str, Any] = {
    "user_id": "u1",
    "advertiser_id": "Ad-1",
    "timestamp": BEFORE,
    "kind": "sale",
    "value": 9.5,
    "event_id": "e1",
}


def lines(rows: Iterable[Any]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def checked(
    rows: Iterable[Any], source: Source = "impressions", clock: Clock | None = None
) -> Checked:
    moment = now_us(clock or SetClock())
    return check_body(lines(rows), NDJSON, source, SUBJECTS[source], moment, IngestSection())


def arrived(table: pa.Table) -> pa.Table:
    """Checked rows, as they are stored: arrived when they happened."""
    return table.append_column("arrived_at", table["timestamp"])


def batch(
    key: str,
    rows: Sequence[Any],
    source: Source = "impressions",
    *,
    owner: str = "publisher:P-1",
    clock: Clock | None = None,
) -> Batch:
    body_hash = sha256(lines(rows)).hexdigest()
    return Batch(owner, source, key, body_hash, checked(rows, source, clock))


def numbered(first: int, count: int, **fields: Any) -> list[dict[str, Any]]:
    """Impressions that can be told apart by their event ids."""
    return [
        {**IMPRESSION, "user_id": f"u{number}", "event_id": f"e{number}", **fields}
        for number in range(first, first + count)
    ]


def files_in(store: Database, tmp_path: Path, clock: Clock | None = None) -> EventFiles:
    return EventFiles(store, tmp_path / "events", clock or SetClock())


def stored(files: EventFiles, source: Source = "impressions", advertiser: str = "Ad-1") -> Any:
    """The rows that a campaign of an advertiser reads, in any order."""
    found = [
        row for file in files.live(source, advertiser) for row in pq.read_table(file).to_pylist()
    ]
    return sorted(found, key=repr)


def ids(
    files: EventFiles, source: Source = "impressions", advertiser: str = "Ad-1"
) -> Counter[str]:
    return Counter(row["event_id"] for row in stored(files, source, advertiser))


def add(intake: Intake, *batches: Batch) -> list[Answer | BaseException]:
    """Add batches at the same time; failures are returned, too."""

    async def together() -> list[Answer | BaseException]:
        return await asyncio.gather(*map(intake.add, batches), return_exceptions=True)

    return asyncio.run(together())


def add_one(intake: Intake, one: Batch) -> Answer:
    (answer,) = add(intake, one)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def problems(answers: Sequence[Answer | BaseException]) -> list[int]:
    return [answer.status for answer in answers if isinstance(answer, Problem)]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
