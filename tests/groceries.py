"""Made-up groceries: 1,500 people who buy a dozen times a month, in five departments, of which one
has a third. Some buy ten times as often as most, which is what real tills show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

PEOPLE, PURCHASES, DAYS = 1_500, 12, 31
DEPARTMENTS = ("grocery", "produce", "dairy", "meat", "household")
_SHARES = np.array([1 / 3, *[1 / 6] * 4])
_SPREAD = 0.9

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Purchases:
    """One entry per purchase; days and departments are counted from 0."""

    person: Whole
    day: Whole
    department: Whole

    @property
    def totals(self) -> Whole:
        return np.bincount(self.department, minlength=len(DEPARTMENTS))


def purchases(seed: int) -> Purchases:
    rng = np.random.default_rng(seed)
    rates = PURCHASES * np.exp(rng.normal(-(_SPREAD**2) / 2, _SPREAD, PEOPLE))
    person = np.repeat(np.arange(PEOPLE), rng.poisson(rates))
    return Purchases(
        person,
        rng.integers(0, DAYS, person.size),
        rng.choice(len(DEPARTMENTS), person.size, p=_SHARES),
    )


def write_groceries(folder: Path, bought: Purchases) -> Path:
    """A campaign file that leaves everything to adsbpc, whose departments are the publishers: who
    buys has seen a coupon of the department half a second before; nobody buys twice a second."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    seconds = np.arange(bought.day.size) % 3_600
    moments = [
        noon + timedelta(days=int(day), seconds=int(second))
        for day, second in zip(bought.day, seconds, strict=True)
    ]
    columns = {
        "user_id": pa.array(bought.person).cast(pa.string()),
        "advertiser_id": ["shop"] * len(moments),
    }
    zone = pa.timestamp("us", tz="UTC")
    coupons = {
        **columns,
        "publisher_id": [DEPARTMENTS[number] for number in bought.department],
        "timestamp": pa.array([moment - timedelta(milliseconds=500) for moment in moments], zone),
        "kind": ["click"] * len(moments),
    }
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(coupons), folder / "impressions.parquet")
    pq.write_table(
        pa.table({**columns, "timestamp": pa.array(moments, zone)}), folder / "conversions.parquet"
    )
    file = folder / "groceries.toml"
    file.write_text(
        f"""
[campaign]
name = "groceries"
advertiser = "shop"
start = 2026-03-01
slots = {DAYS}
publishers = {list(DEPARTMENTS)}

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"

[privacy]
rho = 1.0
"""
    )
    return file
