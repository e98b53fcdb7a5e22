"""A bad row goes to quarantine with its reason, on every engine, and the run goes on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from adsbpc.events import Reason
from tests.events.files import CONVERSION, IMPRESSION, NOON, counts, spec_of, write, write_both

BAD_IMPRESSIONS: list[tuple[dict[str, Any], Reason]] = [
    ({"user_id": None}, Reason.NO_USER),
    ({"user_id": ""}, Reason.NO_USER),
    ({"timestamp": None}, Reason.NO_TIMESTAMP),
    ({"advertiser_id": "Ad-2"}, Reason.OTHER_ADVERTISER),
    ({"advertiser_id": None}, Reason.OTHER_ADVERTISER),
    ({"publisher_id": None}, Reason.NO_PUBLISHER),
    ({"kind": "hover"}, Reason.UNKNOWN_KIND),
    ({"kind": None}, Reason.UNKNOWN_KIND),
    ({"user_id": None, "kind": "hover"}, Reason.NO_USER),
]

VALUE = {"metric": "value", "value_cap": 10}
FULL_CONVERSION = {**CONVERSION, "value": 5.0, "event_id": "c1", "arrived_at": NOON}

BAD_CONVERSIONS: list[tuple[dict[str, Any], Reason]] = [
    ({"user_id": None}, Reason.NO_USER),
    ({"timestamp": None}, Reason.NO_TIMESTAMP),
    ({"advertiser_id": "Ad-2"}, Reason.OTHER_ADVERTISER),
    ({"arrived_at": None}, Reason.NO_ARRIVAL),
    ({"arrived_at": NOON - timedelta(microseconds=1)}, Reason.EARLY_ARRIVAL),
    ({"arrived_at": NOON + timedelta(days=8)}, Reason.LATE_ARRIVAL),
    ({"value": -0.01}, Reason.BAD_VALUE),
    ({"value": float("nan")}, Reason.NO_NUMBER),
    ({"value": float("inf")}, Reason.BAD_VALUE),
    ({"value": float("-inf")}, Reason.BAD_VALUE),
    ({"value": None}, Reason.NO_VALUE),
    ({}, Reason.REPEATED_ID),
]


def test_every_kind_of_bad_impression(engine: Engine, tmp_path: Path) -> None:
    bad = [{**IMPRESSION, **change} for change, _ in BAD_IMPRESSIONS]
    write_both(tmp_path, impressions=[IMPRESSION, *bad])
    events, good, _ = counts(engine, spec_of(tmp_path))
    assert good == 1
    expected: dict[tuple[str, str], int] = {}
    for _, reason in BAD_IMPRESSIONS:
        expected[("impressions", reason)] = expected.get(("impressions", reason), 0) + 1
    assert events.quarantined() == expected


def test_every_kind_of_bad_conversion(engine: Engine, tmp_path: Path) -> None:
    bad = [
        {**FULL_CONVERSION, "event_id": f"b{k}", **change}
        for k, (change, reason) in enumerate(BAD_CONVERSIONS)
        if reason is not Reason.REPEATED_ID
    ]
    write_both(tmp_path, conversions=[FULL_CONVERSION, *bad, FULL_CONVERSION])
    spec = spec_of(tmp_path, max_lateness="7d", campaign=VALUE)
    events, _, good = counts(engine, spec)
    assert good == 1
    expected: dict[tuple[str, str], int] = {}
    for _, reason in BAD_CONVERSIONS:
        expected[("conversions", reason)] = expected.get(("conversions", reason), 0) + 1
    assert events.quarantined() == expected


def test_quarantine_keeps_the_row(duckdb_engine: Engine, tmp_path: Path) -> None:
    bad = {**FULL_CONVERSION, "event_id": "odd", "value": -1.5}
    write_both(tmp_path, conversions=[FULL_CONVERSION, bad])
    events, _, _ = counts(duckdb_engine, spec_of(tmp_path, campaign=VALUE))
    events.write_quarantine(tmp_path / "quarantine.parquet")
    (row,) = pq.read_table(tmp_path / "quarantine.parquet").to_pylist()
    assert row["source"] == "conversions"
    assert row["reason"] == Reason.BAD_VALUE
    assert (row["user_id"], row["event_id"], row["value"]) == ("u1", "odd", -1.5)
    assert row["timestamp"].startswith("2026-03-02 12:00:00")


def test_a_missing_value_is_fine_when_conversions_are_counted(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    write_both(
        tmp_path,
        conversions=[FULL_CONVERSION, {**FULL_CONVERSION, "event_id": "c2", "value": None}],
    )
    events, _, good = counts(duckdb_engine, spec_of(tmp_path))
    assert (good, events.quarantined()) == (2, {})


def test_one_event_id_of_two_users_is_no_repeat(engine: Engine, tmp_path: Path) -> None:
    """Looking for repeats across users would couple them: each user stands alone."""
    rows = [{**FULL_CONVERSION, "user_id": user} for user in ("u1", "u2", "u3")]
    write_both(tmp_path, conversions=[*rows, rows[0]])
    events, _, good = counts(engine, spec_of(tmp_path))
    assert good == 3
    assert events.quarantined() == {("conversions", Reason.REPEATED_ID): 1}


def test_two_users_who_repeat_the_same_event_id(engine: Engine, tmp_path: Path) -> None:
    """Each keeps one of its own: a repeat of one user's is no repeat of another's."""
    rows = [{**FULL_CONVERSION, "user_id": user} for user in ("u1", "u2", "u1", "u2")]
    touches = [
        {**IMPRESSION, "event_id": "1", "user_id": user} for user in ("u1", "u2", "u1", "u2")
    ]
    write_both(tmp_path, impressions=touches, conversions=rows)
    events, impressions, conversions = counts(engine, spec_of(tmp_path))
    assert (impressions, conversions) == (2, 2)
    for table in (events.impressions, events.conversions):
        found = engine.rows("users", f"SELECT user_id FROM {table} ORDER BY user_id")
        assert found == [("u1",), ("u2",)]


def test_the_first_to_arrive_is_kept(engine: Engine, tmp_path: Path) -> None:
    """A repeat that arrives later must not displace a row whose slot may be released."""
    first = {**FULL_CONVERSION, "value": 1.0}
    again = {**FULL_CONVERSION, "value": 2.0, "arrived_at": NOON + timedelta(days=2)}
    # The repeat happened "earlier", and stands first in the file.
    again["timestamp"] = NOON - timedelta(days=1)
    write_both(tmp_path, conversions=[again, first])
    events, _, good = counts(engine, spec_of(tmp_path, campaign=VALUE))
    assert good == 1
    assert engine.rows("kept", f"SELECT value, slot FROM {events.conversions}") == [(1.0, 2)]


def test_repeated_impressions(engine: Engine, tmp_path: Path) -> None:
    rows = [{**IMPRESSION, "event_id": e} for e in ("a", "b", "a", None, None, "a")]
    write_both(tmp_path, impressions=rows)
    events, good, _ = counts(engine, spec_of(tmp_path))
    assert good == 4
    assert events.quarantined() == {("impressions", Reason.REPEATED_ID): 2}


def test_publishers_number_their_events_each_for_themselves(engine: Engine, tmp_path: Path) -> None:
    """Nobody can make another publisher's touch a repeat by guessing its event ids."""
    rows = [{**IMPRESSION, "event_id": "1", "publisher_id": p} for p in ("P-1", "P-2", "P-1")]
    write_both(tmp_path, impressions=rows)
    events, good, _ = counts(engine, spec_of(tmp_path))
    assert good == 2
    assert events.quarantined() == {("impressions", Reason.REPEATED_ID): 1}


def test_a_bad_row_does_not_use_up_its_event_id(duckdb_engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path, conversions=[{**FULL_CONVERSION, "value": -1.0}, FULL_CONVERSION])
    events, _, good = counts(duckdb_engine, spec_of(tmp_path, campaign=VALUE))
    assert good == 1
    assert events.quarantined() == {("conversions", Reason.BAD_VALUE): 1}


def test_conversions_outside_the_campaign_are_left_out_quietly(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    rows = [{**CONVERSION, "timestamp": NOON + timedelta(days=d)} for d in (-40, -2, 0, 29, 30)]
    write_both(tmp_path, conversions=rows)
    events, _, good = counts(duckdb_engine, spec_of(tmp_path))
    assert (good, events.quarantined()) == (2, {})


def test_a_conversion_belongs_to_the_slot_in_which_it_arrives(
    engine: Engine, tmp_path: Path
) -> None:
    rows = [
        {**FULL_CONVERSION, "event_id": f"c{d}", "arrived_at": NOON + timedelta(days=d)}
        for d in (0, 1, 5)
    ]
    write_both(tmp_path, conversions=rows)
    events, _, _ = counts(engine, spec_of(tmp_path))
    found = engine.rows(
        "slots", f"SELECT conversion_id, slot FROM {events.conversions} ORDER BY slot"
    )
    assert found == [("c0", 2), ("c1", 3), ("c5", 7)]


TEXT_TIMES = [
    ("2026-03-02 12:00:00", True),
    ("2026-03-02T12:00:00", True),
    ("2026-03-02T12:00:00.25", True),
    ("2026-03-02T12:00:00.123456789", True),
    ("2026-02-30 12:00:00", False),
    ("2026-03-02 24:00:00", False),
    ("2026-03-02 12:60:00", False),
    ("2026-03-02 12:00", False),
    ("2026-03-02", True),
    ("2026-03-02Z", False),
    ("20260302", False),
    ("03/02/2026", False),
    ("02.03.2026 12:00:00", False),
    ("noon", False),
    ("2026-03-02 12:00:00 CET", False),
    ("1772452800", False),
    ("2026-03-02 12:00:00\n", False),
    ("2026-03-02T12:00:00+99:99", False),
    ("1899-12-31 12:00:00", False),
]


def test_text_timestamps(engine: Engine, tmp_path: Path) -> None:
    rows = [{**IMPRESSION, "timestamp": text} for text, _ in TEXT_TIMES]
    write_both(tmp_path, impressions=rows)
    events, good, _ = counts(engine, spec_of(tmp_path))
    assert good == sum(parses for _, parses in TEXT_TIMES)
    assert events.quarantined() == {
        ("impressions", Reason.BAD_TIMESTAMP): sum(not parses for _, parses in TEXT_TIMES)
    }


def test_each_timestamp_says_for_itself_whether_it_has_a_zone(
    engine: Engine, tmp_path: Path
) -> None:
    """One row without a zone among others neither stops them nor changes what they mean."""
    times = ["2026-03-02T12:00:00Z", "2026-03-02T12:00:00", "2026-03-02T12:00:00+01:00"]
    write_both(tmp_path, impressions=[{**IMPRESSION, "timestamp": t} for t in times])
    events, _, _ = counts(engine, spec_of(tmp_path, timezone="America/New_York"))
    found = engine.rows("hours", f"SELECT time_us FROM {events.impressions} ORDER BY time_us")
    hours = [(moment - int(NOON.timestamp() * 1e6)) / 3.6e9 for (moment,) in found]
    assert hours == [-1.0, 0.0, 5.0]


@pytest.mark.parametrize(("form", "left"), [("zoned", 3), ("local", 2)])
def test_mixed_zones_are_quarantined_once_a_form_is_set(
    form: str, left: int, engine: Engine, tmp_path: Path
) -> None:
    zoned = ["2026-03-02T12:00:00Z", "2026-03-02T12:00:00+01:00", "2026-03-02T12:00:00-0330"]
    local = ["2026-03-02T12:00:00", "2026-03-02 13:00:00"]
    write_both(tmp_path, impressions=[{**IMPRESSION, "timestamp": t} for t in zoned + local])
    events, good, _ = counts(engine, spec_of(tmp_path, timestamps=form))
    assert good == left
    assert events.quarantined() == {("impressions", Reason.MIXED_ZONES): 5 - left}


def test_csv_with_bad_rows(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "impressions.csv").write_text(
        "user_id,publisher_id,advertiser_id,timestamp,kind,campaign note\n"
        'u1,"P-1",Ad-1,2026-03-02 11:00:00,click,"said ""hi"", twice"\n'
        ",P-1,Ad-1,2026-03-02 11:00:00,click,\n"
        "u2,P-1,Ad-1,soon,view,\n"
    )
    (tmp_path / "conversions.csv").write_text(
        "user_id,advertiser_id,timestamp,value\n"
        "u1,Ad-1,2026-03-02 12:00:00,12.50\n"
        "u1,Ad-1,2026-03-02 12:00:01,a lot\n"
        "u1,Ad-1,2026-03-02 12:00:02,-3\n"
        "u1,Ad-1,2026-03-02 12:00:03,\n"
    )
    spec = spec_of(
        tmp_path, impressions="impressions.csv", conversions="conversions.csv", campaign=VALUE
    )
    events, impressions, conversions = counts(engine, spec)
    assert (impressions, conversions) == (1, 1)
    assert events.quarantined() == {
        ("impressions", Reason.NO_USER): 1,
        ("impressions", Reason.BAD_TIMESTAMP): 1,
        ("conversions", Reason.NO_NUMBER): 1,
        ("conversions", Reason.BAD_VALUE): 1,
        ("conversions", Reason.NO_VALUE): 1,
    }


def test_an_empty_file_of_rows_is_no_error(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "impressions.parquet", [IMPRESSION])
    table = pq.read_table(tmp_path / "impressions.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "impressions.parquet")
    write(tmp_path / "conversions.parquet", [CONVERSION])
    _, impressions, conversions = counts(engine, spec_of(tmp_path))
    assert (impressions, conversions) == (0, 1)


EPOCHS = [
    ("1772449200", True),
    (" 1772449200", False),
    ("1772449200.6", False),
    ("1.7724492e9", False),
    ("1_772_449_200", False),
    ("0x69A5A0B0", False),
    ("1000000000000000", False),
    ("9" * 30, False),
]


def test_epochs_in_text_are_whole_numbers(engine: Engine, tmp_path: Path) -> None:
    """One row that would overflow, or that engines read differently, stops nobody."""
    write_both(tmp_path, impressions=[{**IMPRESSION, "timestamp": text} for text, _ in EPOCHS])
    write(tmp_path / "conversions.parquet", [{**CONVERSION, "timestamp": "1772449300"}])
    events, good, _ = counts(engine, spec_of(tmp_path, timestamps="epoch_seconds"))
    assert good == 1
    assert events.quarantined() == {("impressions", Reason.BAD_TIMESTAMP): len(EPOCHS) - 1}


def test_extreme_timestamps_stop_nobody(engine: Engine, tmp_path: Path) -> None:
    extremes = [-(2**62), 2**62, 0, -1]
    write_both(tmp_path)
    table = pa.table(
        {
            "user_id": ["u"] * 5,
            "publisher_id": ["P-1"] * 5,
            "advertiser_id": ["Ad-1"] * 5,
            "timestamp": pa.array([*extremes, 1_772_449_200_000_000], pa.timestamp("us", "UTC")),
            "kind": ["click"] * 5,
        }
    )
    pq.write_table(table, tmp_path / "impressions.parquet")
    events, good, _ = counts(engine, spec_of(tmp_path))
    assert good == 1
    assert events.quarantined() == {("impressions", Reason.BAD_TIMESTAMP): 2}


def test_values_in_csv_are_plain_numbers(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    good = ["12.50", "0", "1e3", "7.", "+3"]
    bad = ["1_000", "1.5d", "0x1p3", "1,5", "inf", "NaN", "1e999", "$12"]
    lines = [f'u1,Ad-1,2026-03-02 12:00:00,"{value}"' for value in good + bad]
    (tmp_path / "c.csv").write_text("\n".join(["user_id,advertiser_id,timestamp,value", *lines]))
    events, _, kept = counts(engine, spec_of(tmp_path, conversions="c.csv", campaign=VALUE))
    assert kept == len(good)
    assert events.quarantined() == {("conversions", Reason.NO_NUMBER): len(bad)}


def test_a_decimal_comma_is_read_as_declared(engine: Engine, tmp_path: Path) -> None:
    write_both(tmp_path)
    lines = [f"u1;Ad-1;2026-03-02 12:00:00;{value}" for value in ("2,5", "7", "1.5", "1.000,0")]
    (tmp_path / "c.csv").write_text("\n".join(["user_id;advertiser_id;timestamp;value", *lines]))
    csv = {"delimiter": ";", "decimal": ","}
    spec = spec_of(tmp_path, conversions="c.csv", csv=csv, campaign=VALUE)
    events, _, _ = counts(engine, spec)
    found = engine.rows("values", f"SELECT value FROM {events.conversions} ORDER BY value")
    assert found == [(2.5,), (7.0,)]
    assert events.quarantined() == {("conversions", Reason.NO_NUMBER): 2}


@pytest.mark.parametrize("values", [["$12", "-3", "", "a lot"], [None, None, None, None]])
def test_values_that_nothing_is_counted_of_do_not_matter(
    values: list[str | None], duckdb_engine: Engine, tmp_path: Path
) -> None:
    write_both(tmp_path, conversions=[{**CONVERSION, "value": value} for value in values])
    events, _, good = counts(duckdb_engine, spec_of(tmp_path))
    assert (good, events.quarantined()) == (4, {})


@pytest.mark.every_change
def test_bytes_that_are_no_utf8_never_merge_users(engine: Engine, tmp_path: Path) -> None:
    """Some engines read bad bytes as one replacement character, others stop at the file."""
    write_both(tmp_path)
    rows = [b"\xfc,P-1,Ad-1,2026-03-02 11:00:00,click", b"\xe4,P-1,Ad-1,2026-03-02 11:00:00,click"]
    header = b"user_id,publisher_id,advertiser_id,timestamp,kind"
    (tmp_path / "i.csv").write_bytes(b"\n".join([header, *rows]))
    events, good, _ = counts(engine, spec_of(tmp_path, impressions="i.csv"))
    assert good == 0
    assert events.quarantined() == {("impressions", Reason.BAD_TEXT): 2}


def test_very_many_publishers_stop_nobody(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When time and publisher no longer fit 64 bits together, the order takes 128."""
    monkeypatch.setattr("adsbpc.events.impressions._LARGEST_ORDER", 10)
    rows = [
        {**IMPRESSION, "publisher_id": f"P-{k}", "timestamp": NOON - timedelta(hours=1)}
        for k in range(9)
    ]
    write_both(tmp_path, impressions=rows)
    credits = attribute(spec_of(tmp_path), engine).credits
    assert engine.rows("credits", f"SELECT publisher_id FROM {credits}") == [("P-8",)]
