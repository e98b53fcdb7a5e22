"""Nobody reads raw events: not by any endpoint, not in logs, audit files or figures."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.client import NothingAcceptedError
from tests.service.clocks import SetClock
from tests.service.matrix import (
    DAY,
    NEXT_DAY,
    TABLE,
    Call,
    World,
    callers_of,
    conversion,
    impression,
    pages,
    users_on_disk,
)
from tests.service.raw import http
from tests.service.running import Running, content, running, settings_in

MARK = "mark4711"


def pushed_marks(server: Running) -> None:
    """Rows of every verdict that carry the mark where personal data stands."""
    marked = f"{MARK}-user"
    impressions = [
        impression(marked, event_id=f"{MARK}-i"),
        impression(marked, event_id=f"{MARK}-i"),
        impression(marked, kind=MARK),
        impression(marked, timestamp=MARK),
        impression(f"{MARK}\0"),
        impression(MARK * 40),
        impression(marked, publisher_id=MARK),
    ]
    conversions = [
        conversion(marked, event_id=f"{MARK}-c", kind=MARK),
        conversion(marked, event_id=f"{MARK}-c"),
        conversion(marked, value=-1),
        conversion(marked, value=MARK),
        conversion(marked, advertiser_id=MARK),
    ]
    for answer in (
        server.client("publisher", "P-1").push_impressions(impressions, "marked"),
        server.client("advertiser", "Ad-1").push_conversions(conversions, "marked"),
    ):
        assert min(answer["accepted"], answer["duplicates"], answer["quarantined"]) > 0
        assert MARK not in json.dumps(answer)


def readable(answer: httpx.Response) -> str:
    if answer.headers.get("content-type") == "application/vnd.apache.parquet":
        return str(pq.read_table(pa.BufferReader(answer.content)).to_pylist())
    return answer.text


def test_nothing_shows_raw_events(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    clock = SetClock(DAY)
    settings = settings_in(tmp_path, scheduler={"enabled": False})
    with running(settings, clock) as server:
        operator = server.client("operator")
        campaign = operator.create_campaign(content(slots=1))["id"]
        pushed_marks(server)
        clock.moment = NEXT_DAY
        assert len(operator.release(campaign)) == 1
        server.show(campaign)
        crawled = World(server, {}, callers_of(server))
        gets = [path for method, path in TABLE if method == "GET"]
        gets += [path for method, path in pages() if method == "GET"]
        gets += [
            f"/v1/campaigns/{campaign}/report?format={name}" for name in ("csv", "parquet", "html")
        ]
        answered = 0
        for path in gets:
            asked = path.format(campaign=campaign, slot=1, file="x")
            for caller in crawled.callers:
                answer = crawled.send("GET", asked, caller, Call({}))
                assert answer.status_code < 500
                assert MARK not in readable(answer), f"{asked} as {caller}"
                answered += answer.status_code == 200
        assert answered > 60
        assert MARK in str(users_on_disk(server, "impressions"))
        data = server.backend.settings.data
    told = [str(vars(record)) for record in caplog.records if "http" not in record.name]
    assert len(told) > 100
    assert not [line for line in told if MARK in line]
    # How long work on events takes follows from them, too.
    requests = [record.fields for record in caplog.records if record.msg == "request"]  # type: ignore[attr-defined]
    timed = {(each["method"], "milliseconds" in each) for each in requests}
    assert timed == {("GET", True), ("POST", False)}
    # Besides the events and the books of who contributed what, no file knows anybody.
    kept = [path for path in data.rglob("*") if path.is_file()]
    known = {path.relative_to(data).parts[0] for path in kept if MARK.encode() in path.read_bytes()}
    assert known <= {"events", "adsbpc-books"}
    assert len({path.relative_to(data).parts[0] for path in kept}) > 4


def figures(url: str) -> dict[str, float]:
    lines = http().get(f"{url}/metrics").text.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    # Without the request for the figures themselves.
    return {name: float(value) for name, value in samples.items() if 'route="/metrics"' not in name}


def test_figures_do_not_change_with_what_is_pushed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, scheduler={"enabled": False})
    with running(settings, SetClock(DAY)) as server:
        check_figures(server)


def check_figures(server: Running) -> None:
    publisher, advertiser = server.client("publisher", "P-1"), server.client("advertiser", "Ad-1")
    publisher.push_impressions([impression("first")])
    before = figures(server.url)
    assert before
    for number in range(5):
        rows = [impression(f"u{number}-{row}", event_id=f"e{row % 3}") for row in range(number)]
        with suppress(NothingAcceptedError):
            publisher.push_impressions([*rows, impression("bad", kind="?")], f"figures-{number}")
        advertiser.push_conversions([conversion(f"u{number}")] * number, f"figures-{number}")
    assert figures(server.url) == before
    operator = server.client("operator")
    operator.release(operator.create_campaign(content())["id"])
    added = set(figures(server.url)) - set(before)
    assert added
    assert not [name for name in added if "seconds" in name]
