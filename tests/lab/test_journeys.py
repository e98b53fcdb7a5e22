"""The made-up campaign: same seed, same people; every journey is possible."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from adsbpc.lab.journeys import CHANNELS, make_campaign
from adsbpc.model import load_spec


def test_same_seed_same_people(tmp_path: Path) -> None:
    made = [make_campaign(tmp_path / d, 500, 10, seed, "uniform") for d, seed in
            (("a", 1), ("b", 1), ("c", 2))]  # fmt: skip
    tables = [
        [pq.read_table(m.spec.parent / f"{t}.parquet") for t in ("impressions", "conversions")]
        for m in made
    ]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_the_campaign_file_fits_the_events(tmp_path: Path) -> None:
    made = make_campaign(tmp_path, 3_000, 31, 1, "last_touch")
    spec = load_spec(made.spec)
    impressions = pq.read_table(tmp_path / "impressions.parquet")
    conversions = pq.read_table(tmp_path / "conversions.parquet")
    assert (impressions.num_rows, conversions.num_rows) == (made.impressions, made.conversions)
    publishers = set(impressions["publisher_id"].to_pylist())
    assert publishers == {channel.name for channel in CHANNELS}
    assert publishers - set(spec.campaign.publishers) == {"partner"}
    assert conversions["event_id"].to_pylist() == sorted(
        set(conversions["event_id"].to_pylist()), key=lambda e: int(e.split("-")[1])
    )


def test_one_publisher_surges(tmp_path: Path) -> None:
    make_campaign(tmp_path, 5_000, 31, 1, "last_touch")
    impressions = pq.read_table(tmp_path / "impressions.parquet").to_pylist()
    days = [row["timestamp"].day for row in impressions if row["publisher_id"] == "audio"]
    before, after = sum(d <= 17 for d in days) / 17, sum(d > 17 for d in days) / 14
    assert after > 2 * before
