"""A bad file or schema stops the run: the message names the file, the column, what was found,
what was expected and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adsbpc.engines import Engine
from adsbpc.errors import EngineError, SourceError, SpecError
from adsbpc.events import read_events
from adsbpc.model import CampaignSpec
from tests.events.files import CONVERSION, IMPRESSION, spec_of, write, write_both


def refusal(engine: Engine, spec: CampaignSpec) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read_events(spec, engine)
    error = caught.value
    assert (
        str(error)
        == f"{error.where}: found {error.found}; expected {error.expected}. {error.to_do}"
    )
    return error


def lacking(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


@pytest.mark.parametrize("column", sorted(IMPRESSION))
def test_a_missing_impression_column(column: str, engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path, impressions=[lacking(IMPRESSION, column)])
    error = refusal(engine, spec_of(tmp_path))
    assert error.where == f"{tmp_path}/impressions.parquet, column {column!r}"
    assert error.found.startswith("only the columns ")
    assert error.expected == f"a column {column!r} for the field {column}"
    assert f"[events.impression_columns] {column} = ..." in error.to_do


def test_a_missing_kind_can_be_declared(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path, impressions=[lacking(IMPRESSION, "kind")])
    assert 'impression_kind = "click"' in refusal(duckdb_engine, spec_of(tmp_path)).to_do
    events = read_events(spec_of(tmp_path, impression_kind="click"), duckdb_engine)
    assert duckdb_engine.rows("kind", f"SELECT is_click FROM {events.impressions}") == [(True,)]


@pytest.mark.parametrize("column", sorted(CONVERSION))
def test_a_missing_conversion_column(column: str, duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path, conversions=[lacking(CONVERSION, column)])
    error = refusal(duckdb_engine, spec_of(tmp_path))
    assert error.where == f"{tmp_path}/conversions.parquet, column {column!r}"


def test_a_misspelt_column_gets_a_hint(duckdb_engine: Engine, tmp_path: Path) -> None:
    row = {**lacking(IMPRESSION, "user_id"), "userid": "u1"}
    write_both(tmp_path, impressions=[row])
    assert 'Did you mean "userid"?' in refusal(duckdb_engine, spec_of(tmp_path)).to_do


def test_a_column_that_holds_another_field_is_no_hint(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    """user_id is the nearest name to advertiser_id, and not what is meant by it."""
    write_both(tmp_path, conversions=[lacking(CONVERSION, "advertiser_id")])
    assert "Did you mean" not in refusal(duckdb_engine, spec_of(tmp_path)).to_do


def test_a_mapped_optional_column_must_be_there(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    error = refusal(duckdb_engine, spec_of(tmp_path, conversion_columns={"event_id": "order"}))
    assert "column 'order'" in error.where


def test_the_metric_value_needs_a_value_column(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    spec = spec_of(tmp_path, campaign={"metric": "value", "value_cap": 5})
    assert "column 'value'" in refusal(duckdb_engine, spec).where


WRONG_TYPES = [
    ("impressions", "user_id", 1.5, "DOUBLE", "double", "text or an integer"),
    ("impressions", "publisher_id", True, "BOOLEAN", "boolean", "text or an integer"),
    ("impressions", "kind", 1, "BIGINT", "bigint", "text"),
    ("impressions", "timestamp", 1.0, "DOUBLE", "double", "a timestamp or"),
    ("conversions", "value", "9.99", "VARCHAR", "string", "a number or an integer"),
    ("conversions", "advertiser_id", 2.0, "DOUBLE", "double", "text or an integer"),
]


@pytest.mark.parametrize(("table", "column", "value", "duckdb", "spark", "expected"), WRONG_TYPES)
def test_a_column_of_the_wrong_type(
    table: str, column: str, value: Any, duckdb: str, spark: str, expected: str,
    engine: Engine, tmp_path: Path,
) -> None:  # fmt: skip
    write_both(
        tmp_path,
        impressions=[{**IMPRESSION, **({column: value} if table == "impressions" else {})}],
        conversions=[{**CONVERSION, **({column: value} if table == "conversions" else {})}],
    )
    counted = {"metric": "value", "value_cap": 5} if column == "value" else {}
    error = refusal(engine, spec_of(tmp_path, campaign=counted))
    assert error.where == f"{tmp_path}/{table}.parquet, column {column!r}"
    assert error.found == f"type {duckdb if engine.name == 'duckdb' else spark}"
    assert error.expected.startswith(expected)
    assert error.to_do == "Convert the column, or map another one in the campaign file."


def test_integer_timestamps_must_be_declared(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path, impressions=[{**IMPRESSION, "timestamp": 1_772_449_200}])
    error = refusal(engine, spec_of(tmp_path))
    assert "epoch_seconds" in error.to_do
    events = read_events(spec_of(tmp_path, timestamps="epoch_seconds"), engine)
    found = engine.rows("time", f"SELECT time_us FROM {events.impressions}")
    assert found == [(1_772_449_200_000_000,)]


@pytest.mark.every_change
def test_files_with_different_types(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    write(tmp_path / "i" / "1.parquet", [IMPRESSION])
    write(tmp_path / "i" / "2.parquet", [{**IMPRESSION, "publisher_id": 7}])
    error = refusal(engine, spec_of(tmp_path, impressions="i/*.parquet"))
    assert error.where == f"{tmp_path}/i/2.parquet, column 'publisher_id'"
    assert error.expected.endswith("as in the first file")


def test_an_optional_column_in_some_files_only(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    write(tmp_path / "c" / "1.parquet", [{**CONVERSION, "event_id": "x"}])
    write(tmp_path / "c" / "2.parquet", [CONVERSION])
    error = refusal(engine, spec_of(tmp_path, conversions="c/*.parquet"))
    assert error.where == f"{tmp_path}/c/2.parquet, column 'event_id'"
    assert error.expected == f"it in every file or in none, and {tmp_path}/c/1.parquet has it"


def test_no_such_file(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    error = refusal(engine, spec_of(tmp_path, conversions="late/*.parquet"))
    assert (error.where, error.found) == (f"{tmp_path}/late/*.parquet", "no file")
    assert error.to_do == "Check [events] conversions in the campaign file."


@pytest.mark.every_change
def test_no_such_table(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    with pytest.raises((SourceError, EngineError), match="no_such_table"):
        read_events(spec_of(tmp_path, conversions="no_such_table"), engine)


def test_a_file_that_is_no_parquet(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / "impressions.parquet").write_bytes(b"PAR1 this is not a Parquet file")
    error = refusal(engine, spec_of(tmp_path))
    assert error.where == f"{tmp_path}/impressions.parquet"
    assert "cannot open" in error.found


@pytest.mark.every_change
def test_a_file_cut_short(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    whole = (tmp_path / "conversions.parquet").read_bytes()
    (tmp_path / "conversions.parquet").write_bytes(whole[: len(whole) // 2])
    assert refusal(engine, spec_of(tmp_path)).where == f"{tmp_path}/conversions.parquet"


def test_an_unknown_kind_of_file(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    error = refusal(duckdb_engine, spec_of(tmp_path, impressions="notes.txt"))
    assert error.expected == "names that end in .parquet, .csv or .csv.gz"


def test_parquet_and_csv_together(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / "more.csv").write_text("user_id\n")
    error = refusal(duckdb_engine, spec_of(tmp_path, impressions="*.*"))
    assert error.found == "Parquet and CSV files together"


def test_names_that_an_engine_would_take_for_patterns(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    write_both(tmp_path)
    write(tmp_path / "i[1].parquet", [IMPRESSION])
    error = refusal(duckdb_engine, spec_of(tmp_path, impressions="i*.parquet"))
    assert error.found == "one of * ? [ in its path"


@pytest.mark.parametrize("slot", [0, -1, 32])
def test_no_such_slot(slot: int, duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    with pytest.raises(SpecError, match=f"slot = {slot}: expected a number from 1 to 31"):
        read_events(spec_of(tmp_path), duckdb_engine, slot)
