"""Events in Delta, Iceberg and PostgreSQL: the same credits as from files, no row that stops the
others, and clear words for tables that cannot be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from adsbpc import Campaign
from adsbpc.engines.outer_tables import OuterTable
from adsbpc.errors import SourceError
from tests.campaign.files import edit, write_campaign
from tests.cli.program import adsbpc

SOURCES = ("impressions", "conversions")
Put = Callable[[Path, str, pa.Table], str]


def put_delta(folder: Path, name: str, rows: pa.Table) -> str:
    """In two commits, in folders by advertiser."""
    for part in (rows.slice(0, 20), rows.slice(20)):
        write_deltalake(folder / name, part, mode="append", partition_by=["advertiser_id"])
    return f"delta:{name}"


def put_iceberg(folder: Path, name: str, rows: pa.Table) -> str:
    """With a column that was renamed after the first rows were written."""
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace_if_not_exists("events")
    old = rows.rename_columns(["person" if n == "user_id" else n for n in rows.column_names])
    table = catalog.create_table(f"events.{name}", schema=old.schema)
    table.append(old.slice(0, 20))
    with table.update_schema() as update:
        update.rename_column("person", "user_id")
    table.append(rows.slice(20))
    return f"iceberg:{Path(table.metadata_location.removeprefix('file://')).relative_to(folder)}"


@pytest.fixture
def put_postgresql(postgresql_database: str) -> Put:
    def put(_folder: Path, name: str, rows: pa.Table) -> str:
        types = {"timestamp": "timestamptz", "value": "numeric(40, 4)"}
        listed = ", ".join(f'"{each}" {types.get(each, "text")}' for each in rows.column_names)
        marks = ", ".join("%s" for _ in rows.column_names)
        with psycopg.connect(postgresql_database, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS events")
            connection.execute(f'CREATE TABLE events."{name} of ads" ({listed})')
            with connection.cursor() as cursor:
                cursor.executemany(
                    f'INSERT INTO events."{name} of ads" VALUES ({marks})',
                    [tuple(row.values()) for row in rows.to_pylist()],
                )
        return f'{postgresql_database}#events.\\"{name} of ads\\"'

    return put


def credits_of(file: Path, name: str) -> list[tuple[Any, ...]]:
    done = adsbpc("attribute", file, "--out", name, cwd=file.parent)
    assert done.returncode == 0, done.stderr
    return sorted(tuple(row.values()) for row in pq.read_table(file.parent / name).to_pylist())


def move(file: Path, put: Put) -> None:
    for source in SOURCES:
        path = file.parent / f"{source}.parquet"
        edit(file, f'"{source}.parquet"', f'"{put(file.parent, source, pq.read_table(path))}"')
        path.unlink()


@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgresql"])
def test_tables_give_the_same_credits_as_files(
    kind: str, tmp_path: Path, put_postgresql: Put
) -> None:
    file = write_campaign(tmp_path)
    before = credits_of(file, "files.parquet")
    assert before
    move(file, {"delta": put_delta, "iceberg": put_iceberg, "postgresql": put_postgresql}[kind])
    assert credits_of(file, "tables.parquet") == before
    # Whoever asks the doctor sees the columns that are there, and no password.
    done = adsbpc("doctor", file, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "advertiser_id" in done.stdout
    released = Campaign.load(file).release()
    assert len(released) == 5


@pytest.mark.spark
def test_tables_on_spark(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    before = credits_of(file, "files.parquet")
    move(file, put_delta)
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    edit(file, "threads = 1", '"spark.master" = "local[1]"')
    assert credits_of(file, "tables.parquet") == before


def test_what_a_file_cannot_hold_is_set_aside(tmp_path: Path, postgresql_database: str) -> None:
    """An infinite moment or a number beyond all bounds is one row's, and stops no other."""
    file = write_campaign(tmp_path, slots=2)
    edit(file, 'slot = "1d"', 'slot = "1d"\nmetric = "value"\nvalue_cap = 50.0')
    with psycopg.connect(postgresql_database, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE conversions (user_id uuid, advertiser_id varchar(10),"
            ' "timestamp" timestamptz, value numeric)'
        )
        connection.execute("""INSERT INTO conversions VALUES
            ('00000000-0000-0000-0000-000000000001', 'Ad-1', '2026-03-01 10:00+00', 12.5),
            ('00000000-0000-0000-0000-000000000002', 'Ad-1', 'infinity', 12.5),
            ('00000000-0000-0000-0000-000000000005', 'Ad-1', '294276-12-31 10:00+00', 12.5),
            ('00000000-0000-0000-0000-000000000006', 'Ad-1', '4713-01-01 10:00+00 BC', 12.5),
            ('00000000-0000-0000-0000-000000000003', 'Ad-1', '2026-03-01 10:00+00', 1e400),
            ('00000000-0000-0000-0000-000000000004', 'Ad-1', '2026-03-01 10:00+00', 'NaN')""")
    edit(file, '"conversions.parquet"', f'"{postgresql_database}#conversions"')
    done = adsbpc("release", file, "--dry-run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["usable"]["conversions"] == 1
    assert sum(each["rows"] for each in seen["quarantined"]) == 5


def refused(location: str, folder: Path) -> str:
    file = write_campaign(folder / "campaign")
    edit(file, '"conversions.parquet"', f'"{location}"')
    done = adsbpc("release", file, cwd=file.parent)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not (file.parent / "ledger.sqlite").exists(), "something was charged"
    return done.stderr


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("delta:missing", "pip install|cannot be read"),
        ("iceberg:missing/metadata.json", "cannot be read"),
        ("iceberg:nowhere.events.impressions", "cannot be read"),
        ("postgresql://ada:secret@127.0.0.1:1/events#t", "postgresql://ada@127.0.0.1:1/events#t"),
        ("postgresql://ada:secret@127.0.0.1:1/events", "postgresql://host/database#schema.table"),
    ],
)
def test_tables_that_are_not_there(location: str, told: str, tmp_path: Path) -> None:
    said = refused(location, tmp_path)
    assert any(each in said for each in told.split("|"))
    assert "secret" not in said


def test_a_table_that_the_database_lacks(tmp_path: Path, postgresql_database: str) -> None:
    said = refused(f"{postgresql_database}#public.missing", tmp_path)
    assert "no table 'public.missing' in the database" in said
    assert "Correct the name after #" in said


def rows() -> pa.Table:
    return pa.table({"user_id": ["u1", "u2"], "advertiser_id": ["Ad-1", "Ad-1"]})


def test_a_delta_table_that_lost_a_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "table", rows())
    next((tmp_path / "table").glob("*.parquet")).unlink()
    table = OuterTable.at("delta:table", tmp_path)
    assert table is not None
    with (
        pytest.raises(SourceError, match=r"delta:table: found a table of delta"),
        table.explained(),
    ):
        list(table.open().batches(["user_id"]))


def test_a_delta_table_with_deletions_is_not_read_as_if_they_were_none(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "table", rows())
    protocol = {
        "protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"],
        }
    }  # fmt: skip
    log = tmp_path / "table" / "_delta_log" / f"{1:020}.json"
    log.write_text(json.dumps(protocol) + "\n")
    table = OuterTable.at("delta:table", tmp_path)
    assert table is not None
    with pytest.raises(SourceError, match="deletion"):
        table.open()


def test_an_iceberg_table_that_lost_a_file(tmp_path: Path) -> None:
    location = put_iceberg(tmp_path, "conversions", pa.concat_tables([rows()] * 15))
    table = OuterTable.at(location, tmp_path)
    assert table is not None
    for file in tmp_path.glob("**/data/**/*.parquet"):
        file.unlink()
    with pytest.raises(SourceError, match="cannot be read"), table.explained():
        list(table.open().batches(["user_id"]))


def test_a_missing_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    table = OuterTable.at("delta:table", tmp_path)
    assert table is not None
    with pytest.raises(SourceError, match=r"pip install 'adsbpc\[delta\]'"):
        table.open()


def test_copies_go_with_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = tmp_path / "temporary"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    file = write_campaign(tmp_path / "campaign")
    move(file, put_delta)
    Campaign.load(file).release(1)
    assert list(copies.iterdir()) == []
