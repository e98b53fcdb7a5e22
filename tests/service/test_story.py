"""The paper's story over HTTP: two publishers, one advertiser, three days."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign import attribute, contributed
from adsbpc.engines import open_engine
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)
Row = dict[str, Any]


def made_up_days() -> list[tuple[list[Row], list[Row]]]:
    """Impressions and conversions of three days; some conversions come a day late."""
    rng = random.Random(7)
    days: list[tuple[list[Row], list[Row]]] = []
    for day in range(3):
        began = START + day * DAY
        impressions, conversions = [], []
        for user in range(60):
            for publisher in ("P-1", "P-2"):
                if rng.random() < 0.6:
                    impressions.append(
                        {
                            "user_id": f"u{user}",
                            "publisher_id": publisher,
                            "advertiser_id": "Ad-1",
                            "timestamp": began + timedelta(minutes=rng.randrange(1_000)),
                            "kind": rng.choice(("click", "view")),
                        }
                    )
            if rng.random() < 0.5:
                late = timedelta(minutes=rng.randrange(1_400) if day and rng.random() < 0.3 else 0)
                conversions.append(
                    {
                        "user_id": f"u{user}",
                        "advertiser_id": "Ad-1",
                        "timestamp": began + timedelta(minutes=1_200) - late,
                        "event_id": f"order-{day}-{user}",
                    }
                )
        days.append((impressions, conversions))
    return days


def play(
    server: Running, clock: SetClock, spec: dict[str, Any]
) -> tuple[str, list[Row], list[Row]]:
    """Push three days as they happen; returns the campaign and everything that was pushed."""
    campaign = server.client("operator").create_campaign(spec)["id"]
    publishers = {name: server.client("publisher", name) for name in ("P-1", "P-2")}
    advertiser = server.client("advertiser", "Ad-1")
    pushed: tuple[list[Row], list[Row]] = ([], [])
    for day, (impressions, conversions) in enumerate(made_up_days()):
        clock.moment = START + day * DAY + timedelta(hours=23)
        for name, client in publishers.items():
            own = [row for row in impressions if row["publisher_id"] == name]
            assert client.push_impressions(own, f"day-{day}")["accepted"] == len(own)
        answer = advertiser.push_conversions(conversions, f"day-{day}")
        assert answer["accepted"] == len(conversions)
        # Sent again, nothing counts twice: the batch by its key, the rows by their ids.
        assert advertiser.push_conversions(conversions, f"day-{day}")["repeated"]
        again = advertiser.push_conversions(conversions, f"day-{day}-again")
        assert again["duplicates"] == len(conversions)
        pushed[0].extend(impressions)
        pushed[1].extend({**row, "arrived_at": clock.moment} for row in conversions)
        clock.moment = START + (day + 1) * DAY + timedelta(minutes=2)
        server.wait_for(campaign, day + 1)
        assert next(advertiser.listen(campaign, after=day)) == day + 1
    return campaign, *pushed


def offline_totals(directory: Path, impressions: list[Row], conversions: list[Row]) -> Any:
    """The same events through files and the data path, before noise: a list for each slot."""
    pq.write_table(pa.Table.from_pylist(impressions), directory / "impressions.parquet")
    pq.write_table(pa.Table.from_pylist(conversions), directory / "conversions.parquet")
    events = {"impressions": "impressions.parquet", "conversions": "conversions.parquet"}
    whole = {**content(), "events": events, "directory": directory}
    return totals_of(CampaignSpec.model_validate(whole))


def totals_of(spec: CampaignSpec) -> list[list[int]]:
    engine = open_engine("duckdb", {})
    try:
        with contributed(attribute(spec, engine), spec.measures[0]) as contributions:
            return [contributions.totals(slot).tolist() for slot in (1, 2, 3)]
    finally:
        engine.close()


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_the_story(tmp_path: Path, database: str, request: pytest.FixtureRequest) -> None:
    sections: dict[str, Any] = {}
    if database == "postgresql":
        location = str(request.getfixturevalue("postgresql_database"))
        sections["ledger"] = {"location": location}
        sections["service"] = {"port": 0, "data": "data", "database": location}
    # A budget that hides nobody, so that the noise is too small to see.
    spec = content()
    spec["privacy"]["rho"] = 1e6
    clock = SetClock(START)
    with running(settings_in(tmp_path, **sections), clock) as server:
        campaign, impressions, conversions = play(server, clock, spec)
        registered = server.backend.campaigns.get(campaign)
        assert registered is not None
        expected = offline_totals(tmp_path, impressions, conversions)
        with server.backend.campaigns.ready(registered, 3) as ready:
            assert totals_of(ready.spec) == expected

        advertiser = server.client("advertiser", "Ad-1")
        released = advertiser.releases(campaign)
        assert [each["slot"] for each in released] == [1, 2, 3]
        for each, totals in zip(released, expected, strict=True):
            found = each["measures"][0]["slot_totals"][1]["values"]
            assert found == pytest.approx([t / UNITS_PER_CONVERSION for t in totals], abs=0.05)
        assert sum(sum(totals) for totals in expected) > 40 * UNITS_PER_CONVERSION

        # The ledger agrees with the promise: everything is spent, to the last pico-rho.
        shown = advertiser.campaign(campaign)
        charged = sum(
            line["pico_rho"] for each in released for line in each["measures"][0]["charges"]
        )
        assert charged <= 10**18
        assert shown["status"]["spent"] == pytest.approx(charged / 10**12)
        assert shown["guarantee"]["rho"] == 1e6
        verified = server.client("operator").verification(campaign)
        assert verified["verified"]
        assert Campaign(registered.spec).status().released == 3
        report = json.loads(advertiser.report(campaign))
        assert report["budget"]["campaign"]["spent"] == pytest.approx(charged / 10**12)
