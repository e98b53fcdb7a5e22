"""What Spark is told about the size of data, and when a file's schema is read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adsbpc.engines import spark_files
from adsbpc.engines.spark_files import DataSizes, ReadOnce

ADAPTIVE, PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
CODE = "spark.sql.codegen.factoryMode"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of 100 bytes, of which more than 150 are small, and more than 350 large."""
    monkeypatch.setattr(spark_files, "_TINY_BYTES", 150)
    monkeypatch.setattr(spark_files, "_SMALL_BYTES", 350)
    (tmp_path / "rows").write_bytes(b"x" * 100)
    return str(tmp_path / "rows")


def nobody_asks() -> int:
    raise AssertionError("it is a file of this machine")


def of_size(sizes: DataSizes, file: str, size: int) -> dict[str, str]:
    Path(f"{file}-{size}").write_bytes(b"x" * size)
    sizes.add([f"{file}-{size}"], nobody_asks)
    return sizes.changed_settings()


def test_tiny_data_are_planned_at_once_and_in_one_partition(file: str) -> None:
    sizes = DataSizes(2, [])
    changed = sizes.changed_settings()
    assert sizes.are_tiny
    assert (changed[ADAPTIVE], changed[PARTITIONS], changed[CODE]) == ("false", "1", "NO_CODEGEN")
    # The same file again is not more data.
    for _ in range(3):
        sizes.add([file], nobody_asks)
        assert sizes.changed_settings() == {}


def test_data_that_grow_are_planned_as_spark_does(file: str) -> None:
    sizes = DataSizes(2, [])
    sizes.changed_settings()
    sizes.add([file], nobody_asks)
    changed = of_size(sizes, file, 200)
    assert (changed[PARTITIONS], changed[CODE]) == ("2", "FALLBACK")
    assert ADAPTIVE not in changed
    assert not sizes.are_tiny
    assert of_size(sizes, file, 300) == {ADAPTIVE: "true", PARTITIONS: "200"}
    assert sizes.changed_settings() == {}


@pytest.mark.parametrize("source", ["s3://bucket/rows.parquet", "catalog.rows", "."])
def test_what_is_elsewhere_is_as_large_as_spark_says(file: str, source: str) -> None:
    sizes = DataSizes(2, [])
    sizes.changed_settings()
    sizes.add([source, file], lambda: 40)
    assert sizes.changed_settings() == {}
    # What nobody knows the size of, is as large as Spark can say.
    sizes.add([source], lambda: 2**63 - 1)
    changed = sizes.changed_settings()
    assert (changed[ADAPTIVE], changed[PARTITIONS], changed[CODE]) == ("true", "200", "FALLBACK")
    assert not sizes.are_tiny


def test_what_somebody_chose_stays() -> None:
    sizes = DataSizes(2, [PARTITIONS, "spark.master"])
    assert PARTITIONS not in sizes.changed_settings()
    sizes.add(["s3://bucket/rows.parquet"], lambda: 2**63 - 1)
    assert sizes.changed_settings()[ADAPTIVE] == "true"


def test_a_file_is_read_again_when_it_was_written_again(file: str) -> None:
    found: ReadOnce[int] = ReadOnce()
    read: list[int] = []

    def once_more() -> int:
        read.append(1)
        return len(read)

    assert [found.of(file, once_more) for _ in range(3)] == [1, 1, 1]
    # What is read with other folders is something else.
    assert found.of(file, once_more, "base") == 2
    replaced = Path(f"{file}.new")
    replaced.write_bytes(b"y" * 100)
    os.replace(replaced, file)
    assert found.of(file, once_more) == 3
    # Of what this machine does not see nothing is kept.
    assert [found.of("s3://bucket/rows.parquet", once_more) for _ in range(2)] == [4, 5]
