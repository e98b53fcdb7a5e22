"""A trial on the disk: people in arms who buy, touched or not, and what is true of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import floor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SLOTS = 4
START = datetime(2026, 3, 1, tzinfo=UTC)
KEY = "5f" * 32
ARMS = ("treatment", "control")
CAP = 80.0
UNIT = 720_720
COUNTRIES = ("DE", "other")

CAMPAIGN = """
[campaign]
name = "trial"
scope = "acme"
advertiser = "Ad-1"
start = 2026-03-01
slots = 4
publishers = ["P-1"]

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"

[checks]
min_match_rate = 0

[privacy]
rho = 2.0
{privacy}

{lift}

[dimensions.country]
column = "country"
values = ["DE"]

[[measure]]
name = "attributed"
by = ["publisher", "country"]

[[measure]]
name = "buyers"
metric = "converters"
by = ["arm"]

[[measure]]
name = "buyers by country"
metric = "converters"
by = ["arm", "country"]

[[measure]]
name = "people"
metric = "reach"
by = ["arm"]

[[measure]]
name = "purchases"
by = ["arm"]

[[measure]]
name = "purchases squared"
metric = "squared_conversions"
by = ["arm"]

[[measure]]
name = "revenue"
metric = "value"
value_cap = 80.0
by = ["arm"]

[[measure]]
name = "revenue squared"
metric = "squared_value"
value_cap = 80.0
by = ["arm"]
"""
# Enough for everybody, so that nothing is cut, whatever noise says.
ROOMY = "[privacy.personal_budget]\nallowance = 4000.0"
KEYED = """[lift]
key_file = "lift.key"
[lift.shares]
treatment = 0.6
control = 0.3
"""
TABLE = '[lift]\ntable = "arms.csv"\narms = ["treatment", "control"]\n'


@dataclass(frozen=True)
class Bought:
    user: str
    moment: datetime
    value: float
    country: str

    @property
    def slot(self) -> int:
        return (self.moment - START).days + 1


@dataclass(frozen=True)
class Seen:
    user: str
    moment: datetime


def arm_by_hash(user: str) -> str:
    """Said again, in numbers rather than texts."""
    place = int(sha256(f"{KEY}:{user}".encode()).hexdigest()[:13], 16) / 16**13
    return "treatment" if place < 0.6 else "control" if place < 0.9 else "other"


@dataclass(frozen=True)
class Trial:
    bought: list[Bought]
    seen: list[Seen]
    arm_of: Callable[[str], str] = arm_by_hash

    def without(self, user: str) -> Trial:
        return Trial(
            [each for each in self.bought if each.user != user],
            [each for each in self.seen if each.user != user],
            self.arm_of,
        )

    def expected(self, measure: str) -> list[list[int]]:
        """What is let in of a measure by arm, by slot and cell, one purchase at a time."""
        arms = (*ARMS, "other")
        finest = measure == "buyers by country"
        names: list[tuple[str, ...]] = [(), *((arm,) for arm in arms)]
        if finest:
            names += [(arm, country) for arm in arms for country in COUNTRIES]
        once = measure in ("buyers", "buyers by country", "people")
        found = [dict.fromkeys(names, 0) for _ in range(SLOTS)]
        met, so_far = set[tuple[str, tuple[str, ...]]](), dict[str, int]()
        rows: Sequence[Bought | Seen] = self.seen if measure == "people" else self.bought
        for each in sorted(rows, key=lambda row: row.moment):
            slot = (each.moment - START).days + 1
            if not 1 <= slot <= SLOTS:
                continue
            arm = self.arm_of(each.user)
            if once:
                keys: list[tuple[str, ...]] = [(), (arm,)]
                if finest:
                    assert isinstance(each, Bought)
                    keys.append((arm, each.country if each.country == "DE" else "other"))
                for key in keys:
                    if (each.user, key) not in met:
                        met.add((each.user, key))
                        found[slot - 1][key] += UNIT
                continue
            assert isinstance(each, Bought)
            units = UNIT
            if measure.startswith("revenue"):
                units = floor(UNIT * (min(each.value, CAP) / CAP))
            before = so_far.get(each.user, 0)
            so_far[each.user] = before + units
            if measure.endswith("squared"):
                units = _squared(before + units) - _squared(before)
            found[slot - 1][arm,] += units
            found[slot - 1][()] += units
        return [[own[name] for name in names] for own in found]


def _squared(units: int) -> int:
    return floor(float(units) * float(units) / UNIT)


def trial(people: int, seed: int = 1, arm_of: Callable[[str], str] = arm_by_hash) -> Trial:
    """Moments differ, so that nothing hangs on ties. Names have odd characters."""
    rng = np.random.default_rng(seed)
    bought, seen, second = [], [], 0
    for person in range(people):
        user = f"ü'\\{person}😀" if person % 5 == 0 else f"u{person}"
        for _ in range(int(rng.integers(0, 5))):
            second += 1
            moment = START + timedelta(days=int(rng.integers(0, SLOTS)), seconds=second)
            country = str(rng.choice(["DE", "FR", ""]))
            bought.append(Bought(user, moment, float(rng.integers(0, 120)), country))
        for _ in range(int(rng.integers(0, 3))):
            second += 1
            seen.append(
                Seen(user, START + timedelta(days=int(rng.integers(0, SLOTS)), seconds=second))
            )
    return Trial(bought, seen, arm_of)


def write_trial(
    directory: Path,
    made: Trial,
    lift: str = KEYED,
    privacy: str = ROOMY,
    campaign: str = CAMPAIGN,
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    moment, text = pa.timestamp("us", tz="UTC"), pa.string()
    seen, bought = made.seen, made.bought
    pq.write_table(
        pa.table(
            {
                "user_id": pa.array([each.user for each in seen], text),
                "advertiser_id": pa.array(["Ad-1"] * len(seen), text),
                "publisher_id": pa.array(["P-1"] * len(seen), text),
                "kind": pa.array(["view"] * len(seen), text),
                "timestamp": pa.array([each.moment for each in seen], moment),
            }
        ),
        directory / "impressions.parquet",
    )
    pq.write_table(
        pa.table(
            {
                "user_id": pa.array([each.user for each in bought], text),
                "advertiser_id": pa.array(["Ad-1"] * len(bought), text),
                "timestamp": pa.array([each.moment for each in bought], moment),
                "value": pa.array([each.value for each in bought], pa.float64()),
                "country": pa.array([each.country for each in bought], text),
            }
        ),
        directory / "conversions.parquet",
    )
    (directory / "lift.key").write_text(KEY + "\n")
    file = directory / "trial.toml"
    file.write_text(campaign.format(privacy=privacy, lift=lift))
    return file


def write_arms(directory: Path, rows: Sequence[tuple[str, str]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "arms.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("user_id", "arm"), *rows])
