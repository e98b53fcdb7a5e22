"""Rows are judged one by one, the same way in every format; a plain oracle says how."""

from __future__ import annotations

import io
import json
import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adsbpc.events.schema import Reason
from adsbpc.service.clock import now_us
from adsbpc.service.http.bodies import JSON
from adsbpc.service.ingest.bodies import NDJSON, PARQUET, check_body
from adsbpc.service.ingest.rows import (
    DIMENSION_COLUMNS,
    SCHEMAS,
    Checked,
    Source,
    counted_reason,
)
from adsbpc.service.settings import IngestSection
from tests.service.clocks import START, SetClock
from tests.service.pushed import CONVERSION, IMPRESSION, SUBJECTS, checked, lines, moment

FUTURE = "timestamp is in the future"
LONG = "x" * 201


def verdict(row: Any, source: Source) -> str | dict[str, Any]:
    """The oracle: a reason, or the row as it is to be stored."""
    names = SCHEMAS[source].names
    if not isinstance(row, dict):
        return "not a JSON object"
    for name, value in row.items():
        if name not in names:
            return f"unknown field: {name[:40]}"
        if value is None:
            continue
        if name == "value":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return "value is not a number"
        elif not isinstance(value, str):
            return Reason.BAD_TIMESTAMP if name == "timestamp" else f"{name} is not text"
    full = {name: row.get(name) for name in names}
    owned, foreign = {
        "impressions": ("publisher_id", "publisher of another key"),
        "conversions": ("advertiser_id", "advertiser of another key"),
    }[source]
    if full[owned] is None:
        full[owned] = SUBJECTS[source]
    if reason := text_fault("user_id", full["user_id"], Reason.NO_USER):
        return reason
    happened, reason = parsed(full["timestamp"])
    if reason or happened is None:
        return reason or "no moment"
    full["timestamp"] = happened
    # Thirty days, and a few minutes before that in which it may still be on its way.
    if source == "conversions" and happened < START - timedelta(days=30, minutes=-5):
        return Reason.LATE_ARRIVAL
    if full[owned] != SUBJECTS[source]:
        return foreign
    if source == "impressions":
        if reason := text_fault("advertiser_id", full["advertiser_id"], "no advertiser"):
            return reason
        if full["kind"] not in ("click", "view"):
            return Reason.UNKNOWN_KIND
    else:
        if reason := text_fault("kind", full["kind"]):
            return reason
        if full["value"] is not None and not 0 <= full["value"] <= 1e15:
            return Reason.BAD_VALUE
    for name in ("event_id", *DIMENSION_COLUMNS):
        if reason := text_fault(name, full[name]):
            return reason
    return full


def text_fault(name: str, text: str | None, absent: str | None = None) -> str | None:
    if not text:
        return absent if absent else (f"{name} is empty" if text == "" else None)
    if len(text) > 200:
        return f"{name} is longer than 200 characters"
    return f"{name} holds a NUL character" if "\0" in text else None


def parsed(text: str | None) -> tuple[datetime | None, str | None]:
    bad = str(Reason.BAD_TIMESTAMP)
    wall = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?"
    if text is None or not text.isascii():
        return None, bad
    in_a_day = re.match(r".{11}([01]\d|2[0-3]):[0-5]\d:[0-5]\d", text)
    if re.fullmatch(wall, text) and in_a_day:
        return None, "timestamp without a zone"
    if not re.fullmatch(wall + r"(Z|[+-]\d\d:[0-5]\d)", text) or not in_a_day:
        return None, bad
    try:
        found = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    except ValueError:
        return None, bad
    if not timedelta(days=-25567) <= found < timedelta(days=84006):
        return None, bad
    found_at = datetime(1970, 1, 1, tzinfo=UTC) + found
    return found_at, FUTURE if found_at > START + timedelta(minutes=5) else None


GOOD_TEXTS = st.sampled_from(
    ["u1", "é" * 200, "x" * 200, "\N{GRINNING FACE}" * 200, "a b", '"', "\\", "[{,", "0"]
)
BAD_TEXTS: st.SearchStrategy[Any] = st.sampled_from(
    ["", LONG, "é" * 201, "nul\0", "\0", 5, True, [], {}, None]
)
MOMENTS = st.one_of(
    st.datetimes(
        datetime(1899, 12, 30), datetime(2200, 1, 3), timezones=st.just(UTC)
    ).map(datetime.isoformat),
    st.datetimes(datetime(2026, 3, 1, 11), datetime(2026, 3, 1, 13), timezones=st.just(UTC)).map(
        datetime.isoformat
    ),
    st.from_regex(
        r"20[0-2][0-9]-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]"
        r"(\.[0-9]{1,9})?(Z|[+-][0-2][0-9]:[0-7][0-9]|)",
        fullmatch=True,
    ),
    st.sampled_from(
        [
            "2026-03-01T12:05:00Z", "2026-03-01T12:05:00.000001Z", "2026-03-01T12:05:00.0000009Z",
            "2026-03-01t11:00:00z", "2026-03-01", "2026-03-01T11:00Z", "2026-03-01T11Z",
            "2026-03-01T11:00:00+0100", "2026-03-01T11:00:00+01", "20260301T110000Z",
            " 2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z\n", "2026-03-01T24:00:00Z",
            "2026-02-29T11:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59",
            "0001-01-01T00:00:00+23:59", "1900-01-01T00:00:00Z", "1899-12-31T23:59:59.999999Z",
            "2026-03-01T11:00:00-00:00", "2026-01-30T12:05:00Z", "2026-01-30T12:04:59.999999Z",
            "2026-03-01T11:00:00.Z", "٢٠٢٦-03-01T11:00:00Z",
            "2026-03-01T11:00:00,5Z", "", "now", 1772362800, 1772362800.5, None, True,
        ]
    ),
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.floats(0, 1e15),
    st.integers(0, 10**15),
    st.sampled_from(
        [None, -0.5, -1, 1e15 + 1, 10**15 + 1, 2**53 + 1, 2**63, 10**400, "5", True, False, [], 0.0]
    ),
)


def mostly(good: Any, *others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(good), st.just(good), *others)


FIELDS = {
    "user_id": mostly("u1", GOOD_TEXTS, BAD_TEXTS),
    "publisher_id": mostly("P-1", GOOD_TEXTS, BAD_TEXTS),
    "advertiser_id": mostly("Ad-1", GOOD_TEXTS, BAD_TEXTS),
    "timestamp": mostly("2026-03-01T11:00:00Z", MOMENTS),
    "kind": mostly("click", st.just("view"), GOOD_TEXTS, BAD_TEXTS),
    "event_id": mostly("e1", GOOD_TEXTS, BAD_TEXTS),
    "value": VALUES,
    **{name: mostly("DE", GOOD_TEXTS, BAD_TEXTS) for name in DIMENSION_COLUMNS},
}


def rows_of_any_kind(source: Source) -> st.SearchStrategy[Any]:
    fields = {name: FIELDS[name] for name in SCHEMAS[source].names}
    required = [name for name in ("user_id", "timestamp") if name in fields]
    plain = st.fixed_dictionaries(
        {name: fields[name] for name in required},
        optional={name: value for name, value in fields.items() if name not in required},
    )
    odd = st.one_of(
        st.fixed_dictionaries(
            {}, optional={**fields, "usr_id": st.just("x"), "x" * 300: st.none()}
        ),
        st.sampled_from([None, 1, "row", [], [["user_id", "u1"]], {}]),
    )
    return st.one_of(plain, plain, plain, odd)


def expected(rows: list[Any], source: Source) -> tuple[list[dict[str, Any]], dict[int, str]]:
    verdicts = [verdict(row, source) for row in rows]
    good = [found for found in verdicts if isinstance(found, dict)]
    return good, {k: found for k, found in enumerate(verdicts) if isinstance(found, str)}


def check(rows: list[Any], source: Source, media_type: str) -> Checked:
    body = lines(rows) if media_type == NDJSON else json.dumps(rows).encode()
    return check_body(
        body, media_type, source, SUBJECTS[source], now_us(SetClock()), IngestSection()
    )


@pytest.mark.parametrize("source", ["impressions", "conversions"])
@settings(max_examples=250)
@given(data=st.data())
def test_the_verdicts_are_those_of_the_oracle(source: Source, data: st.DataObject) -> None:
    rows = data.draw(st.lists(rows_of_any_kind(source), max_size=4))
    good, bad = expected(rows, source)
    for media_type in (NDJSON, JSON):
        found = check(rows, source, media_type)
        assert found.rows == len(rows)
        assert found.quarantined == bad
        assert found.table.schema == SCHEMAS[source]
        assert found.table.to_pylist() == good


@pytest.mark.parametrize("source", ["impressions", "conversions"])
@settings(max_examples=120)
@given(data=st.data())
def test_columns_of_parquet_get_the_same_verdicts(source: Source, data: st.DataObject) -> None:
    """Whatever a typed column can hold."""
    fields = {
        name: strategy.filter(lambda value: value is None or isinstance(value, str))
        for name, strategy in FIELDS.items()
        if name in SCHEMAS[source].names and name != "value"
    }
    if source == "conversions":
        fields["value"] = st.one_of(st.none(), st.floats())
    rows = data.draw(st.lists(st.fixed_dictionaries(fields), max_size=4))
    schema = pa.schema(
        [(name, pa.float64() if name == "value" else pa.string()) for name in fields]
    )
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), stream)
    found = check_body(
        stream.getvalue(), PARQUET, source, SUBJECTS[source], now_us(SetClock()), IngestSection()
    )
    good, bad = expected(rows, source)
    assert found.quarantined == bad
    assert found.table.schema == SCHEMAS[source]
    assert found.table.to_pylist() == good


@settings(max_examples=100)
@given(MOMENTS)
@example("2026-03-01T11:00:00.123456999+23:59")
@example("1969-12-31T23:59:59.9999999-00:00")
def test_a_moment_is_read_the_same_alone_and_among_others(text: Any) -> None:
    row = {**IMPRESSION, "timestamp": text}
    alone = checked([row])
    among = checked([row, {**IMPRESSION, "timestamp": "no moment"}])
    assert among.table == alone.table
    assert among.quarantined == {**alone.quarantined, 1: Reason.BAD_TIMESTAMP}


@pytest.mark.parametrize("media_type", [NDJSON, JSON])
@pytest.mark.parametrize("value", [True, False, "5", [5], 10**400, -1])
def test_a_number_is_read_the_same_alone_and_among_others(media_type: str, value: Any) -> None:
    rows = [{**CONVERSION, "value": each} for each in (1.5, value, 2, None)]
    found = check(rows, "conversions", media_type)
    assert list(found.quarantined) == [1]
    assert found.table["value"].to_pylist() == [1.5, 2.0, None]
    without_null = check(rows[:3], "conversions", media_type)
    assert without_null.quarantined == found.quarantined


def test_good_rows_are_taken_as_they_are() -> None:
    found = checked([IMPRESSION, {**IMPRESSION, "timestamp": "2026-03-01 12:04:59.5+01:00"}])
    assert found.quarantined == {}
    assert found.table.to_pylist()[1] == {
        **IMPRESSION,
        "timestamp": moment("2026-03-01T11:04:59.5+00:00"),
        **dict.fromkeys(DIMENSION_COLUMNS),
    }
    conversion = checked([CONVERSION, {**CONVERSION, "value": 3}], "conversions").table
    assert conversion["value"].to_pylist() == [9.5, 3.0]


def test_an_owner_may_leave_itself_out() -> None:
    row = {name: value for name, value in IMPRESSION.items() if name != "publisher_id"}
    assert checked([row, IMPRESSION]).table["publisher_id"].to_pylist() == ["P-1", "P-1"]
    sale = {name: value for name, value in CONVERSION.items() if name != "advertiser_id"}
    assert checked([sale], "conversions").table["advertiser_id"].to_pylist() == ["Ad-1"]


def test_an_empty_batch_has_no_verdicts() -> None:
    for source in ("impressions", "conversions"):
        found = checked([], source)
        assert (found.rows, found.table.num_rows, found.quarantined) == (0, 0, {})


def test_reasons_are_counted_without_what_a_sender_made_up() -> None:
    (reason,) = checked([{**IMPRESSION, "usr_id:x": "x"}]).quarantined.values()
    assert reason == "unknown field: usr_id:x"
    assert counted_reason(reason) == "unknown field"
    assert counted_reason(Reason.NO_USER) == Reason.NO_USER


def test_no_reason_holds_a_user_or_is_too_long_to_count() -> None:
    secret = "a user that nobody should see"
    rows = [{**IMPRESSION, "user_id": secret, name: 5} for name in IMPRESSION if name != "user_id"]
    rows += [{**IMPRESSION, "user_id": secret * 10}, {**IMPRESSION, "z" * 500: secret}]
    found = checked(rows)
    assert len(found.quarantined) == len(rows)
    for reason in found.quarantined.values():
        assert secret not in reason
        assert len(counted_reason(reason)) <= 100


def test_numbers_that_are_none() -> None:
    body = b'{"user_id": "u1", "timestamp": "2026-03-01T11:00:00Z", "value": %s}'
    found = [
        check_body(body % text, NDJSON, "conversions", "Ad-1", now_us(SetClock()), IngestSection())
        for text in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1e15", b"-0.0")
    ]
    assert [each.quarantined for each in found] == [{0: str(Reason.BAD_VALUE)}] * 5 + [{}, {}]
    assert math.copysign(found[-1].table["value"][0].as_py(), 1) == 0
