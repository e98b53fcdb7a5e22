"""What Spark is told about the size of data, and when a file's schema is read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adsbpc.engines import spark_files
from adsbpc.engines.spark_files import DataSizes, Footers

ADAPTIVE, PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of 100 bytes, of which more than 150 are large."""
    monkeypatch.setattr(spark_files, "_SMALL_BYTES", 150)
    (tmp_path / "rows").write_bytes(b"x" * 100)
    return str(tmp_path / "rows")


def test_small_data_are_planned_at_once_and_in_few_partitions(file: str) -> None:
    sizes = DataSizes(2, [])
    assert sizes.changed_settings() == {ADAPTIVE: "false", PARTITIONS: "2"}
    # The same file again is not more data.
    for _ in range(3):
        sizes.add([file])
        assert sizes.changed_settings() == {}


def test_data_that_grow_are_planned_as_spark_does(file: str) -> None:
    sizes = DataSizes(2, [])
    sizes.changed_settings()
    sizes.add([file])
    other = Path(f"{file}-more")
    other.write_bytes(b"x" * 100)
    sizes.add([str(other)])
    assert sizes.changed_settings() == {ADAPTIVE: "true", PARTITIONS: "200"}
    assert sizes.changed_settings() == {}


@pytest.mark.parametrize("source", ["s3://bucket/rows.parquet", "catalog.rows", "."])
def test_what_has_no_known_size_is_large(source: str) -> None:
    sizes = DataSizes(2, [])
    sizes.changed_settings()
    sizes.add([source])
    assert sizes.changed_settings() == {ADAPTIVE: "true", PARTITIONS: "200"}


def test_what_somebody_chose_stays(file: str) -> None:
    assert DataSizes(None, []).changed_settings() == {}
    sizes = DataSizes(2, [PARTITIONS, "spark.master"])
    assert sizes.changed_settings() == {ADAPTIVE: "false"}
    sizes.add(["s3://bucket/rows.parquet"])
    assert sizes.changed_settings() == {ADAPTIVE: "true"}


def test_milliseconds_are_read_again_when_a_file_was_written_again(file: str) -> None:
    footers, read = Footers(), []

    def found() -> frozenset[str]:
        read.append(1)
        return frozenset({"timestamp"})

    for _ in range(3):
        assert footers.milliseconds(file, found) == {"timestamp"}
    assert len(read) == 1
    replaced = Path(f"{file}.new")
    replaced.write_bytes(b"y" * 100)
    os.replace(replaced, file)
    footers.milliseconds(file, found)
    assert len(read) == 2
    for _ in range(2):
        footers.milliseconds("s3://bucket/rows.parquet", found)
    assert len(read) == 4
