"""A small campaign on the disk, ready to be released slot by slot."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2026, 3, 1, tzinfo=UTC)
PUBLISHERS = ("P-1", "P-2")

# For `privacy` of a campaign. Under the fixed allowance, which is small enough to cut everybody,
# what is kept does not depend on noise: two campaigns with the same events keep the same.
PERSONAL = 'mechanism = "personal-budget"'
ADSBPC = 'mechanism = "adsbpc"'
FIXED = f"{PERSONAL}\n[privacy.personal_budget]\nallowance = 1.0"

CAMPAIGN = """
[campaign]
name = "spring"
scope = "acme"
advertiser = "Ad-1"
start = 2026-03-01
slots = {slots}
slot = "{slot}"
publishers = ["P-1", "P-2"]

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"
engine = "{engine}"

[attribution]
model = "{model}"

[privacy]
rho = 1.0
{privacy}

[[workload]]
queries = "prefix"

[engine.options]
{options}

[ledger]
location = "{location}"
{witness}
"""


def write_campaign(
    directory: Path,
    slots: int = 5,
    slot: str = "1d",
    engine: str = "duckdb",
    options: str = "threads = 1",
    location: str = "ledger.sqlite",
    witness: str | None = None,
    privacy: str = "",
    model: str = "uniform",
    conversions_per_slot: int = 12,
) -> Path:
    """Every slot but the second has conversions; each follows a click an hour before. AdsBPC
    releases them unless `privacy` names a mechanism."""
    if "mechanism" not in privacy:
        privacy = f"{ADSBPC}\n{privacy}"
    directory.mkdir(parents=True, exist_ok=True)
    step = timedelta(days=1) if slot == "1d" else timedelta(hours=1)
    moments = [
        (f"u{k}", START + number * step + step / (k + 2), PUBLISHERS[k % 2] if k % 5 else "X")
        for number in range(slots)
        if number != 1
        for k in range(conversions_per_slot)
    ]
    zone = pa.timestamp("us", tz="UTC")
    columns: dict[str, Any] = {
        "user_id": [user for user, _, _ in moments],
        "advertiser_id": ["Ad-1"] * len(moments),
    }
    impressions = {
        **columns,
        "publisher_id": [publisher for _, _, publisher in moments],
        "timestamp": pa.array([moment - timedelta(hours=1) for _, moment, _ in moments], zone),
        "kind": ["click"] * len(moments),
    }
    conversions = {**columns, "timestamp": pa.array([moment for _, moment, _ in moments], zone)}
    pq.write_table(pa.table(impressions), directory / "impressions.parquet")
    pq.write_table(pa.table(conversions), directory / "conversions.parquet")
    if witness is not None and "://" not in witness:
        (directory / witness).parent.mkdir(exist_ok=True)
    file = directory / "spring.toml"
    file.write_text(
        CAMPAIGN.format(
            slots=slots,
            slot=slot,
            engine=engine,
            options=options,
            location=location,
            witness="" if witness is None else f'witness = "{witness}"',
            privacy=privacy,
            model=model,
        )
    )
    return file


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def published(directory: Path) -> dict[int, str]:
    """What stands in the files of releases, by slot."""
    folder = directory / "adsbpc-releases" / "acme" / "spring"
    return {int(file.stem): file.read_text() for file in folder.glob("[0-9]*.json")}


def stored(ledger: Path) -> dict[int, str]:
    """What stands in a SQLite ledger, read without the program."""
    with closing(sqlite3.connect(ledger)) as connection:
        return dict(
            connection.execute(
                "SELECT slot, body FROM adsbpc_entries WHERE kind = 'release'"
            ).fetchall()
        )
