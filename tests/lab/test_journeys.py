"""The made-up campaign: same seed, same people; every journey is possible."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from adsbpc.campaign.spend import read_spend
from adsbpc.events.arms import keyed_arms
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
    assert {name for (name,), _ in spend.amounts} == set(spec.reported_publishers)
    assert {slot for _, slot in spend.amounts} == set(range(1, 32))
    assert spend.until(31) > spend.until(30) > 0


def test_arms_see_what_they_should_and_buy_less_for_it(tmp_path: Path) -> None:
    """Nobody of the control sees anything, nobody of "no_search" sees search; and purchases of one
    person in an arm differ by what ads caused."""
    made = make_campaign(tmp_path, 8_000, 31, 1, "last_touch", with_control=True)
    spec = load_spec(made.spec)
    arms = keyed_arms(spec)
    impressions = pq.read_table(tmp_path / "impressions.parquet").to_pylist()
    seen = {(arms.arm_of(row["user_id"]), row["publisher_id"]) for row in impressions}
    publishers = {channel.name for channel in CHANNELS}
    assert seen == {("treatment", name) for name in publishers} | {
        ("no_search", name) for name in publishers - {"search"}
    }
    assert spec.lift is not None
    people, control = spec.lift.people, spec.lift.control
    assert sum(people.values()) == 8_000
    bought = Counter(
        arms.arm_of(row["user_id"])
        for row in pq.read_table(tmp_path / "conversions.parquet").to_pylist()
    )
    for less, name in ((control, "purchases"), ("no_search", "purchases by search")):
        ratio = people["treatment"] / people[less]
        found = bought["treatment"] - ratio * bought[less]
        # Some people buy several times: twice the variance of counts.
        error = (2 * (bought["treatment"] + ratio**2 * bought[less])) ** 0.5
        assert abs(found - made.caused[name]) < 4 * error, name
    assert 0 < made.caused["purchases by search"] < made.caused["purchases"]
