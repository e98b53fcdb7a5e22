"""One person's row, whatever its bytes, changes nothing of anybody else, and stops nobody."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.engines import UNREADABLE, CsvDialect, Engine
from adsbpc.engines.csv_dialect import LONGEST_LINE
from adsbpc.engines.csv_lines import header_of, rows_of
from adsbpc.events import read_events
from tests.conftest import open_test_engine
from tests.effort import examples
from tests.events import hostile
from tests.events.files import counts, spec_of

TABLES = ("impressions", "conversions")
CSV = {"impressions": "impressions.csv", "conversions": "conversions.csv"}
VALUED = {"campaign": {"publishers": ["P-0", "P-1"], "metric": "value", "value_cap": 20}}

places = st.integers(0, 40)
csv_rows = st.fixed_dictionaries(
    {
        table: st.lists(st.tuples(places, hostile.csv_lines(table)), min_size=1, max_size=4)
        for table in TABLES
    }
)


@given(lines=csv_rows)
@settings(max_examples=examples(8, 120))
def test_csv_on_duckdb(lines: dict[str, list[tuple[int, bytes]]], tmp_path: Path) -> None:
    assert_nobody_else_changes_in_csv("duckdb", lines, tmp_path)


@pytest.mark.spark
def test_csv_on_spark(tmp_path: Path) -> None:
    """All of them at once: a session of Spark takes seconds for each example."""
    lines = {table: list(enumerate(hostile.all_csv_lines(table))) for table in TABLES}
    assert_nobody_else_changes_in_csv("spark", lines, tmp_path)


def assert_nobody_else_changes_in_csv(
    name: str, lines: dict[str, list[tuple[int, bytes]]], directory: Path
) -> None:
    engine = open_test_engine(name)
    try:
        spec = spec_of(directory, **CSV, **VALUED)
        hostile.write_csv(directory, {})
        without = hostile.contributions_of_others(engine, spec)
        assert len(without) == 2 * len(hostile.OTHERS), "nobody contributes: this tests nothing"
        hostile.write_csv(directory, lines)
        assert hostile.contributions_of_others(engine, spec) == without
    finally:
        engine.close()


parquet_rows = st.fixed_dictionaries(
    {
        table: st.lists(
            st.tuples(
                places,
                st.tuples(
                    st.tuples(
                        st.one_of(st.just(b"mallory"), hostile.HOSTILE_TEXTS),
                        *[hostile.HOSTILE_TEXTS] * 2,
                        st.sampled_from([b"5", b"nan", b"inf", b"-1"])
                        if table == "conversions"
                        else hostile.HOSTILE_TEXTS,
                        *[hostile.HOSTILE_TEXTS] * (3 if table == "impressions" else 2),
                    ),
                    hostile.HOSTILE_MOMENTS,
                ),
            ),
            min_size=1,
            max_size=4,
        )
        for table in TABLES
    }
)
units = st.sampled_from(["ms", "us", "ns"])


@given(unit=units, zone=st.sampled_from([None, "UTC"]), rows=parquet_rows)
@settings(max_examples=examples(8, 120))
def test_parquet_on_duckdb(unit: str, zone: str | None, rows: Any, tmp_path: Path) -> None:
    assert_nobody_else_changes_in_parquet("duckdb", unit, zone, rows, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("unit", "zone"),
    [("ms", "UTC"), ("us", "UTC"), ("ms", None)],
)
def test_parquet_on_spark(unit: str, zone: str | None, tmp_path: Path) -> None:
    moments = [2**63 - 1, -(2**63), 2**62, -(2**62), 0, 2**53, -(2**53)]
    rows: dict[str, list[tuple[int, Any]]] = {}
    for table in TABLES:
        whole = [field.encode() for field in hostile.TEMPLATES[table]]
        of_value = 3 if table == "conversions" else -1
        rows[table] = [
            (k, ([*whole[:place], piece, *whole[place + 1 :]], moments[k % len(moments)]))
            for k, piece in enumerate(hostile.PIECES)
            for place in range(len(whole))
            if place != of_value
        ]
    assert_nobody_else_changes_in_parquet("spark", unit, zone, rows, tmp_path)


def assert_nobody_else_changes_in_parquet(
    name: str, unit: str, zone: str | None, rows: Any, directory: Path
) -> None:
    engine = open_test_engine(name)
    try:
        spec = spec_of(directory, **VALUED)
        hostile.write_parquet(directory, unit, zone, {})
        without = hostile.contributions_of_others(engine, spec)
        assert len(without) == 2 * len(hostile.OTHERS), "nobody contributes: this tests nothing"
        hostile.write_parquet(directory, unit, zone, rows)
        events = read_events(spec, engine)
        assert hostile.contributions_of_others(engine, spec) == without
        # What is told the operator does not stop at such a row either.
        events.quarantined()
        events.write_quarantine(directory / "quarantine.parquet")
    finally:
        engine.close()


@pytest.mark.every_change
def test_a_sign_that_looks_like_a_comment(engine: Engine, tmp_path: Path) -> None:
    """The audit's finding: 200 ids that start with #, one more, and all of them were gone."""
    ids = [f"#{k}" for k in range(200)]
    rows = [f"{user},Ad-1,2026-03-02T12:00:00Z,5,e,".encode() for user in ids]
    (tmp_path / "conversions.csv").write_bytes(
        b"\n".join([hostile.HEADERS["conversions"], *rows, b"#\r,Ad-1,2026-03-02T12:00:00Z,5,e,"])
    )
    (tmp_path / "impressions.csv").write_bytes(hostile.HEADERS["impressions"] + b"\n")
    _, _, conversions = counts(engine, spec_of(tmp_path, **CSV))
    assert conversions == 200


UNREADABLE_LINES = [
    (b'"open,Ad-1,2026-03-02T12:00:00Z,5,e,', "quotes do not match"),
    (b'u9,Ad-1,"x"y,5,e,', "quotes do not match"),
    (b"u9,Ad-1", "another number of fields than the header has"),
    (b"u9,Ad-1,2026-03-02T12:00:00Z,5,e,,", "another number of fields than the header has"),
    (b"\xff,Ad-1,2026-03-02T12:00:00Z,5,e,", "a text is not valid UTF-8"),
    (b"u\0,Ad-1,2026-03-02T12:00:00Z,5,e,", "line holds a NUL or a carriage return"),
    (b"x" * 3_000_000, "line is longer than 1 MiB"),
]


def test_lines_that_cannot_be_read_are_set_aside(engine: Engine, tmp_path: Path) -> None:
    hostile.write_csv(
        tmp_path, {"conversions": [(k, line) for k, (line, _) in enumerate(UNREADABLE_LINES)]}
    )
    events, _, good = counts(engine, spec_of(tmp_path, **CSV))
    assert good == 2 * len(hostile.OTHERS)
    expected = Counter(("conversions", reason) for _, reason in UNREADABLE_LINES)
    assert events.quarantined() == expected


def test_a_declared_dialect(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "conversions.csv").write_text(
        "user_id;advertiser_id;timestamp;note\n'u;1';Ad-1;2026-03-02T12:00:00Z;'it''s'\n"
    )
    (tmp_path / "impressions.csv").write_text(
        "user_id;publisher_id;advertiser_id;timestamp;kind\nu;P-1;Ad-1;2026-03-02T12:00:00Z;view\n"
    )
    spec = spec_of(tmp_path, **CSV, csv={"delimiter": ";", "quote": "'"})
    events, impressions, conversions = counts(engine, spec)
    assert (impressions, conversions, events.quarantined()) == (1, 1, {})
    assert engine.rows("user", f"SELECT user_id FROM {events.conversions}") == [("u;1",)]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"user_id,user_id", "the column 'user_id' more than once"),
        (b"\xff", "a first line that is not valid UTF-8"),
        (b'"user_id', "a first line that cannot be read"),
        (b"user_id\rtimestamp", "a first line with a NUL or a carriage return in it"),
    ],
)
def test_a_header_is_checked(header: bytes, found: str, engine: Engine, tmp_path: Path) -> None:
    from adsbpc.errors import SourceError

    hostile.write_csv(tmp_path, {})
    (tmp_path / "conversions.csv").write_bytes(header + b"\nu,v\n")
    with pytest.raises(SourceError, match=r"\[events\.csv\]") as caught:
        counts(engine, spec_of(tmp_path, **CSV))
    assert caught.value.found.startswith(found)


DIALECTS = [CsvDialect(), CsvDialect("\t", ""), CsvDialect(";", "'"), CsvDialect("|", "^")]


def read_alone(line: bytes, dialect: CsvDialect, fields: int) -> list[str] | None:
    """The oracle: Python's own reader, which sees this line and no other."""
    line = line.removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    if len(line) > LONGEST_LINE or "\r" in text or "\0" in text:
        return None
    if not dialect.quote:
        found = text.split(dialect.delimiter)
        return found if len(found) == fields else None
    inside = text.replace(dialect.quote * 2, "")
    for field in inside.split(dialect.delimiter):
        if dialect.quote in field.strip(dialect.quote):
            return None
    csv.field_size_limit(2 * LONGEST_LINE)
    try:
        ((*found,),) = csv.reader(
            [text], delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True
        )
    except csv.Error:
        return None
    return found if len(found) == fields else None


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
@settings(max_examples=examples(20, 150))
def test_lines_are_read_as_each_would_be_alone(dialect: CsvDialect, data: st.DataObject) -> None:
    sign = st.sampled_from(
        [dialect.delimiter, dialect.quote or '"', "a", "é", " ", "\0", "\r", "#"]
    )
    text = st.lists(sign, max_size=12).map(lambda signs: "".join(signs).encode())
    lines = data.draw(st.lists(st.one_of(text, st.binary(max_size=8)), max_size=8))
    lines = [line.replace(b"\n", b"") for line in lines]
    header = header_of(dialect.delimiter.join("abc").encode(), dialect)
    table = rows_of(pa.array(lines, pa.binary()), header, dialect, ["a", "c"])
    # Alone or among others: the same.
    alone = [rows_of(pa.array([line], pa.binary()), header, dialect, ["a", "c"]) for line in lines]
    assert _counted([table]) == _counted(alone)
    for line, row in zip(lines, alone, strict=True):
        if line.removesuffix(b"\r") in (b"", header.line):
            assert row.num_rows == 0
            continue
        expected = read_alone(line, dialect, 3)
        (found,) = row.to_pylist()
        if found[UNREADABLE] is None:
            assert expected is not None
            assert [found["a"], found["c"]] == [expected[0], expected[2]]
        elif dialect.quote.encode() not in line or not dialect.quote:
            assert expected is None


def _counted(tables: list[pa.Table]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


@pytest.mark.every_change
@pytest.mark.spark
def test_spark_reads_lines_as_everybody_does(tmp_path: Path) -> None:
    from adsbpc.engines.csv_dialect import UNREADABLE

    lines = [*hostile.all_csv_lines("conversions"), *[line for line, _ in UNREADABLE_LINES]]
    header = header_of(hostile.HEADERS["conversions"], CsvDialect())
    (tmp_path / "c.csv").write_bytes(b"\n".join([header.line, *lines]))
    wanted = ["user_id", "timestamp", "note"]
    expected = rows_of(pa.array(lines, pa.binary()), header, CsvDialect(), wanted)
    engine = open_test_engine("spark")
    try:
        rows = engine.read_files("lines", CsvDialect(), [str(tmp_path / "c.csv")], None, wanted)
        found = engine.rows(
            "lines", f'SELECT user_id, "timestamp", note, "{UNREADABLE}" FROM {rows}'
        )
    finally:
        engine.close()
    assert Counter(found) == _counted([expected])
