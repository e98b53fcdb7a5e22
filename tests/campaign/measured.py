"""A shop on the disk whose campaign has measures and dimensions, and what is true of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SLOTS = 3
PUBLISHERS, COUNTRIES, DEVICES = ("P-1", "P-2", "other"), ("DE", "FR", "other"), ("phone", "other")
CAP = 40.0

CAMPAIGN = """
[campaign]
name = "shop"
scope = "acme"
advertiser = "Ad-1"
start = 2026-03-01
slots = 3
publishers = ["P-1", "P-2"]

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"
engine = "{engine}"

[privacy]
rho = 1.0
{privacy}

[[measure]]
name = "conversions"
by = ["publisher", "country"]
share = 0.6

[[measure]]
name = "revenue"
metric = "value"
value_cap = 40.0
currency = "EUR"
by = ["publisher", "device"]
share = 0.4

[dimensions.country]
column = "land"
values = ["DE", "FR"]

[dimensions.device]
column = "device"
of = "impression"
values = ["phone"]
"""


@dataclass(frozen=True)
class Shop:
    """A campaign file, and sums by (slot, publisher, country) and (slot, publisher, device)."""

    file: Path
    conversions: Counter[tuple[int, str, str]]
    revenue: dict[tuple[int, str, str], float]


def write_shop(
    directory: Path, people: int = 400, engine: str = "duckdb", privacy: str = "", seed: int = 1
) -> Shop:
    """Everybody buys once or twice a day after one click, at prices of which some are capped; of
    some countries and publishers nobody has heard, and some are missing."""
    rng = np.random.default_rng(seed)
    conversions: Counter[tuple[int, str, str]] = Counter()
    revenue: dict[tuple[int, str, str], float] = defaultdict(float)
    clicks, purchases = [], []
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for person in range(people):
        for slot in range(1, SLOTS + 1):
            for k in range(int(rng.integers(0, 3))):
                publisher = str(rng.choice(["P-1", "P-2", "X"], p=[0.6, 0.3, 0.1]))
                device = str(rng.choice(["phone", "desk", ""]))
                country = [*COUNTRIES[:2], "de", "IT", None][int(rng.integers(5))]
                value = float(rng.choice([5.0, 10.0, 80.0]))
                moment = start + timedelta(days=slot - 1, hours=k)
                clicks.append((f"u{person}", moment - timedelta(minutes=1), publisher, device))
                purchases.append((f"u{person}", moment, country, value))
                known = publisher if publisher in PUBLISHERS else "other"
                where = country if country in COUNTRIES else "other"
                conversions[slot, known, where] += 1
                on = device if device in DEVICES else "other"
                revenue[slot, known, on] += min(value, CAP)
    zone = pa.timestamp("us", tz="UTC")
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "impressions.parquet", {
        "user_id": [row[0] for row in clicks],
        "advertiser_id": ["Ad-1"] * len(clicks),
        "timestamp": pa.array([row[1] for row in clicks], zone),
        "publisher_id": [row[2] for row in clicks],
        "device": [row[3] for row in clicks],
        "kind": ["click"] * len(clicks),
    })  # fmt: skip
    _write(directory / "conversions.parquet", {
        "user_id": [row[0] for row in purchases],
        "advertiser_id": ["Ad-1"] * len(purchases),
        "timestamp": pa.array([row[1] for row in purchases], zone),
        "land": [row[2] for row in purchases],
        "value": [row[3] for row in purchases],
    })  # fmt: skip
    file = directory / "shop.toml"
    file.write_text(CAMPAIGN.format(engine=engine, privacy=privacy))
    return Shop(file, conversions, revenue)


def _write(file: Path, columns: dict[str, object]) -> None:
    pq.write_table(pa.table(columns), file)
