"""For real: a server whose releases run on Spark, from the files that it stored."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.conftest import SPARK_OPTIONS
from tests.service.clocks import SetClock
from tests.service.running import content, running, settings_in


@pytest.mark.spark
def test_a_release_on_spark(tmp_path: Path) -> None:
    clock = SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    settings = settings_in(tmp_path, engine={"name": "spark", "options": SPARK_OPTIONS})
    spec = content()
    spec["privacy"]["rho"] = 1e6
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign(spec)["id"]
        row = {"user_id": "u1", "advertiser_id": "Ad-1", "timestamp": "2026-03-01T10:00:00Z"}
        server.client("publisher", "P-1").push_impressions([{**row, "kind": "click"}])
        advertiser = server.client("advertiser", "Ad-1")
        later = {**row, "timestamp": "2026-03-01T11:00:00Z"}
        advertiser.push_conversions([later, {**later, "event_id": "order-1"}])
        clock.moment = datetime(2026, 3, 2, 0, 2, tzinfo=UTC)
        server.wait_for(campaign, 1, seconds=300)
        (released,) = advertiser.releases(campaign)
    (measured,) = released["measures"]
    assert measured["slot_totals"][1]["values"] == pytest.approx([2, 0, 0], abs=0.05)
