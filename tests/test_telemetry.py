"""Spans and counts hold nothing about people, and are told of releases and pushes; lineage names
data sets and no password."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adsbpc import Campaign, telemetry
from adsbpc.errors import AdsbpcError
from tests.campaign.files import edit, write_campaign
from tests.cli.program import in_a_process
from tests.service.clocks import SetClock
from tests.service.running import content, running, settings_in

USER = "somebody-whom-nobody-may-know"


class Seen:
    """What a collector would have got."""

    def __init__(self) -> None:
        self.spans, self.numbers = InMemorySpanExporter(), InMemoryMetricReader()

    def text(self) -> str:
        found = [json.loads(each.to_json()) for each in self.spans.get_finished_spans()]
        data = self.numbers.get_metrics_data()
        return json.dumps(found) + ("" if data is None else data.to_json())

    def named(self, name: str) -> list[dict[str, Any]]:
        return [
            {str(key): value for key, value in (each.attributes or {}).items()}
            for each in self.spans.get_finished_spans()
            if each.name == name
        ]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    found, spans = Seen(), TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(found.spans))
    numbers = MeterProvider([found.numbers])
    # A process has one of each for ever; others need them too.
    monkeypatch.setattr(trace, "get_tracer", lambda name: spans.get_tracer(name))
    monkeypatch.setattr(metrics, "get_meter", lambda name: numbers.get_meter(name))
    yield found
    spans.shutdown()
    numbers.shutdown()


def with_a_known_user(file: Path) -> None:
    for source in ("impressions", "conversions"):
        path = file.parent / f"{source}.parquet"
        rows = pq.read_table(path)
        users = [USER if user == "u0" else user for user in rows["user_id"].to_pylist()]
        pq.write_table(rows.set_column(0, "user_id", [users]), path)


def test_a_release_is_told_without_people(seen: Seen, tmp_path: Path) -> None:
    # A number of rows that no public figure has.
    file = write_campaign(tmp_path, slots=3, conversions_per_slot=41)
    with_a_known_user(file)
    campaign = Campaign.load(file)
    released = list(campaign.release())
    campaign.release(1)
    told = seen.named("adsbpc.release")
    assert [each["adsbpc.slot"] for each in told] == [1, 2, 3, 1]
    assert [each["adsbpc.replayed"] for each in told] == [False, False, False, True]
    charges = [sum(c.pico_rho for c in one.release.charges) for one in released]
    assert [each.get("adsbpc.charged_pico_rho") for each in told] == [*charges, None]
    text = seen.text()
    assert "adsbpc.released_slots" in text
    assert USER not in text
    assert 41 in [one.conversions for one in released]
    for each in told:
        assert set(each) <= {f"adsbpc.{name}" for name in telemetry.ATTRIBUTES}
        assert 41 not in each.values()


def test_a_failure_is_told_by_its_type_alone(seen: Seen, tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    edit(file, '"conversions.parquet"', f'"{USER}.parquet"')
    with pytest.raises(AdsbpcError):
        Campaign.load(file).release(1)
    (told,) = seen.named("adsbpc.release")
    assert told["adsbpc.error"] == "SourceError"
    assert USER not in seen.text()
    assert not any(each.events for each in seen.spans.get_finished_spans())


def test_a_push_is_told_without_people(seen: Seen, tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    settings = settings_in(tmp_path, scheduler={"enabled": False})
    with running(settings, SetClock(now)) as server:
        server.client("operator").create_campaign(content())
        rows = [
            {"user_id": f"{USER}-{k}", "advertiser_id": "Ad-1", "timestamp": now.isoformat()}
            for k in range(41)
        ]
        server.client("advertiser", "Ad-1").push_conversions(rows)
    assert seen.named("adsbpc.push") == [{"adsbpc.source": "conversions"}]
    text = seen.text()
    assert "adsbpc.pushes" in text
    assert USER not in text


class Collector(BaseHTTPRequestHandler):
    """Takes what is exported over OTLP."""

    received: ClassVar[dict[str, bytes]] = {}

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.received[self.path] = self.received.get(self.path, b"") + body
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_the_program_exports_what_it_is_asked_to(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, slots=2)
    with_a_known_user(file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        done = in_a_process("release", file, cwd=tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
        server.shutdown()
        thread.join()
    assert done.returncode == 0, done.stderr
    assert b"adsbpc.release" in Collector.received["/v1/traces"]
    assert b"adsbpc.released_slots" in Collector.received["/v1/metrics"]
    assert USER.encode() not in b"".join(Collector.received.values())


@pytest.mark.parametrize("attribute", [{"user_id": "u1"}, {"rows": 3}, {"slot": "u1"}])
def test_other_attributes_are_refused(seen: Seen, attribute: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="no attribute that may be told"):
        telemetry.count("adsbpc.test", 1, **attribute)
    with (
        pytest.raises(TypeError, match="no attribute that may be told"),
        telemetry.span("adsbpc.test", **attribute),
    ):
        pass


def test_lineage_names_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "lineage.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(log))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    file = write_campaign(tmp_path / "campaign", slots=2)
    Campaign.load(file).release()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["eventType"] for each in events] == ["START", "COMPLETE"]
    assert {each["run"]["runId"] for each in events} == {events[0]["run"]["runId"]}
    first = events[0]
    assert first["job"]["name"] == "acme.spring"
    assert [each["name"] for each in first["inputs"]] == [
        str(file.parent / "impressions.parquet"),
        str(file.parent / "conversions.parquet"),
    ]
    assert [each["name"] for each in first["outputs"]] == [
        str(file.parent / "adsbpc-releases" / "acme" / "spring")
    ]
    edit(file, '"conversions.parquet"', '"postgresql://ada:secret@127.0.0.1:1/shop#orders"')
    log.write_text("")
    other = file.with_name("other.toml")
    other.write_text(file.read_text().replace('name = "spring"', 'name = "other"\nscope = "o"')
                     .replace('scope = "acme"', ""))  # fmt: skip
    with pytest.raises(AdsbpcError):
        Campaign.load(other).release(1)
    text = log.read_text()
    assert '"FAIL"' in text
    assert "shop.orders" in text
    assert "secret" not in text
    assert "ada:" not in text
    assert "ada@" not in text


@pytest.mark.slow
def test_a_collector_that_is_not_there_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:1")
    file = write_campaign(tmp_path, slots=2)
    assert len(Campaign.load(file).release()) == 2
