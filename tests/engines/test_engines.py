"""The adapters: vocabulary, quoting, errors that show the SQL, writing whole files or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from adsbpc.engines import Engine, open_engine, quote_name, quote_text
from adsbpc.engines.spark_session import MISSING_JAVA, find_java
from adsbpc.errors import AdsbpcError, EngineError, SpecError
from tests.conftest import open_test_engine

NASTY = [
    "it's",
    "back\\slash",
    'double "quote"',
    "`tick`",
    "new\nline",
    "ünï 漢字",
    "a;b--c",
    "%s{x}",
]


@pytest.mark.parametrize("wrong", [1.5, 2**63, None])
def test_numbers_are_whole_or_refused(wrong: Any, engine: Engine) -> None:
    """They are limits and multipliers of budgets: nothing is rounded on the way."""
    kept = engine.numbers("kept", {"n": [2**63 - 1, -(2**63), 0]})
    assert sorted(engine.rows("kept", f"SELECT n FROM {kept}")) == [(-(2**63),), (0,), (2**63 - 1,)]
    with pytest.raises((TypeError, OverflowError)):
        engine.numbers("wrong", {"n": [1, wrong]})


@pytest.mark.every_change
def test_the_vocabulary(engine: Engine) -> None:
    found = engine.rows(
        "vocabulary",
        "SELECT whole_div(7, 2), whole_div(0, 5), whole_div(9007199254740993, 1),"
        " CAST(wide(9223372036854775807) * wide(4) AS STRING),"
        " micros(CAST('2026-03-01 00:00:00.5' AS TIMESTAMP)),"
        " fingerprint('a', 'b') = fingerprint('a', 'b'),"
        " fingerprint('a', 'b') = fingerprint('b', 'a')",
    )
    assert found == [
        (3, 0, 9007199254740993, "36893488147419103228", 1772323200500000, True, False)
    ]


@pytest.mark.parametrize("text", NASTY)
def test_texts_and_names_survive_quoting(text: str, duckdb_engine: Engine) -> None:
    sql = f"SELECT {quote_text(text)} AS {quote_name(text)}"
    assert duckdb_engine.rows("quoting", sql) == [(text,)]


@pytest.mark.every_change
@pytest.mark.spark
def test_texts_and_names_survive_quoting_on_spark() -> None:
    engine = open_test_engine("spark")
    try:
        for text in NASTY:
            sql = f"SELECT {quote_text(text)} AS {quote_name(text)}"
            assert engine.rows("quoting", sql) == [(text,)]
    finally:
        engine.close()


@pytest.mark.every_change
def test_a_failing_step_shows_its_name_and_sql(engine: Engine) -> None:
    with pytest.raises(EngineError) as caught:
        engine.rows("count the stars", "SELECT count(*) FROM no_such_sky")
    assert caught.value.step == "count the stars"
    assert "SELECT count(*) FROM no_such_sky" in str(caught.value)
    assert "no_such_sky" in caught.value.cause


def test_a_failure_at_run_time_is_told_too(engine: Engine) -> None:
    """At the latest by the step that asks for the rows."""

    def ask() -> None:
        doomed = engine.table("doomed", "SELECT CAST('x' || CAST(1 AS STRING) AS BIGINT) AS n")
        engine.rows("ask", f"SELECT n FROM {doomed}")

    with pytest.raises(EngineError, match="doomed"):
        ask()


def test_tables_get_unique_keys_that_stay(engine: Engine) -> None:
    keyed = engine.table(
        "keyed", "SELECT * FROM (VALUES ('a'), ('b'), ('c')) AS v(name)", row_key="k"
    )
    first = engine.rows("keys", f"SELECT k, name FROM {keyed} ORDER BY name")
    assert len({key for key, _ in first}) == 3
    assert first == engine.rows("keys", f"SELECT k, name FROM {keyed} ORDER BY name")
    engine.drop(keyed)
    with pytest.raises(EngineError):
        engine.rows("keys", f"SELECT * FROM {keyed}")


def test_rows_of_one_name_do_not_meet_and_are_gone_at_the_end(engine: Engine) -> None:
    outer = engine.table("made", "SELECT 1 AS n")
    with engine.scratch():
        inner = engine.numbers("made", {"n": [2]})
        both = f"SELECT (SELECT n FROM {outer}), (SELECT n FROM {inner})"
        assert engine.rows("both", both) == [(1, 2)]
        with pytest.raises(EngineError, match="doomed"):
            engine.table("doomed", "SELECT * FROM nowhere")
    assert engine.rows("outer", f"SELECT n FROM {outer}") == [(1,)]
    with pytest.raises(EngineError):
        engine.rows("inner", f"SELECT n FROM {inner}")


def test_parquet_is_written_whole_or_not_at_all(engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    engine.write_parquet("write", "SELECT 1 AS one", target)
    with pytest.raises(EngineError):
        engine.write_parquet("write", "SELECT CAST('x' || 'y' AS BIGINT) AS one", target)
    assert pq.read_table(target).to_pylist() == [{"one": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.every_change
@pytest.mark.parametrize("writer", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_every_engine_reads_what_another_has_written(
    writer: str, engine: Engine, tmp_path: Path
) -> None:
    """A campaign may go on with another engine: books are read as they were written, in whatever
    encoding that was; here in several pages of numbers that jump, and of names."""
    target = tmp_path / "written.parquet"
    jumping = "CAST(k * 48271 % 2147483647 * (k % 3 - 1) * 4096 AS BIGINT)"
    writing = open_test_engine(writer)
    numbers = writing.numbers("numbers", {"k": range(40_000)})
    writing.write_parquet(
        "write",
        f"SELECT k, {jumping} AS cell, CASE WHEN k % 7 > 0 THEN CAST(k AS STRING) END AS name,"
        " CAST(k AS DOUBLE) / 7 AS share FROM " + str(numbers),
        target,
    )
    writing.close()
    columns = ["k", "cell", "name", "share"]
    read = engine.read_files("read", "parquet", [str(target)], None, columns)
    ((rows, named, different),) = engine.rows(
        "compare",
        f"""SELECT count(*), count(name), sum(CASE WHEN cell = {jumping}
  AND coalesce(name, 'none') = CASE WHEN k % 7 > 0 THEN CAST(k AS STRING) ELSE 'none' END
  AND share = CAST(k AS DOUBLE) / 7 THEN 0 ELSE 1 END) FROM {read}""",
    )
    assert (rows, named, different) == (40_000, 40_000 - 5_715, 0)


def test_wrong_duckdb_options_are_refused() -> None:
    with pytest.raises(SpecError, match=r"\[engine.options\].*memory_limit"):
        open_engine("duckdb", {"memory_limitt": "1GB"})


def test_duckdb_respects_a_memory_limit() -> None:
    engine = open_engine("duckdb", {"memory_limit": "200MB", "threads": 1})
    try:
        ((limit,),) = engine.rows("limit", "SELECT current_setting('memory_limit')")
        assert limit == "190.7 MiB"
        # More groups than fit: it must spill and still end.
        ((groups,),) = engine.rows(
            "spill",
            "SELECT count(*) FROM (SELECT i % 3000000 AS k, max(md5(CAST(i AS VARCHAR))) AS m"
            " FROM range(6000000) AS r(i) GROUP BY k) AS grouped",
        )
        assert groups == 3_000_000
    finally:
        engine.close()


def test_spark_without_java_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() is None
    with pytest.raises(AdsbpcError, match="Java 17") as caught:
        open_engine("spark")
    assert str(caught.value) == MISSING_JAVA


def test_rows_are_joined_before_they_are_summed(duckdb_engine: Engine) -> None:
    """Unless options say otherwise. DuckDB plans so only where tables are larger than in tests."""
    setting = "SELECT current_setting('disabled_optimizers')"
    assert duckdb_engine.rows("planning", setting) == [("partial_aggregate_pushdown",)]
    engine = open_engine("duckdb", {"disabled_optimizers": "top_n"})
    assert engine.rows("planning", setting) == [("top_n",)]
    engine.close()
