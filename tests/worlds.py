"""Small made-up worlds of events, written to files, run through an engine and the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.attribution import journeys_of, plain_model
from adsbpc.attribution.reference import Conversion, Credit, Impression
from adsbpc.attribution.reference import attribute as reference_attribute
from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from adsbpc.model import CampaignSpec

ADVERTISER = "Ad-1"
_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class World:
    """Events of one campaign and how they are attributed."""

    impressions: Sequence[Impression]
    conversions: Sequence[Conversion]
    start: date = date(2026, 3, 27)
    slots: int = 5
    slot: str = "1d"
    timezone: str = "Europe/Berlin"
    publishers: tuple[str, ...] = ("P-1", "P-2")
    attribution: dict[str, Any] = field(default_factory=dict)
    events: dict[str, Any] = field(default_factory=dict)

    def without(self, user_id: str) -> World:
        return replace(
            self,
            impressions=[i for i in self.impressions if i.user_id != user_id],
            conversions=[c for c in self.conversions if c.user_id != user_id],
        )

    def users(self) -> list[str]:
        touched = {impression.user_id for impression in self.impressions}
        return sorted(touched | {conversion.user_id for conversion in self.conversions})

    def spec(self, directory: Path) -> CampaignSpec:
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": "test",
                    "advertiser": ADVERTISER,
                    "start": self.start,
                    "slots": self.slots,
                    "slot": self.slot,
                    "timezone": self.timezone,
                    "publishers": self.publishers,
                },
                "events": {
                    "impressions": "impressions.parquet",
                    "conversions": "conversions.parquet",
                    **self.events,
                },
                "attribution": self.attribution,
                "directory": directory,
            }
        )

    def write(self, directory: Path) -> CampaignSpec:
        impressions = pa.table(
            {
                "user_id": pa.array([i.user_id for i in self.impressions], pa.string()),
                "publisher_id": pa.array([i.publisher_id for i in self.impressions], pa.string()),
                "advertiser_id": pa.array([ADVERTISER] * len(self.impressions), pa.string()),
                "timestamp": pa.array([i.time_us for i in self.impressions], _UTC),
                "kind": pa.array(
                    ["click" if i.is_click else "view" for i in self.impressions], pa.string()
                ),
            }
        )
        if "settle" in self.events:
            arrived = pa.array([i.arrived_us for i in self.impressions], _UTC)
            impressions = impressions.append_column("arrived_at", arrived)
        conversions = pa.table(
            {
                "user_id": pa.array([c.user_id for c in self.conversions], pa.string()),
                "advertiser_id": pa.array([ADVERTISER] * len(self.conversions), pa.string()),
                "timestamp": pa.array([c.time_us for c in self.conversions], _UTC),
                "arrived_at": pa.array([c.arrived_us for c in self.conversions], _UTC),
                "event_id": pa.array([c.conversion_id for c in self.conversions], pa.string()),
            }
        )
        pq.write_table(impressions, directory / "impressions.parquet")
        pq.write_table(conversions, directory / "conversions.parquet")
        return self.spec(directory)

    def reference(self, directory: Path) -> list[Credit]:
        return plain_credits(self.spec(directory), self.impressions, self.conversions)


def plain_credits(
    spec: CampaignSpec, impressions: Sequence[Impression], conversions: Sequence[Conversion]
) -> list[Credit]:
    """In plain Python, as a campaign's file says."""
    return reference_attribute(
        impressions,
        conversions,
        spec.grid,
        journeys_of(spec.attribution),
        plain_model(spec.attribution.model, spec.attribution),
        spec.attribution.max_conversions,
        spec.events.settle,
        spec.events.wait,
    )


def credits_on(engine: Engine, spec: CampaignSpec, slot: int | None = None) -> list[Credit]:
    """Credits as an engine computes them, sorted like the reference's."""
    credits = attribute(spec, engine, slot).credits
    found = engine.rows(
        "test credits",
        f"SELECT user_id, conversion_id, slot, publisher_id, credit_units FROM {credits}",
    )
    return sorted(Credit(*row) for row in found)
