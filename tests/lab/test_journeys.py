"""The made-up campaign: same seed, same people; every journey is possible."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from adsbpc.campaign.spend import read_spend
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


def test_purchases_have_circumstances_and_publishers_are_paid(tmp_path: Path) -> None:
    """What the measures of the campaign are by, values with a tail, and spend for every day."""
    made = make_campaign(tmp_path, 5_000, 31, 1, "last_touch")
    spec = load_spec(made.spec)
    conversions = pq.read_table(tmp_path / "conversions.parquet").to_pylist()
    for name, dimension in spec.dimensions.items():
        found = {row[dimension.column] for row in conversions}
        assert found > set(dimension.values), name
    homes = {(row["user_id"], row["country"]) for row in conversions}
    assert len(homes) == len({user for user, _ in homes})
    values = sorted(row["value"] for row in conversions)
    assert 30 < values[len(values) // 2] < 60
    capped = sum(value > 200 for value in values) / len(values)
    assert 0 < capped < 0.02
    spend = read_spend(spec)
    assert spend is not None
    assert {name for name, _ in spend.amounts} == set(spec.reported_publishers)
    assert {slot for _, slot in spend.amounts} == set(range(1, 32))
    assert spend.until(31) > spend.until(30) > 0
