"""People on the disk who see, click and buy, campaigns that count all of it, and what is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SLOTS = 4
PUBLISHERS, DEVICES = ("P-1", "P-2", "other"), ("phone", "other")
START = datetime(2026, 3, 1, tzinfo=UTC)

CAMPAIGN = """
[campaign]
name = "audience"
scope = "acme"
advertiser = "Ad-1"
start = 2026-03-01
slots = 4
publishers = ["P-1", "P-2"]

[events]
impressions = "impressions/*.parquet"
conversions = "conversions.parquet"
engine = "{engine}"

[checks]
min_match_rate = 0
max_quarantine_rate = 1

[privacy]
rho = 2.0
{privacy}
{measures}
"""
DIMENSION = """
[dimensions.device]
column = "device"
of = "impression"
values = ["phone"]
"""
# Enough for everybody, so that nothing is cut, whatever noise says.
ROOMY = "[privacy.personal_budget]\nallowance = 60.0"


@dataclass(frozen=True)
class Seen:
    """An impression. Nobody knows some publishers and devices, and some kinds are nothing."""

    user: str
    moment: datetime
    publisher: str
    device: str
    kind: str

    @property
    def slot(self) -> int:
        return (self.moment - START).days + 1

    @property
    def keys(self) -> tuple[str, str]:
        return (
            self.publisher if self.publisher in PUBLISHERS else "other",
            self.device if self.device in DEVICES else "other",
        )


@dataclass(frozen=True)
class Bought:
    user: str
    moment: datetime


@dataclass(frozen=True)
class Audience:
    seen: list[Seen]
    bought: list[Bought]

    def counted(self, metric: str) -> Counter[tuple[int, tuple[str, ...]]]:
        """By slot and keys: none, the publisher, the publisher and the device. One row at a time,
        in the order of what happened."""
        rows: list[tuple[str, int, tuple[str, str]]] = []
        if metric in ("converters", "conversions"):
            for purchase in sorted(self.bought, key=lambda each: each.moment):
                touch = self._last_touch(purchase)
                if touch is not None:
                    rows.append((purchase.user, (purchase.moment - START).days + 1, touch.keys))
        else:
            kinds = {"impressions": ["view"], "clicks": ["click"], "reach": ["view", "click"]}
            rows = [
                (each.user, each.slot, each.keys)
                for each in sorted(self.seen, key=lambda each: each.moment)
                if each.kind in kinds[metric] and 1 <= each.slot <= SLOTS
            ]
        found: Counter[tuple[int, tuple[str, ...]]] = Counter()
        met = set()
        for user, slot, keys in rows:
            for depth in range(3):
                if metric in ("reach", "converters") and (user, keys[:depth]) in met:
                    continue
                met.add((user, keys[:depth]))
                found[slot, keys[:depth]] += 1
        return found

    def _last_touch(self, purchase: Bought) -> Seen | None:
        found = [
            each
            for each in self.seen
            if each.user == purchase.user
            and each.kind in ("view", "click")
            and each.moment < purchase.moment
            and purchase.moment - each.moment <= timedelta(days=30 if each.kind == "click" else 1)
        ]
        return max(found, key=lambda each: each.moment, default=None)


def audience(people: int, seed: int = 1) -> Audience:
    """Moments differ, so that nothing hangs on ties; some are before the campaign, or after it."""
    rng = np.random.default_rng(seed)
    seen, bought, second = [], [], 0

    def moment() -> datetime:
        nonlocal second
        second += 1
        return START + timedelta(days=int(rng.integers(-1, SLOTS + 1)), seconds=second)

    for person in range(people):
        favourite = str(rng.choice(["P-1", "P-2", "X"]))
        for _ in range(int(rng.integers(0, 9))):
            publisher = favourite if rng.random() < 0.6 else str(rng.choice(["P-1", "P-2", "Y"]))
            device = str(rng.choice(["phone", "desk", ""]))
            kind = str(rng.choice(["view", "click", "tap"], p=[0.6, 0.3, 0.1]))
            seen.append(Seen(f"u{person}", moment(), publisher, device, kind))
        for _ in range(int(rng.integers(0, 4))):
            when = moment()
            if when >= START and when < START + timedelta(days=SLOTS):
                bought.append(Bought(f"u{person}", when))
    return Audience(seen, bought)


def measure(metric: str, by: str = '["publisher", "device"]', more: str = "") -> str:
    return f'\n[[measure]]\nname = "{metric}"\nmetric = "{metric}"\nby = {by}\n{more}'


def write_audience(
    directory: Path,
    made: Audience,
    metrics: tuple[str, ...],
    engine: str = "duckdb",
    privacy: str = ROOMY,
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    write_impressions(directory, "first", made.seen)
    purchases = [(each.user, "Ad-1", each.moment) for each in made.bought]
    _write(directory / "conversions.parquet", _CONVERSIONS, purchases)
    file = directory / "audience.toml"
    measures = "".join(measure(metric) for metric in metrics) + DIMENSION
    file.write_text(CAMPAIGN.format(engine=engine, privacy=privacy, measures=measures))
    return file


_MOMENT = pa.timestamp("us", tz="UTC")
_CONVERSIONS = {"user_id": pa.string(), "advertiser_id": pa.string(), "timestamp": _MOMENT}
_IMPRESSIONS = _CONVERSIONS | dict.fromkeys(("publisher_id", "device", "kind"), pa.string())


def write_impressions(directory: Path, name: str, seen: list[Seen]) -> None:
    (directory / "impressions").mkdir(exist_ok=True)
    rows = [
        (each.user, "Ad-1", each.moment, each.publisher, each.device, each.kind) for each in seen
    ]
    _write(directory / "impressions" / f"{name}.parquet", _IMPRESSIONS, rows)


def _write(file: Path, types: dict[str, pa.DataType], rows: Sequence[tuple[object, ...]]) -> None:
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(types.items())
    }
    pq.write_table(pa.table(columns), file)
