"""Impressions that are pushed after the end of a slot: counted, or told to be late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.campaign import attribute
from adsbpc.client import ClientError
from adsbpc.engines.duckdb_engine import DuckDBEngine
from tests.service.clocks import SetClock
from tests.service.pushed import CONVERSION, IMPRESSION
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, tzinfo=UTC)
NOON, DAY, MINUTE = START + timedelta(hours=12), timedelta(days=1), timedelta(minutes=1)
WAITING = {"settle": "90m", "wait": "2d"}


def matched(server: Running, campaign: str, slot: int) -> int:
    """Conversions with a touch that a release of the slot would count."""
    registered = server.backend.campaigns.get(campaign)
    assert registered is not None
    engine = DuckDBEngine()
    try:
        with server.backend.campaigns.ready(registered, slot) as ready:
            credits = attribute(ready.spec, engine, slot).credits
            return len(engine.rows("credits", f"SELECT user_id FROM {credits}"))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("pushed", "slots"),
    [(6 * MINUTE, [1, 0, 0]), (3 * 60 * MINUTE, [0, 1, 0]), (2 * DAY, [0, 0, 0])],
    ids=["six minutes after the end", "after it was released", "too late"],
)
def test_a_late_push_counts_once(tmp_path: Path, pushed: timedelta, slots: list[int]) -> None:
    """A publisher pushes the click of a purchase of the first day so long after its end."""
    clock = SetClock(NOON)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "every": "1s", **WAITING})
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content())
        assert campaign["content"]["events"] == WAITING
        purchase = CONVERSION | {"timestamp": NOON}
        server.client("advertiser", "Ad-1").push_conversions([purchase], "sale")
        found = []
        click = IMPRESSION | {"timestamp": NOON - 60 * MINUTE}
        is_pushed, answer = False, {}
        for slot in (1, 2, 3):
            settled = START + slot * DAY + timedelta(minutes=95)
            if not is_pushed and START + DAY + pushed <= settled:
                clock.moment = START + DAY + pushed
                answer = server.client("publisher", "P-1").push_impressions([click], "late")
                is_pushed = True
            clock.moment = settled
            found.append(matched(server, campaign["id"], slot))
            operator.release(campaign["id"], slot)
    assert found == slots
    assert is_pushed
    assert answer["accepted"] == 1
    assert answer["after_release"] == (not any(slots))


def test_campaigns_of_before_go_on_as_they_were(tmp_path: Path) -> None:
    """One that says nothing of late impressions has all that are there when a slot is released,
    also from files that do not say when rows arrived."""
    clock = SetClock(NOON)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "every": "1s", **WAITING})
    with running(settings, clock) as server:
        book, files = server.backend.campaigns, server.backend.files
        before = book.spec(content(name="before", scope="before"))
        assert before.events.settle is None
        server.client("advertiser", "Ad-1").push_conversions(
            [CONVERSION | {"timestamp": NOON}], "a"
        )
        server.client("publisher", "P-1").push_impressions([IMPRESSION], "b")
        (file,) = files.live("impressions", "Ad-1")
        pq.write_table(pq.read_table(file).drop_columns(["arrived_at"]), file)
        late = IMPRESSION | {"user_id": "u2", "event_id": "e2"}
        clock.moment = START + DAY + 6 * MINUTE
        server.client("publisher", "P-1").push_impressions([late], "c")
        campaign = server.client("operator").create_campaign(content(start="2026-03-02"))
        registered = book.get(campaign["id"])
        assert registered is not None
        with book.ready(registered, 1) as ready:
            sources = ready.spec.events.model_dump(include={"impressions", "conversions"})
        assert set(sources) == {"impressions", "conversions"}
        assert {pq.read_schema(each).names.count("arrived_at") for each in
                files.live("impressions", "Ad-1")} == {0, 1}  # fmt: skip
        assert matched(server, campaign["id"], 1) == 0


def test_a_campaign_says_of_events_how_long_it_waits_and_nothing_else(tmp_path: Path) -> None:
    with running(settings_in(tmp_path), SetClock(NOON)) as server:
        operator = server.client("operator")
        own: dict[str, Any] = {**content(), "events": {"settle": "1h"}}
        created = operator.create_campaign(own)
        assert created["content"]["events"] == {"settle": "1h", "wait": "0d"}
        wrong: list[Any] = [{"engine": "spark"}, {"settle": "1h", "conversions": "/x"}, [], 3]
        for events in wrong:
            with pytest.raises(ClientError, match="settle and wait"):
                operator.create_campaign({**content(name="other"), "events": events})
        with pytest.raises(ClientError, match="needs settle"):
            operator.create_campaign({**content(name="other"), "events": {"wait": "1h"}})


def test_compaction_takes_files_that_do_not_say_when_rows_arrived(tmp_path: Path) -> None:
    from adsbpc.service.ingest.compaction import compact

    clock = SetClock(NOON)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "every": "1s"})
    with running(settings, clock) as server:
        publisher, files = server.client("publisher", "P-1"), server.backend.files
        publisher.push_impressions([IMPRESSION], "a")
        (file,) = files.live("impressions", "Ad-1")
        pq.write_table(pq.read_table(file).drop_columns(["arrived_at"]), file)
        publisher.push_impressions([IMPRESSION | {"event_id": "e2"}], "b")
        assert compact(files, server.backend.store, "impressions") == 2
        (file,) = files.live("impressions", "Ad-1")
        arrived = pq.read_table(file)["arrived_at"]
        assert arrived.type == pa.timestamp("us", "UTC")
        assert sorted(each is None for each in arrived.to_pylist()) == [False, True]


@pytest.mark.parametrize(
    ("events", "after_release"),
    [({"settle": "1h", "wait": "0d"}, 1), ({"settle": "5d", "wait": "0d"}, 0)],
    ids=["shorter than the server's", "longer than the server's"],
)
def test_late_is_what_missed_a_campaign_and_not_what_the_settings_would_have(
    tmp_path: Path, events: dict[str, str], after_release: int
) -> None:
    """The settings would wait a day. A campaign says how long it waits; who is not named by it is
    told nothing of it, and one that was closed is no longer asked."""
    clock = SetClock(NOON)
    scheduler = {"enabled": False, "every": "1s", "settle": "12h", "wait": "12h"}
    with running(settings_in(tmp_path, scheduler=scheduler), clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign({**content(), "events": events})["id"]
        publisher = server.client("publisher", "P-1")

        def late(name: str, happened: datetime) -> int:
            click = IMPRESSION | {"timestamp": happened, "event_id": name}
            return int(publisher.push_impressions([click], name.replace(" ", "-"))["after_release"])

        assert late("in time", NOON) == 0
        clock.moment = START + DAY + 2 * 60 * MINUTE
        short = bool(after_release)
        assert late("missed", NOON) == after_release
        assert late("of a slot that is not over", clock.moment - 90 * MINUTE) == 0
        assert late("of long before the campaign", START - 60 * DAY) == 0
        assert late("reached it", START - DAY) == after_release
        unnamed = IMPRESSION | {"publisher_id": "P-9", "timestamp": NOON}
        answer = server.client("publisher", "P-9").push_impressions([unnamed], "unnamed")
        assert answer["after_release"] == 0
        if short:
            operator.release(campaign, 1)
            operator.close_campaign(campaign)
            clock.pass_seconds(60)
            assert late("nobody waited for it", NOON) == 0


def test_impressions_that_are_in_no_count_are_told(tmp_path: Path) -> None:
    """Credited all the same, because conversions wait for them: `after_release` says nothing."""
    clock = SetClock(NOON)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "every": "1s", **WAITING})
    counting = content()
    counting["privacy"] = {"rho": 1.0, "mechanism": "personal-budget"}
    counting["measure"] = [
        {"name": "attributed", "share": 0.5},
        {"name": "shown", "metric": "impressions", "share": 0.5},
    ]
    with running(settings, clock) as server:
        server.client("operator").create_campaign(counting)
        publisher = server.client("publisher", "P-1")
        clock.moment = START + DAY + 2 * 60 * MINUTE
        moments = {"missed": NOON, "before it": START - DAY, "today": clock.moment - 60 * MINUTE}
        for name, moment in moments.items():
            row = IMPRESSION | {"timestamp": moment, "event_id": name}
            answer = publisher.push_impressions([row], name.replace(" ", "-"))
            assert (answer["after_release"], answer["after_count"]) == (0, name == "missed")
        deliveries = publisher.deliveries()
        assert deliveries["rows"]["after_count"] == 1
        assert "quarantined" not in deliveries["rows"]
        assert [each["after_count"] for each in deliveries["batches"]].count(1) == 1


def test_a_campaign_does_not_wait_for_somebody_to_start(tmp_path: Path) -> None:
    """There are rows of before it, and none in its slots: whoever came first would show."""
    clock = SetClock(NOON)
    settings = settings_in(tmp_path, scheduler={"enabled": False, "every": "1s"})
    with running(settings, clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        old = IMPRESSION | {"timestamp": NOON - 300 * DAY}
        server.client("publisher", "P-1").push_impressions([old], "old")
        clock.moment += 2 * DAY
        assert server.client("operator").release(campaign)
