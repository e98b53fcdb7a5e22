"""Parquet bodies: files of the usual writers are taken, and bombs and broken ones are not."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.events.schema import Reason
from adsbpc.service.clock import now_us
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest import bodies
from adsbpc.service.ingest.bodies import PARQUET, check_body
from adsbpc.service.ingest.rows import Checked, Source
from adsbpc.service.settings import IngestSection
from tests.service.clocks import SetClock
from tests.service.pushed import SUBJECTS

LIMITS = IngestSection(max_unpacked_bytes=2**20, max_rows=100)
MOMENT = datetime(2026, 3, 1, 11, tzinfo=UTC)
ROWS = [
    {
        "user_id": f"u{number}",
        "publisher_id": "P-1",
        "advertiser_id": "Ad-1",
        "timestamp": MOMENT,
        "kind": "click",
        "event_id": None if number % 2 else f"e{number}",
        "country": "DE" if number % 3 else None,
        "region": None,
        "device": "phone",
        "category": f"c{number % 2}",
    }
    for number in range(50)
]
TABLE = pa.Table.from_pylist(ROWS)


def checked(body: bytes, source: Source = "impressions", limits: IngestSection = LIMITS) -> Checked:
    return check_body(body, PARQUET, source, SUBJECTS[source], now_us(SetClock()), limits)


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def replaced(name: str, column: pa.Array, table: pa.Table = TABLE) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def refusal(body: bytes, source: Source = "impressions") -> Problem:
    with pytest.raises(Problem) as caught:
        checked(body, source)
    assert caught.value.to_do
    return caught.value


def of_pandas(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def of_polars(frame: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()


def of_duckdb(tmp_path: Any) -> bytes:
    duckdb.from_arrow(TABLE).write_parquet(str(tmp_path / "rows.parquet"))
    return bytes((tmp_path / "rows.parquet").read_bytes())


@pytest.mark.parametrize(
    "body",
    [
        written(),
        written(data_page_version="2.0"),
        written(compression="zstd", row_group_size=7),
        written(use_dictionary=False, compression="none"),
        written(write_statistics=False, data_page_size=10),
        written(replaced("user_id", TABLE["user_id"].cast(pa.large_string()))),
        written(replaced("user_id", TABLE["user_id"].cast(pa.string_view()))),
        written(replaced("user_id", TABLE["user_id"].dictionary_encode())),
        written(replaced("timestamp", TABLE["timestamp"].cast(pa.timestamp("ns", "UTC")))),
        written(replaced("timestamp", TABLE["timestamp"].cast(pa.timestamp("ms", "UTC")))),
        written(replaced("timestamp", pa.array([MOMENT.isoformat()] * 50))),
        written(TABLE.drop_columns("publisher_id")),
        of_pandas(pd.DataFrame(ROWS)),
        of_pandas(pd.DataFrame(ROWS).astype({"kind": "category"})),
        of_polars(pl.DataFrame(ROWS)),
        of_polars(pl.DataFrame(ROWS).with_columns(pl.col("kind").cast(pl.Categorical))),
    ],
)
def test_files_of_the_usual_writers(body: bytes) -> None:
    found = checked(body)
    assert found.quarantined == {}
    assert found.table.to_pylist() == ROWS


def test_a_file_of_duckdb(tmp_path: Any) -> None:
    assert checked(of_duckdb(tmp_path)).table.to_pylist() == ROWS


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.float32(), pa.float64()])
def test_values_may_be_any_numbers(kind: pa.DataType) -> None:
    table = pa.table(
        {
            "user_id": ["u1", "u2"],
            "timestamp": pa.array([MOMENT] * 2, pa.timestamp("us", "UTC")),
            "value": pa.array([3, None], kind),
        }
    )
    found = checked(written(table), "conversions")
    assert found.table["value"].to_pylist() == [3.0, None]
    assert found.table["kind"].to_pylist() == [None, None]


def test_files_without_rows_and_columns_without_values() -> None:
    assert checked(written(TABLE.slice(0, 0))).rows == 0
    assert checked(written(replaced("event_id", pa.nulls(50)))).table.num_rows == 50
    nobody = checked(written(replaced("user_id", pa.nulls(50))))
    assert set(nobody.quarantined.values()) == {Reason.NO_USER}
    assert len(nobody.quarantined) == 50


@pytest.mark.parametrize(
    ("table", "source", "said"),
    [
        (replaced("user_id", pa.array(range(50))), "impressions", "column 'user_id' is int64"),
        (replaced("user_id", TABLE["user_id"].cast(pa.binary())), "impressions", "not text"),
        (replaced("timestamp", pa.array(range(50))), "impressions", "column 'timestamp' is int64"),
        (
            replaced("timestamp", TABLE["timestamp"].cast(pa.timestamp("us"))),
            "impressions",
            "column 'timestamp' has no zone",
        ),
        (replaced("event_id", pa.array([["e"]] * 50)), "impressions", "nested"),
        (replaced("event_id", pa.array([{"a": "e"}] * 50)), "impressions", "nested"),
        (TABLE.append_column("usr_id", TABLE["user_id"]), "impressions", "unknown column 'usr_id'"),
        (TABLE, "conversions", "unknown column 'publisher_id'"),
        (TABLE.append_column("user_id", TABLE["user_id"]), "impressions", "there twice"),
        (pa.table({"value": ["5"]}), "conversions", "column 'value' is"),
        (pa.table({"value": [True]}), "conversions", "column 'value' is bool, not a number"),
    ],
)
def test_columns_of_another_kind_are_refused(table: pa.Table, source: Source, said: str) -> None:
    found = refusal(written(table), source)
    assert found.status == 400
    assert said in found.detail


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_encodings_that_can_grow_are_refused(encoding: str, version: str) -> None:
    body = written(
        use_dictionary=False, column_encoding={"user_id": encoding}, data_page_version=version
    )
    assert f"encoding {encoding} is not taken" in refusal(body).detail


def test_texts_that_are_no_utf8_have_a_reason() -> None:
    broken = pa.array([b"u", b"\xff", None, b"\xff"]).cast(pa.string(), safe=False)
    table = pa.table(
        {
            "user_id": broken,
            "advertiser_id": ["Ad-1"] * 4,
            "timestamp": pa.array([MOMENT] * 4, pa.timestamp("us", "UTC")),
            "kind": ["view"] * 4,
        }
    )
    for options in ({}, {"use_dictionary": False}, {"row_group_size": 1}):
        assert checked(written(table, **options)).quarantined == {
            1: "user_id is not valid UTF-8",
            2: Reason.NO_USER,
            3: "user_id is not valid UTF-8",
        }
    other = table.set_column(1, "advertiser_id", broken).set_column(
        0, "user_id", pa.array(["u"] * 4)
    )
    assert checked(written(other)).quarantined == {
        1: "advertiser_id is not valid UTF-8",
        2: "no advertiser",
        3: "advertiser_id is not valid UTF-8",
    }


def test_the_limits_hold() -> None:
    many = pa.concat_tables([TABLE, TABLE, TABLE.slice(0, 1)])
    assert refusal(written(many)).status == 413
    assert refusal(written(many, row_group_size=10)).status == 413
    long = replaced("user_id", pa.array([f"{number:030000}" for number in range(50)]))
    found = refusal(written(long, compression="zstd"))
    assert found.status == 413
    assert "[ingest] max_unpacked_bytes" in found.detail


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_file_is_answered(data: st.DataObject) -> None:
    body = bytearray(data.draw(st.sampled_from([written(), written(compression="none")])))
    # The head of the first pages, the footer, or anywhere.
    for _ in range(data.draw(st.integers(1, 3))):
        place = st.one_of(st.integers(0, 80), st.integers(1, 900).map(lambda k: len(body) - k))
        body[data.draw(place)] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del body[data.draw(st.integers(0, len(body) - 1)) :]
    try:
        found = checked(bytes(body))
    except Problem as problem:
        if problem.status not in (400, 413):
            raise
    else:
        assert found.rows <= LIMITS.max_rows


def reader() -> subprocess.Popen[bytes]:
    found = bodies._decoder._process
    assert found is not None
    return found


def test_a_reader_that_ends_or_hangs_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    good = written()
    assert checked(good).rows == 50
    first = reader()
    first.kill()
    first.wait()
    assert checked(good).rows == 50, "one that ended before was not started again"
    second = reader()
    assert second.pid != first.pid
    # In the middle of a body.
    second.send_signal(signal.SIGSTOP)
    Timer(0.2, second.kill).start()
    assert "ended the reader" in refusal(good).detail
    assert checked(good).rows == 50
    third = reader()
    third.send_signal(signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(bodies, "_DECODING_SECONDS", 0.2)
        assert "took too long" in refusal(good).detail
    assert third.returncode is not None, "a reader that hangs was left behind"
    assert checked(good).rows == 50


def test_many_at_once_get_each_their_own() -> None:
    """They take turns: no answer is another's."""
    many = [written(TABLE.slice(0, rows)) for rows in range(1, 33)]
    with ThreadPoolExecutor(8) as pool:
        assert [found.rows for found in pool.map(checked, many)] == list(range(1, 33))


def test_the_reader_ends_with_the_server() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ORPHAN], check=True, capture_output=True, text=True, timeout=60
    )
    deadline = time.monotonic() + 20
    while Path(f"/proc/{int(ran.stdout)}").exists():
        assert time.monotonic() < deadline, "the reader outlives the server"
        time.sleep(0.05)


ORPHAN = """
import os
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest import bodies
from adsbpc.service.settings import IngestSection

try:
    bodies.check_body(b"", bodies.PARQUET, "impressions", "P-1", 0, IngestSection())
except Problem as problem:
    assert problem.status == 400
print(bodies._decoder._process.pid, flush=True)
os._exit(0)
"""

BOMB = """
import io, resource, sys
import pyarrow as pa, pyarrow.parquet as pq
from adsbpc.service.ingest.bodies import PARQUET, check_body
from adsbpc.service.settings import IngestSection

stream = io.BytesIO()
user = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), ["x" * 2**20])
pq.write_table(pa.table({"user_id": user}), stream)
body = stream.getvalue()
assert len(body) < 2**20
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = check_body(body, PARQUET, "impressions", "P-1", 0, IngestSection())
assert set(found.quarantined.values()) == {"user_id is longer than 200 characters"}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_value_that_is_repeated_is_not_unfolded() -> None:
    """Ten gigabytes, if it were: its reader may take less than half of one."""
    ran = subprocess.run(
        [sys.executable, "-c", BOMB], check=True, capture_output=True, text=True, timeout=60
    )
    assert int(ran.stdout) < 150
