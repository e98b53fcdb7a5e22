"""`adsbpc serve`, `adsbpc keys`, `adsbpc move` and `adsbpc demo --serve`, as real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from adsbpc import Client
from adsbpc.cli.demo_service import _before_midnight
from adsbpc.client import ClientError
from adsbpc.service.store import batches, open_store
from tests.cli.program import adsbpc
from tests.effort import first
from tests.service.running import content


@contextmanager
def process(directory: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until it is told to stop, and then says goodbye."""
    started = subprocess.Popen(
        [sys.executable, "-m", "adsbpc", *command],
        cwd=directory, env=os.environ | {"ADSBPC_SERVICE_PORT": "0"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield started
    finally:
        if started.poll() is None:
            started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)


def first_line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline()


def new_key(directory: Path, role: str, subject: str = "") -> str:
    done = adsbpc(
        "keys", "create", "--role", role, "--subject", subject, "--label", "x", "--json",
        cwd=directory,
    )  # fmt: skip
    return str(json.loads(done.stdout)["key"])


def test_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    made = adsbpc("keys", "create", "--role", "operator", "--label", "Ada", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    text = made.stdout.splitlines()[0]
    assert re.fullmatch(r"adsbpc_[0-9a-f]{16}_[\w-]{43}", text)
    new_key(tmp_path, "publisher", "P-1")
    listed = json.loads(adsbpc("keys", "list", "--json", cwd=tmp_path).stdout)["keys"]
    assert [(key["role"], key["subject"], key["state"]) for key in listed] == [
        ("operator", "", "valid"),
        ("publisher", "P-1", "valid"),
    ]
    narrow = adsbpc("keys", "list", cwd=tmp_path, COLUMNS="50").stdout
    assert all(key["key_id"] in narrow for key in listed)
    shown = adsbpc("keys", "list", cwd=tmp_path).stdout
    assert "Ada" in shown
    assert text.split("_", 2)[2] not in shown
    revoked = adsbpc("keys", "revoke", listed[0]["key_id"], cwd=tmp_path)
    assert revoked.stdout == f"Revoked {listed[0]['key_id']}.\n"
    again = adsbpc("keys", "revoke", listed[0]["key_id"], cwd=tmp_path)
    assert again.returncode == 2
    assert "no such key that is not revoked" in again.stderr


@pytest.mark.parametrize(
    ("expires", "ends"),
    [((), 365), (("--expires", "90d"), 90), (("--expires", "never"), None)],
)
def test_when_a_key_expires_is_said(
    tmp_path: Path, expires: tuple[str, ...], ends: int | None
) -> None:
    made = adsbpc("keys", "create", "--role", "operator", "--label", "x", *expires, cwd=tmp_path)
    (listed,) = json.loads(adsbpc("keys", "list", "--json", cwd=tmp_path).stdout)["keys"]
    if ends is None:
        assert listed["expires_at"] is None
        assert "It is valid until it is revoked." in made.stdout
        return
    made_at, ends_at = (datetime.fromisoformat(listed[key]) for key in ("created_at", "expires_at"))
    assert round((ends_at - made_at) / timedelta(days=1), 2) == ends
    assert f"It is valid until {listed['expires_at'][:10]}" in made.stdout


def test_a_key_expires_on_a_date(tmp_path: Path) -> None:
    command = ("keys", "create", "--role", "operator", "--label", "x", "--json", "--expires")
    made = adsbpc(*command, "2999-12-31", cwd=tmp_path)
    assert json.loads(made.stdout)["expires_at"] == "2999-12-31T00:00:00+00:00"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ("--role", "operator", "--label", "x", "--expires", "soon"),
            "--expires = 'soon': expected",
        ),
        (("--role", "operator", "--label", "x", "--expires", "2020-01-01"), "not in the future"),
        (("--role", "oprator", "--label", "x"), 'Did you mean "operator"?'),
        (("--role", "publisher", "--label", "x"), "subject"),
    ],
)
def test_bad_keys_are_told(tmp_path: Path, command: tuple[str, ...], told: str) -> None:
    done = adsbpc("keys", "create", *command, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with process(tmp_path, "serve") as started:
        url = first_line(started).split()[2]
        port = url.rpartition(":")[2]
        (tmp_path / "other").mkdir()
        done = adsbpc("serve", "--port", port, cwd=tmp_path / "other")
    assert done.returncode == 1
    assert f"port = {port}: cannot be listened on" in done.stderr


@pytest.mark.parametrize(
    ("options", "environment", "warned"),
    first(
        1,
        [
            (("--host", "0.0.0.0"), {}, True),
            (("--host", "0.0.0.0"), {"ADSBPC_SERVICE_PUBLIC_URL": "https://ads.example"}, False),
            (("--host", "127.0.0.1"), {}, False),
        ],
    ),
)
def test_keys_in_the_clear_are_warned_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    environment: dict[str, str],
    warned: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with process(tmp_path, "serve", *options) as started:
        # Once it answers: before that, a signal may come while nobody listens for it.
        httpx.get(
            f"{first_line(started).split()[2]}/healthz", timeout=60, trust_env=False
        ).raise_for_status()
        assert started.stderr is not None
        started.send_signal(signal.SIGINT)
        assert ("without TLS" in started.stderr.read()) == warned


def test_workers_share_a_port_and_are_started_again(tmp_path: Path) -> None:
    with process(tmp_path, "serve", "--workers", "2") as started:
        url = first_line(started).split()[2]
        key = new_key(tmp_path, "publisher", "P-1")
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        row = {"user_id": "u", "advertiser_id": "Ad-1", "timestamp": datetime.now(UTC)}
        with Client(url, key) as client:
            assert client.push_impressions([{**row, "kind": "view"}], "one")["accepted"] == 1
            before = servers(children)
            os.kill(before[0], signal.SIGKILL)
            while len(after := servers(children)) < 2 or before[0] in after:
                time.sleep(0.05)
        for _ in range(10):
            # A connection each, so that both are asked: what one stored the other knows.
            with Client(url, key) as client:
                assert client.push_impressions([{**row, "kind": "view"}], "one")["repeated"]
    assert started.returncode == 0
    assert not servers(children)


@pytest.mark.slow
def test_connections_are_handed_to_workers_in_turn(tmp_path: Path) -> None:
    with process(tmp_path, "serve", "--workers", "2") as started, ExitStack() as open_ones:
        url = first_line(started).split()[2]
        for _ in range(8):
            client = httpx.Client(base_url=url, trust_env=False, timeout=60)
            open_ones.enter_context(client)
            assert client.get("/readyz").status_code == 200
        # Not that of the process that accepts them: failures are counted by address.
        headers = {"Authorization": "Bearer wrong"}
        assert client.get("/v1/campaigns", headers=headers).status_code == 401
        workers = servers(Path(f"/proc/{started.pid}/task/{started.pid}/children"))
        held = [connections(worker, int(url.rpartition(":")[2])) for worker in workers]
        assert held == [4, 4]
        assert connections(started.pid, int(url.rpartition(":")[2])) == 0
    (line,) = next((tmp_path / "adsbpc-data" / "audit").iterdir()).read_text().splitlines()
    assert json.loads(line)["address"] == "127.0.0.1"


@pytest.mark.slow
def test_workers_give_one_answer(tmp_path: Path) -> None:
    """Figures of all of them, and event ids that any of them was sent."""
    with process(tmp_path, "serve", "--workers", "2") as started, ExitStack() as open_ones:
        url = first_line(started).split()[2]
        for _ in range(7):
            assert httpx.get(f"{url}/docs", trust_env=False, timeout=60).status_code == 200
        figure = 'adsbpc_requests_total{method="GET",route="/docs",status="200"} 7.0'
        # A request is counted just after it is answered.
        deadline = time.monotonic() + 30
        while figure not in httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        # One that ends takes nothing with it.
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        os.kill(servers(children)[0], signal.SIGKILL)
        for _ in range(6):
            with suppress(httpx.TransportError):
                assert figure in httpx.get(f"{url}/metrics", trust_env=False, timeout=60).text
        key = new_key(tmp_path, "publisher", "P-1")
        row = {"user_id": "u", "advertiser_id": "Ad-1", "timestamp": datetime.now(UTC)}
        rows = [{**row, "kind": "view", "event_id": f"e{k}"} for k in range(5)]
        clients = [open_ones.enter_context(Client(url, key)) for _ in range(4)]
        duplicates = [client.push_impressions(rows)["duplicates"] for client in clients]
        assert duplicates == [0, 5, 5, 5]


def connections(process: int, port: int) -> int:
    """How many of the connections to a port a process holds."""
    established, here = "01", f":{port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {
        f"socket:[{line[9]}]" for line in lines if line[1].endswith(here) and line[3] == established
    }
    held = [str(file.readlink()) for file in Path(f"/proc/{process}/fd").iterdir()]
    return len(sockets.intersection(held))


def servers(children: Path) -> list[int]:
    """The workers; one more process looks after what they share."""
    try:
        found = [int(each) for each in children.read_text().split()]
    except FileNotFoundError:
        return []
    commands = {}
    for each in found:
        with suppress(FileNotFoundError, ProcessLookupError):
            commands[each] = Path(f"/proc/{each}/cmdline").read_bytes()
    return [each for each, command in commands.items() if b"spawn_main" in command]


def test_bad_settings_end_with_2(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text("[service]\nprot = 1\n", encoding="utf-8")
    done = adsbpc("serve", "--config", "service.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert 'Did you mean "port"?' in done.stderr


def test_moving_to_postgresql(tmp_path: Path, postgresql_database: str) -> None:
    """Push, move, and go on where it was: the same keys, campaigns and batches."""
    (tmp_path / "service.toml").write_text("[service]\nport = 0\n", encoding="utf-8")
    operator, publisher = new_key(tmp_path, "operator"), new_key(tmp_path, "publisher", "P-1")
    today = datetime.now(UTC)
    row = {"user_id": "u", "advertiser_id": "Ad-1", "timestamp": today, "kind": "click"}
    row |= {"event_id": "e"}
    with process(tmp_path, "serve", "--config", "service.toml") as started:
        url = first_line(started).split()[2]
        with Client(url, operator) as client:
            start = (today + timedelta(days=1)).date().isoformat()
            campaign = client.create_campaign(content(start=start))["id"]
        with Client(url, publisher) as client:
            assert client.push_impressions([row], "batch-1")["accepted"] == 1
    done = adsbpc("move", postgresql_database, "--config", "service.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    moved = json.loads(done.stdout)
    assert moved["rows"] >= 5
    assert not (tmp_path / "adsbpc-data" / "service.sqlite").exists()
    again = adsbpc("move", postgresql_database, "--config", "service.toml", cwd=tmp_path)
    assert "is no SQLite file that could be moved" in again.stderr
    (tmp_path / "service.toml").write_text(
        f'[service]\nport = 0\ndatabase = "{postgresql_database}"\n'
        f'[ledger]\nlocation = "{postgresql_database}"\n',
        encoding="utf-8",
    )
    with process(tmp_path, "serve", "--config", "service.toml") as started:
        url = first_line(started).split()[2]
        with Client(url, operator) as client:
            assert [each["id"] for each in client.campaigns()] == [campaign]
        with Client(url, publisher) as client:
            assert client.push_impressions([row], "batch-1")["repeated"]
            # Its event ids are known there, too, and their marks have the same key.
            assert client.push_impressions([row], "batch-2")["duplicates"] == 1


def test_nothing_is_moved_under_a_server(tmp_path: Path, postgresql_database: str) -> None:
    """What it answered afterwards would be in no database."""
    (tmp_path / "service.toml").write_text("[service]\nport = 0\n", encoding="utf-8")
    publisher = new_key(tmp_path, "publisher", "P-1")
    row = {"user_id": "u", "advertiser_id": "Ad-1", "timestamp": datetime.now(UTC), "kind": "view"}
    move = ("move", postgresql_database, "--config", "service.toml")
    with (
        process(tmp_path, "serve", "--config", "service.toml") as started,
        Client(first_line(started).split()[2], publisher) as client,
    ):
        refused = adsbpc(*move, cwd=tmp_path)
        assert refused.returncode == 1
        assert "a server is at work there" in refused.stderr
        assert client.push_impressions([row], "batch-1")["accepted"] == 1
    assert adsbpc(*move, cwd=tmp_path).returncode == 0
    moved = open_store(postgresql_database, tmp_path)
    with moved.reading() as connection:
        assert connection.execute(select(batches.c.batch_key)).scalars().all() == ["batch-1"]
    moved.close()
    # Settings that still name the old file begin no new one.
    again = adsbpc("keys", "list", "--config", "service.toml", cwd=tmp_path)
    assert again.returncode == 1
    assert "was moved" in again.stderr


def test_a_misspelt_model_of_the_demo_is_told_at_once(tmp_path: Path) -> None:
    done = adsbpc("demo", "--serve", "--model", "shapely", "--directory", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert 'Did you mean "shapley"?' in done.stderr
    assert not (tmp_path / "d").exists()


def test_the_demo_serves(tmp_path: Path) -> None:
    command = ("demo", "--serve", "--directory", "d", "--users", "300", "--slots", "3",
               "--port", "0", "--day-seconds", "2")  # fmt: skip
    with process(tmp_path, *command) as started:
        assert started.stdout is not None
        said = ""
        while "stays open until Ctrl-C" not in said:
            line = started.stdout.readline()
            assert line, "the demo ended early"
            said += line
        campaign = re.search(r"(http://\S+)/campaigns/(\w+)", said)
        keys = dict(re.findall(r"Sign in as (\w+): (\S+)", said))
        assert campaign is not None
        with Client(campaign[1], keys["advertiser"]) as client:
            assert len(client.releases(campaign[2])) == 3
            with pytest.raises(ClientError, match="may not do this"):
                client.keys()
        with Client(campaign[1], keys["operator"]) as client:
            assert client.verification(campaign[2])["verified"]
    # However busy the machine was, no day was over before its rows were sent: all are counted.
    stored = 0
    for file in (tmp_path / "d" / "service" / "events").glob("*.parquet"):
        for row in pq.read_table(file, columns=["timestamp", "arrived_at"]).to_pylist():
            assert row["arrived_at"].date() == row["timestamp"].date()
            stored += 1
    assert stored > 300


def test_the_demo_waits_for_its_own_pushes() -> None:
    """On a busy machine a push takes longer than a day of its clock."""
    day = datetime(2026, 3, 1, tzinfo=UTC)
    last = day + timedelta(days=1) - timedelta(microseconds=1)
    for pushed in (day, day + timedelta(hours=13), last - timedelta(microseconds=1)):
        assert _before_midnight(pushed) == last
    assert _before_midnight(last) == last + timedelta(days=1)
