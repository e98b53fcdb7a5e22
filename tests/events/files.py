"""Event files with one thing wrong at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.engines import Engine
from adsbpc.events import EventTables, read_events
from adsbpc.model import CampaignSpec

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
IMPRESSION: dict[str, Any] = {
    "user_id": "u1",
    "publisher_id": "P-1",
    "advertiser_id": "Ad-1",
    "timestamp": NOON,
    "kind": "click",
}
CONVERSION: dict[str, Any] = {"user_id": "u1", "advertiser_id": "Ad-1", "timestamp": NOON}


def spec_of(directory: Path, **events: Any) -> CampaignSpec:
    campaign = events.pop("campaign", {})
    return CampaignSpec.model_validate(
        {
            "campaign": {
                "name": "test",
                "advertiser": "Ad-1",
                "start": "2026-03-01",
                "slots": 31,
                "publishers": ["P-1"],
                **campaign,
            },
            "events": {
                "impressions": "impressions.parquet",
                "conversions": "conversions.parquet",
                **events,
            },
            "directory": directory,
        }
    )


def write(path: Path, rows: list[dict[str, Any]], **types: pa.DataType) -> None:
    """Write rows to Parquet; `types` fixes the type of a column."""
    table = pa.Table.from_pylist(rows)
    for name, column_type in types.items():
        position = table.schema.get_field_index(name)
        table = table.set_column(position, name, table.column(name).cast(column_type))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def write_both(
    directory: Path,
    impressions: list[dict[str, Any]] | None = None,
    conversions: list[dict[str, Any]] | None = None,
) -> None:
    write(directory / "impressions.parquet", impressions or [IMPRESSION])
    write(directory / "conversions.parquet", conversions or [CONVERSION])


def counts(engine: Engine, spec: CampaignSpec) -> tuple[EventTables, int, int]:
    """Read events; also how many good impressions and conversions there are."""
    events = read_events(spec, engine)
    ((impressions,),) = engine.rows("impressions", f"SELECT count(*) FROM {events.impressions}")
    return events, impressions, events.conversion_count()
