"""Who has no key fills no disk; and a disk that is full is told."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from adsbpc import Client
from adsbpc.client import ClientError
from adsbpc.service.http.strangers import Strangers
from tests.service.clocks import SetClock
from tests.service.processes import prepared
from tests.service.raw import exchange
from tests.service.running import Running, running, settings_in

REQUESTS = 150


def left_out(sentences: list[str]) -> int:
    return sum(int(re.findall(r"^\d+", sentence)[0]) for sentence in sentences)


def audit_lines(server: Running) -> list[dict[str, str]]:
    return server.backend.audit.newest(10_000)


def test_requests_without_a_key_leave_few_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "adsbpc.service")
    with running(settings_in(tmp_path)) as server, httpx.Client(trust_env=False) as http:
        for _ in range(REQUESTS):
            assert http.get(f"{server.url}/v1/campaigns").status_code == 401
            assert http.get(f"{server.url}/nothing-here").status_code == 404
        reader = server.client("reader")
        for _ in range(30):
            reader.campaigns()
    lines = audit_lines(server)
    nobody = [line["reason"] for line in lines if not line["role"]]
    # A minute may have ended in between.
    assert 11 <= len(nobody) <= 22
    singles = [reason for reason in nobody if reason == "no key"]
    assert len(singles) + left_out(list(set(nobody) - {"no key"})) == REQUESTS
    # Who has a key is written down each time.
    assert len(lines) - len(nobody) == 30
    told = [getattr(record, "fields", {}) for record in caplog.records]
    by_status = [fields.get("status") for fields in told]
    assert by_status.count(200) == 30
    listed = by_status.count(401) + by_status.count(404)
    assert 10 <= listed <= 20
    summaries = [fields["left_out"] for fields in told if "left_out" in fields]
    assert listed + left_out(summaries) == 2 * REQUESTS
    assert summaries[0].endswith("from 127.0.0.1")


def test_however_many_addresses_there_are() -> None:
    clock, told = SetClock(), list[str]()
    strangers = Strangers(clock, told.append)
    written = sum(strangers.may_write(f"10.0.{n // 200}.{n % 200}") for n in range(30_000))
    assert written == 100
    assert len(strangers._left_out) <= 10_001
    assert told == []
    clock.pass_seconds(60)
    assert strangers.may_write("192.0.2.1")
    assert left_out(told) == 29_900
    # A clock that is set back silences nobody for long.
    clock.pass_seconds(-86_400)
    assert strangers.may_write("192.0.2.1")
    strangers.close()
    assert len(told) == 1


def test_a_valid_key_passes_where_others_sent_wrong_ones(tmp_path: Path) -> None:
    statuses = []
    with running(settings_in(tmp_path)) as server, httpx.Client(trust_env=False) as http:
        for key in ["wrong"] * 12 + [server.key("reader")] + ["wrong"] * 12:
            headers = {"Authorization": f"Bearer {key}"}
            statuses.append(http.get(f"{server.url}/v1/whoami", headers=headers).status_code)
    assert statuses == [401] * 10 + [429] * 2 + [200] + [401] * 10 + [429] * 2


def test_what_is_no_http_is_not_logged_one_by_one(tmp_path: Path) -> None:
    config, _ = prepared(tmp_path)
    with server_process(config) as (url, process):
        for _ in range(20):
            assert b"400 Bad Request" in exchange(url, b"no HTTP at all\r\n\r\n")
        process.terminate()
        _, logged = process.communicate(timeout=60)
    assert "Invalid HTTP request" not in logged


@contextmanager
def server_process(config: Path, *before: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [*before, sys.executable, "-m", "adsbpc", "serve", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("adsbpc serves"), line
        yield line.split()[2], process
    finally:
        process.kill()
        process.wait()


def readiness(url: str) -> tuple[int, str]:
    answer = httpx.get(f"{url}/readyz", trust_env=False, timeout=60)
    return answer.status_code, answer.json().get("detail", "")


def test_too_little_room_is_told(tmp_path: Path) -> None:
    nearly = settings_in(tmp_path, service={"port": 0, "data": "data", "least_free_bytes": 2**60})
    with running(nearly) as server:
        status, detail = readiness(server.url)
        assert status == 503
        assert "The disk is full" in detail
    with running(settings_in(tmp_path)) as server:
        assert readiness(server.url) == (200, "")


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A small one of its own, which only the server sees."""
    disk = tmp_path / "disk"
    disk.mkdir()
    small = ("unshare", "--map-root-user", "--mount", "sh", "-c")
    mount = f"mount -t tmpfs -o size=40m none {disk}"
    if subprocess.run([*small, mount], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk of their own")
    config = tmp_path / "service.toml"
    config.write_text(f'[service]\nport = 0\ndata = "{disk}/data"\nleast_free_bytes = 10000000\n')
    key = f"{sys.executable} -m adsbpc keys create --role publisher --subject P-1 --label x --json"
    script = f'{mount} && {key} --config {config} >{tmp_path}/key && exec "$@"'
    row = {"user_id": "u", "advertiser_id": "Ad-1", "timestamp": "2026-03-01T11:00:00Z"}
    with server_process(config, *small, script, "sh") as (url, process):
        text = json.loads((tmp_path / "key").read_text())["key"]
        fill = Path(f"/proc/{process.pid}/root{disk}/fill")
        with Client(url, text, attempts=1) as publisher:
            assert readiness(url) == (200, "")
            with pytest.raises(OSError, match="No space left"):
                fill.write_bytes(b"x" * 40 * 2**20)
            status, detail = readiness(url)
            assert (status, "The disk is full" in detail) == (503, True)
            with pytest.raises(ClientError) as refused:
                publisher.push_impressions([{**row, "kind": "click"}], "b")
            assert refused.value.status == 503
            fill.unlink()
            assert readiness(url) == (200, "")
            assert publisher.push_impressions([{**row, "kind": "click"}], "b")["accepted"] == 1
