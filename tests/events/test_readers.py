"""Every kind of source gives the same tables: globs, partitions, CSV, tables, mapped columns."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.engines import Engine, open_engine
from adsbpc.events import read_events
from adsbpc.model import CampaignSpec
from tests.events.files import CONVERSION, IMPRESSION, NOON, spec_of, write, write_both

EXPECTED = [("u1", "P-1", True), ("u2", "P-2", False)]
ROWS = [
    {**IMPRESSION, "timestamp": NOON - timedelta(hours=1)},
    {
        **IMPRESSION,
        "user_id": "u2",
        "publisher_id": "P-2",
        "kind": "view",
        "timestamp": NOON - timedelta(hours=1),
    },
]


def impressions(engine: Engine, spec: CampaignSpec) -> list[tuple[Any, ...]]:
    events = read_events(spec, engine)
    return sorted(
        engine.rows(
            "impressions",
            f"SELECT user_id, publisher_id, is_click FROM {events.impressions} AS i"
            f" JOIN {events.publishers} AS p ON p.publisher_number = i.publisher_number",
        )
    )


@pytest.mark.parametrize("location", ["parts/*.parquet", "parts", "parts/"])
def test_globs_and_folders(location: str, engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    for k, row in enumerate(ROWS):
        write(tmp_path / "parts" / f"{k}.parquet", [row])
    assert impressions(engine, spec_of(tmp_path, impressions=location)) == EXPECTED


@pytest.mark.parametrize("location", ["parts", "parts/*/*/*.parquet", "parts/**/*.parquet"])
def test_partition_folders_are_columns(location: str, engine: Engine, tmp_path: Path) -> None:
    """Folder names are text, so that a publisher "007" stays what it is."""
    write_both(tmp_path)
    for row in ROWS:
        rest = {k: v for k, v in row.items() if k not in ("publisher_id", "advertiser_id")}
        folder = tmp_path / "parts" / "advertiser_id=Ad-1" / f"publisher_id=00{row['user_id'][1]}"
        write(folder / "rows.parquet", [rest])
    assert impressions(engine, spec_of(tmp_path, impressions=location)) == [
        ("u1", "001", True),
        ("u2", "002", False),
    ]


def test_csv_and_compressed_csv(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    header = "user_id,publisher_id,advertiser_id,timestamp,kind\n"
    (tmp_path / "a.csv").write_text(header + "u1,P-1,Ad-1,2026-03-02T11:00:00Z,click\n")
    with gzip.open(tmp_path / "b.csv.gz", "wt") as packed:
        packed.write(header + "u2,P-2,Ad-1,2026-03-02T11:00:00Z,VIEW\n")
    assert impressions(engine, spec_of(tmp_path, impressions="[ab].csv*")) == EXPECTED


def test_a_table_of_a_duckdb_file(tmp_path: Path) -> None:
    write_both(tmp_path, impressions=ROWS)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute("CREATE SCHEMA ads")
        connection.execute(f"CREATE TABLE ads.shown AS FROM '{tmp_path / 'impressions.parquet'}'")
    engine = open_engine("duckdb", {"database": str(tmp_path / "warehouse.duckdb")})
    try:
        assert impressions(engine, spec_of(tmp_path, impressions="ads.shown")) == EXPECTED
    finally:
        engine.close()


@pytest.mark.every_change
@pytest.mark.spark
def test_a_table_of_spark(tmp_path: Path) -> None:
    from tests.conftest import open_test_engine

    write_both(tmp_path, impressions=ROWS)
    engine = open_test_engine("spark")
    try:
        shown = engine.table("shown", f"SELECT * FROM parquet.`{tmp_path}/impressions.parquet`")
        assert impressions(engine, spec_of(tmp_path, impressions=str(shown))) == EXPECTED
    finally:
        engine.close()


@pytest.mark.parametrize("name", ["impressions", "main.impressions"])
def test_a_table_with_the_name_of_our_own(name: str, tmp_path: Path) -> None:
    write_both(tmp_path, impressions=ROWS)
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute(f"CREATE TABLE impressions AS FROM '{tmp_path}/impressions.parquet'")
    engine = open_engine("duckdb", {"database": str(tmp_path / "w.duckdb")})
    try:
        for _ in range(2):
            assert impressions(engine, spec_of(tmp_path, impressions=name)) == EXPECTED
    finally:
        engine.close()


def test_the_session_zone_cannot_be_changed(tmp_path: Path) -> None:
    write_both(tmp_path)
    engine = open_engine("duckdb", {"TimeZone": "America/New_York"})
    try:
        events = read_events(spec_of(tmp_path), engine)
        ((micros,),) = engine.rows("moment", f"SELECT time_us FROM {events.impressions}")
        assert micros == NOON.timestamp() * 1_000_000
    finally:
        engine.close()


def test_folders_above_the_campaign_are_no_columns(engine: Engine, tmp_path: Path) -> None:
    campaign = tmp_path / "advertiser_id=Ad-7"
    write_both(campaign, impressions=ROWS)
    assert impressions(engine, spec_of(campaign)) == EXPECTED


def test_a_pattern_that_starts_below_a_partition(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    rest = {k: v for k, v in ROWS[0].items() if k != "publisher_id"}
    write(tmp_path / "parts" / "publisher_id=P-1" / "rows.parquet", [rest])
    spec = spec_of(tmp_path, impressions="parts/publisher_id=P-1/*.parquet")
    assert impressions(engine, spec) == EXPECTED[:1]


def test_csv_columns_are_matched_by_name(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / "a.csv").write_text(
        "user_id,publisher_id,advertiser_id,timestamp,kind\nu1,P-1,Ad-1,2026-03-02 11:00:00,click\n"
    )
    (tmp_path / "b.csv").write_text(
        "note,kind,timestamp,advertiser_id,publisher_id,user_id\n"
        "x,view,2026-03-02 11:00:00,Ad-1,P-2,u2\n"
    )
    assert impressions(engine, spec_of(tmp_path, impressions="[ab].csv")) == EXPECTED


def test_columns_that_nobody_asked_for_may_differ(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    write(tmp_path / "i" / "1.parquet", [{**ROWS[0], "note": 1}])
    write(tmp_path / "i" / "2.parquet", [{**ROWS[1], "note": "one"}])
    assert impressions(engine, spec_of(tmp_path, impressions="i")) == EXPECTED


def test_integers_of_different_width(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "i" / "1.parquet", [{**ROWS[0], "user_id": 1}], user_id=pa.int32())
    write(tmp_path / "i" / "2.parquet", [{**ROWS[1], "user_id": 2**40}], user_id=pa.int64())
    write(tmp_path / "conversions.parquet", [{**CONVERSION, "user_id": 1}])
    found = impressions(engine, spec_of(tmp_path, impressions="i"))
    assert [row[0] for row in found] == [1, 2**40]


def test_a_folder_with_odd_signs(duckdb_engine: Engine, tmp_path: Path) -> None:
    campaign = tmp_path / "it's (1)"
    write_both(campaign, impressions=ROWS)
    assert impressions(duckdb_engine, spec_of(campaign, impressions="imp*.parquet")) == EXPECTED


def test_int96_timestamps_are_instants(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    table = pa.Table.from_pylist([IMPRESSION])
    pq.write_table(table, tmp_path / "impressions.parquet", use_deprecated_int96_timestamps=True)
    events = read_events(spec_of(tmp_path, timezone="America/New_York"), engine)
    ((micros,),) = engine.rows("moment", f"SELECT time_us FROM {events.impressions}")
    assert micros == NOON.timestamp() * 1_000_000


def test_nanoseconds_on_duckdb(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    for zone in ("UTC", None):
        write(tmp_path / "impressions.parquet", [IMPRESSION], timestamp=pa.timestamp("ns", zone))
        events = read_events(spec_of(tmp_path), duckdb_engine)
        ((micros,),) = duckdb_engine.rows("moment", f"SELECT time_us FROM {events.impressions}")
        assert micros == NOON.timestamp() * 1_000_000


def test_mapped_columns(engine: Engine, tmp_path: Path) -> None:
    renamed = [
        {
            'Nutzer "id"': row["user_id"],
            "site": row["publisher_id"],
            "brand": row["advertiser_id"],
            "seen at": row["timestamp"],
            "type": row["kind"],
            "extra": {"nested": 1},
        }
        for row in ROWS
    ]
    write(tmp_path / "impressions.parquet", renamed)
    write(tmp_path / "conversions.parquet", [CONVERSION])
    spec = spec_of(
        tmp_path,
        impression_columns={
            "user_id": 'Nutzer "id"',
            "publisher_id": "site",
            "advertiser_id": "brand",
            "timestamp": "seen at",
            "kind": "type",
        },
    )
    assert impressions(engine, spec) == EXPECTED


@pytest.mark.parametrize("other_side", [7, "7"])
def test_integer_users(other_side: object, engine: Engine, tmp_path: Path) -> None:
    """Integers stay integers when both tables have them; otherwise both are text."""
    write(tmp_path / "impressions.parquet", [{**IMPRESSION, "user_id": 7}], user_id=pa.int32())
    write(tmp_path / "conversions.parquet", [{**CONVERSION, "user_id": other_side}])
    found = impressions(engine, spec_of(tmp_path))
    assert found == [(other_side, "P-1", True)]


WALL = datetime(2026, 3, 29, 3, 30)  # half an hour after clocks went forward in Berlin
ZONES = [
    # (value in the file, events zone, the instant that it means)
    (WALL, None, datetime(2026, 3, 29, 3, 30, tzinfo=UTC)),
    (WALL, "Europe/Berlin", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
    (WALL.replace(tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 29, 3, 30, tzinfo=UTC)),
    ("2026-03-29 03:30:00", "Europe/Berlin", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
    ("2026-03-29 02:30:00", "Europe/Berlin", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
    ("2026-03-29 01:59:59.999999", "Europe/Berlin", datetime(2026, 3, 29, 0, 59, 59, 999_999, UTC)),
    ("2026-03-29T03:30:00Z", "Europe/Berlin", datetime(2026, 3, 29, 3, 30, tzinfo=UTC)),
    ("2026-03-29T03:30:00+05:30", None, datetime(2026, 3, 28, 22, 0, tzinfo=UTC)),
    ("2026-03-29T03:30:00 -0330", None, datetime(2026, 3, 29, 7, 0, tzinfo=UTC)),
    ("2026-03-29T03:30:00.5-03", None, datetime(2026, 3, 29, 6, 30, 0, 500_000, UTC)),
]


@pytest.mark.parametrize(("value", "zone", "instant"), ZONES)
def test_every_way_to_write_an_instant(
    value: object, zone: str | None, instant: datetime, duckdb_engine: Engine, tmp_path: Path
) -> None:
    assert read_moment(value, zone, duckdb_engine, tmp_path) == instant


@pytest.mark.spark
def test_every_way_to_write_an_instant_on_spark(tmp_path: Path) -> None:
    from tests.conftest import open_test_engine

    engine = open_test_engine("spark")
    try:
        for value, zone, instant in ZONES:
            assert read_moment(value, zone, engine, tmp_path) == instant, value
    finally:
        engine.close()


def read_moment(value: object, zone: str | None, engine: Engine, directory: Path) -> datetime:
    write(directory / "impressions.parquet", [{**IMPRESSION, "timestamp": value}])
    write(directory / "conversions.parquet", [CONVERSION])
    events = read_events(spec_of(directory, timezone=zone), engine)
    ((micros,),) = engine.rows("moment", f"SELECT time_us FROM {events.impressions}")
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
