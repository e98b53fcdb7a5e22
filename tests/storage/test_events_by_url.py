"""Events of a store are those of files: whole files, patterns and folders, Parquet and CSV."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign.data_path import attribute
from adsbpc.engines import open_engine
from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.errors import SourceError, SpecError
from adsbpc.model import load_spec
from adsbpc.storage import RemotePath
from tests.campaign.files import edit, write_campaign
from tests.storage.campaigns import put_events
from tests.storage.s3 import BUCKET, S3Server


def credits_of(file: Path) -> list[tuple[Any, ...]]:
    spec, engine = load_spec(file), open_engine("duckdb")
    try:
        credits = attribute(spec, engine).credits
        sql = f"SELECT user_id, slot, publisher_id, credit_units FROM {credits} ORDER BY ALL"
        return engine.rows("credits", sql)
    finally:
        engine.close()


@pytest.mark.parametrize("location", ["{0}/{1}/*/*.parquet", "{0}/{1}", "{0}/{1}/"])
def test_patterns_and_folders(any_store: RemotePath, tmp_path: Path, location: str) -> None:
    file = write_campaign(tmp_path)
    expected = credits_of(file)
    assert len(expected) > 40
    put_events(file, any_store)
    for name in ("impressions", "conversions"):
        edit(file, f"{any_store}/{name}/*/*.parquet", location.format(any_store, name))
    assert credits_of(file) == expected


def test_folders_are_columns(any_store: RemotePath, tmp_path: Path) -> None:
    """`publisher_id=P-1/rows.parquet` has no such column in the file."""
    file = write_campaign(tmp_path)
    expected = credits_of(file)
    rows = pq.read_table(tmp_path / "impressions.parquet")
    for publisher in ("P-1", "P-2", "X"):
        own = rows.filter(pa.compute.equal(rows["publisher_id"], publisher))
        pq.write_table(own.drop_columns("publisher_id"), tmp_path / "part.parquet")
        folder = any_store / "impressions" / f"publisher_id={publisher}"
        (folder / "rows.parquet").upload(tmp_path / "part.parquet")
    edit(file, '"impressions.parquet"', f'"{any_store}/impressions"')
    assert credits_of(file) == expected


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_csv_files(any_store: RemotePath, tmp_path: Path, ending: str) -> None:
    file = write_campaign(tmp_path)
    expected = credits_of(file)
    for name in ("impressions", "conversions"):
        rows, local = pq.read_table(tmp_path / f"{name}.parquet"), tmp_path / f"{name}{ending}"
        moments = pa.compute.strftime(rows["timestamp"], "%Y-%m-%dT%H:%M:%SZ")
        place = rows.schema.get_field_index("timestamp")
        pa.csv.write_csv(rows.set_column(place, "timestamp", moments), local)
        if ending.endswith(".gz"):
            local.write_bytes(gzip.compress(local.read_bytes()))
        (any_store / local.name).upload(local)
        edit(file, f'"{name}.parquet"', f'"{any_store}/{name}{ending}"')
    assert len(credits_of(file)) == len(expected)


def test_values_that_stop_a_scan_are_set_aside(any_store: RemotePath, tmp_path: Path) -> None:
    """A row with bytes that are no text goes to quarantine, as those of local files do."""
    file = write_campaign(tmp_path)
    expected = credits_of(file)
    rows = pq.read_table(tmp_path / "conversions.parquet")
    bad = pa.array([b"\xff\xfe"]).view(pa.string())
    spoilt = pa.concat_tables([rows, rows.slice(0, 1).set_column(0, "user_id", bad)])
    pq.write_table(spoilt, tmp_path / "spoilt.parquet")
    (any_store / "conversions.parquet").upload(tmp_path / "spoilt.parquet")
    edit(file, '"conversions.parquet"', f'"{any_store}/conversions.parquet"')
    assert credits_of(file) == expected
    assert sum(Campaign.load(file).rehearse(1).quarantined.values()) == 1


def test_only_what_a_filter_needs_is_read(s3: S3Server, store: RemotePath, tmp_path: Path) -> None:
    """A range of one row group of twenty: less than a fifth of the file."""
    count = 200_000
    columns = {
        "id": pa.array(range(count)),
        "text": [f"{k * 7919 % count:x}" for k in range(count)],
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=count // 20)
    (store / "rows.parquet").upload(tmp_path / "rows.parquet")
    engine = DuckDBEngine({"threads": 2})
    try:
        url = [f"{store}/rows.parquet"]
        rows = engine.read_files("rows", "parquet", url, None, ["id", "text"])
        s3.sent = 0
        sql = f"SELECT count(*), min(text) FROM {rows} WHERE id BETWEEN 100000 AND 100100"
        ((found, _),) = engine.rows("some", sql)
    finally:
        engine.close()
    assert found == 101
    assert 0 < s3.sent < (tmp_path / "rows.parquet").stat().st_size / 5


def test_files_that_arrive_between_slots_are_read(any_store: RemotePath, tmp_path: Path) -> None:
    engine = DuckDBEngine()
    try:
        for number in (1, 2):
            pq.write_table(pa.table({"id": [number]}), tmp_path / "part.parquet")
            (any_store / f"{number}.parquet").upload(tmp_path / "part.parquet")
            files, base = engine.listed([f"{any_store}/*.parquet"], None)
            rows = engine.read_files("rows", "parquet", files, base, ["id"])
            assert engine.rows("count", f"SELECT count(*) FROM {rows}") == [(number,)]
    finally:
        engine.close()


def test_what_was_described_is_what_is_opened(any_store: RemotePath, tmp_path: Path) -> None:
    engine = DuckDBEngine()
    try:
        (any_store / "1.parquet").create(b"")
        pattern = [f"{any_store}/*.parquet"]
        described = engine.listed(pattern, None)
        (any_store / "2.parquet").create(b"")
        assert engine.listed(pattern, None, again=True) == described
        assert len(engine.listed(pattern, None)[0]) == 2
    finally:
        engine.close()


def test_sources_that_are_not_there(s3: S3Server, store: RemotePath, tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    cases = {
        f"{store}/nothing/*.parquet": "no file",
        f"{store}/nothing": "no file",
        f"{store}/nothing.parquet": "No files found",
        f"{store}/nothing.csv": "no such file",
        "s3://nobodys/*.parquet": "no such bucket",
    }
    before = '"impressions.parquet"'
    for location, told in cases.items():
        edit(file, before, f'"{location}"')
        before = f'"{location}"'
        with pytest.raises(SourceError, match=told) as refused:
            Campaign.load(file).rehearse(1)
        assert location.rpartition("/")[0] in str(refused.value)
    s3.denied = {"GET"}
    edit(file, before, f'"s3://{BUCKET}/a/*.parquet"')
    with pytest.raises(SourceError, match="permission denied"):
        Campaign.load(file).rehearse(1)


def test_a_password_in_a_source_is_refused(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    edit(file, '"impressions.parquet"', '"s3://key:pa55word@bucket/*.parquet"')
    with pytest.raises(SpecError) as refused:
        Campaign.load(file).rehearse(1)
    assert "pa55word" not in str(refused.value)
    assert "[events] impressions" in str(refused.value)
