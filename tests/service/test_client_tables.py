"""What the client sends of tables, of large pushes and of rows that nobody takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

from adsbpc import Client
from adsbpc.client import ClientError, NothingAcceptedError
from tests.service.clocks import START, SetClock
from tests.service.pushed import CONVERSION, IMPRESSION, stored
from tests.service.running import Running, running, settings_in

MOMENT = datetime(2026, 3, 1, 11, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = settings_in(tmp_path_factory.mktemp("server"))
    with running(settings, SetClock(START)) as found:
        yield found


def conversions(advertiser: str) -> list[dict[str, Any]]:
    """One without a value, which tables have as a null or as no number."""
    row = {**CONVERSION, "advertiser_id": advertiser, "timestamp": MOMENT}
    return [
        {**row, "user_id": f"u{k}", "event_id": f"e{k}", "value": 2.5 * k} for k in range(3)
    ] + [{**row, "user_id": "u3", "event_id": "e3", "value": None}]


def filtered(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    """Its index is no longer that of a whole table."""
    frame = pandas.DataFrame([*rows, {**rows[0], "user_id": "gone"}])
    return frame[frame["user_id"] != "gone"].iloc[::-1]


@pytest.mark.parametrize(
    "table",
    [
        pandas.DataFrame,
        filtered,
        lambda rows: pandas.DataFrame(rows).set_index("user_id"),
        polars.DataFrame,
        pa.Table.from_pylist,
        pa.RecordBatch.from_pylist,
    ],
    ids=["pandas", "filtered", "indexed", "polars", "arrow", "record batch"],
)
def test_tables_are_sent_row_by_row(
    server: Running, request: pytest.FixtureRequest, table: Callable[..., Any]
) -> None:
    advertiser = f"Ad-{request.node.callspec.id}"
    rows = conversions(advertiser)
    answer = server.client("advertiser", advertiser).push_conversions(table(rows))
    assert (answer["rows"], answer["accepted"]) == (4, 4)
    found = stored(server.backend.files, "conversions", advertiser)
    found = [{name: row[name] for name in CONVERSION} for row in found]
    assert sorted(found, key=lambda row: str(row["user_id"])) == rows


def impressions(count: int) -> list[dict[str, Any]]:
    return [{**IMPRESSION, "user_id": f"u{k}", "event_id": f"e{k}"} for k in range(count)]


@pytest.mark.parametrize("limit", [{"max_rows": 4}, {"max_bytes": 600}])
def test_large_pushes_are_split_and_count_once(tmp_path: Path, limit: dict[str, int]) -> None:
    rows = impressions(10)
    # In the middle of the second batch and in the last.
    rows[5]["kind"] = rows[9]["kind"] = "glance"
    settings = settings_in(tmp_path, ingest={"max_rows": 4})
    with running(settings, SetClock(START)) as server:
        key = server.key("publisher", "P-1")
        with Client(server.url, key, **limit) as client:  # type: ignore[arg-type]
            answer = client.push_impressions(iter(rows), "day-1")
            again = client.push_impressions(pa.Table.from_pylist(rows), "day-1")
        assert (answer["rows"], answer["accepted"], answer["quarantined"]) == (10, 8, 2)
        assert [each["row"] for each in answer["verdicts"]] == [5, 9]
        assert not answer["repeated"]
        assert again == {**answer, "repeated": True}
        assert len(stored(server.backend.files)) == 8


def test_a_push_that_breaks_in_the_middle_goes_on_under_its_key(tmp_path: Path) -> None:
    rows = impressions(3)
    with running(settings_in(tmp_path), SetClock(START)) as server:
        client = Client(server.url, server.key("publisher", "P-1"), max_rows=1)
        with client, pytest.raises(TypeError, match=r"row 2 is a str.*list of dicts"):
            client.push_impressions([*rows[:2], "user_id"], "day-1")
        with Client(server.url, server.key("publisher", "P-1"), max_rows=1) as client:
            answer = client.push_impressions(rows, "day-1")
        assert (answer["accepted"], answer["repeated"]) == (3, False)
        assert len(stored(server.backend.files)) == 3


def test_a_push_of_which_nothing_is_accepted_is_an_error(server: Running) -> None:
    without_zone = pandas.DataFrame(conversions("Ad-1"))
    without_zone["timestamp"] = without_zone["timestamp"].dt.tz_localize(None)
    client = server.client("advertiser", "Ad-1")
    with pytest.raises(
        NothingAcceptedError, match=r"all 4 rows of batch 'b'.*zone.*\(4 rows\)"
    ) as told:
        client.push_conversions(without_zone, "b")
    assert isinstance(told.value, ClientError)
    assert told.value.batch == "b"
    assert len(told.value.answer["verdicts"]) == 4
    # Rows that were known before are no mistake of the sender.
    assert client.push_conversions(conversions("Ad-1"))["accepted"] == 4
    assert client.push_conversions(conversions("Ad-1"))["duplicates"] == 4
