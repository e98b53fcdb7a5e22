"""Data for the benchmarks, made by DuckDB from hashes so that every run has the same rows.

User ids are 16 hexadecimal digits and event ids 20, as logs have them; with integer ids, users are
64-bit integers and impressions have no event ids. A user meets four of the 20 publishers, one of
them half of the time, and is of one of 50 countries. The market has as many impressions and
conversions, of 200 advertisers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from adsbpc.model.durations import MICROSECONDS_PER_DAY

USERS = 1_000_000
SLOTS = 31
DAYS = 365
PUBLISHERS = 20
COUNTRIES = 50
CONTRIBUTION_PUBLISHERS = 1_000
LOOKBACK_DAYS = 30
_DAY = MICROSECONDS_PER_DAY


@dataclass(frozen=True)
class Sizes:
    impressions: int = 20_000_000
    conversions: int = 2_000_000
    contributions: int = 50_000_000
    integer_ids: bool = False
    advertisers: int = 200
    users: int = USERS

    def scaled(self, scale: float) -> Sizes:
        return Sizes(
            int(self.impressions * scale),
            int(self.conversions * scale),
            int(self.contributions * scale),
            self.integer_ids,
            max(2, round(self.advertisers * scale)),
            self.users,
        )

    def user(self, seed: str) -> str:
        number = f"hash({seed}) % {self.users}"
        if self.integer_ids:
            return f"CAST({number} AS BIGINT)"
        return f"substr(md5(CAST({number} AS VARCHAR)), 1, 16)"


def _moment(seed: str, first_day: str, days: int) -> str:
    micros = f"CAST(hash({seed}) % ({days} * {_DAY}) AS BIGINT)"
    return f"TIMESTAMP '{first_day}' + to_microseconds({micros})"


def make_events(directory: Path, sizes: Sizes, advertiser: str = "'Ad-1'") -> None:
    """`advertiser` is SQL for the row i."""
    favourite = "CASE WHEN hash(i * 7 + 1) % 6 < 3 THEN 0 ELSE hash(i * 7 + 1) % 3 + 1 END"
    publisher = f"(hash(hash(i) % {USERS}) + 7 * ({favourite})) % {PUBLISHERS}"
    event_id = ", substr(md5(CAST(i AS VARCHAR)), 1, 20) AS event_id"
    event_id = "" if sizes.integer_ids else event_id
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        connection.execute(f"""COPY (SELECT
            {sizes.user("i")} AS user_id, 'P-' || ({publisher}) AS publisher_id,
            {advertiser} AS advertiser_id,
            {_moment("i * 13 + 5", "2026-01-30", LOOKBACK_DAYS + SLOTS)} AS timestamp,
            CASE WHEN hash(i * 3 + 2) % 4 = 0 THEN 'click' ELSE 'view' END AS kind{event_id}
            FROM range({sizes.impressions}) AS made(i))
            TO '{directory}/impressions.parquet' (FORMAT parquet)""")
        connection.execute(f"""COPY (SELECT
            {sizes.user("i + 99")} AS user_id, {advertiser} AS advertiser_id,
            {_moment("i * 17 + 5", "2026-03-01", SLOTS)} AS timestamp,
            substr(md5(CAST(-i AS VARCHAR)), 1, 20) AS event_id,
            CAST(hash(i) % 10000 AS DOUBLE) / 100 AS value,
            'C-' || (hash(i + 99) % {USERS} % {COUNTRIES}) AS country
            FROM range({sizes.conversions}) AS made(i))
            TO '{directory}/conversions.parquet' (FORMAT parquet)""")


def make_year(directory: Path, sizes: Sizes) -> None:
    make_contributions(directory, sizes, DAYS)


def make_market(directory: Path, sizes: Sizes) -> None:
    make_events(directory, sizes, f"'Ad-' || (hash(i * 31 + 3) % {sizes.advertisers})")
    (directory / "advertisers").write_text(str(sizes.advertisers))


def make_contributions(directory: Path, sizes: Sizes, slots: int = SLOTS) -> None:
    per_slot = sizes.contributions // slots
    with duckdb.connect(config={"preserve_insertion_order": False}) as connection:
        for slot in range(1, slots + 1):
            folder = directory / f"slot={slot}"
            folder.mkdir(parents=True, exist_ok=True)
            connection.execute(f"""COPY (SELECT
                {sizes.user("i")} AS user_id,
                {1_772_323_200_000_000 + (slot - 1) * _DAY}
                  + CAST(hash(i * 7) % {_DAY} AS BIGINT) AS time_us,
                CAST(1 AS BIGINT) AS conversion_number,
                CAST(hash(i * 11 + 3) % {CONTRIBUTION_PUBLISHERS} AS INTEGER) AS publisher_index,
                CAST(CASE WHEN hash(i * 5) % 3 = 0 THEN 360360 ELSE 720720 END AS BIGINT) AS weight
                FROM range({(slot - 1) * per_slot}, {slot * per_slot}) AS made(i))
                TO '{folder}/rows.parquet' (FORMAT parquet)""")
