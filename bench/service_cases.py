"""The service under load: a real server process, its floor measured in the same run.

`scale` shortens a case; the full size is 1.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq
import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route

from bench.measured import Measured, seconds_of

_NDJSON, _PARQUET = "application/x-ndjson", "application/vnd.apache.parquet"
_BATCH_ROWS = 1_000
_BATCHES = 1_000
_SENDERS = 16
_WORKERS = 2
_PUBLISHERS, _SLOTS = 50, 31
_PAGES = 300
_LOAD_SECONDS = 300
# Whose memory is compared with that after a quarter of them.
_ROWS_IN_ALL = 4_000_000


@contextmanager
def _process(directory: Path, *more: str) -> Iterator[tuple[str, int]]:
    """Address and number of a server process."""
    command = [sys.executable, "-m", "adsbpc", "serve", "--port", "0", *more]
    process = subprocess.Popen(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[2], process.pid
    finally:
        process.terminate()
        process.wait()


def _key(directory: Path, role: str, subject: str = "", *more: str) -> str:
    command = [sys.executable, "-m", "adsbpc", "keys", "create", "--json", *more]
    command += ["--role", role, "--subject", subject, "--label", "bench"]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return str(json.loads(done.stdout)["key"])


def _rows(batch: int) -> list[dict[str, str]]:
    moment = datetime.now(UTC) - timedelta(hours=1)
    return [
        {
            "user_id": f"user-{(batch * 7919 + row * 104729) % 1_000_003:016x}",
            "publisher_id": "P-1",
            "advertiser_id": f"Ad-{row % 5}",
            "timestamp": (moment + timedelta(milliseconds=row)).isoformat(),
            "kind": "click" if row % 3 else "view",
            "event_id": f"{batch:08x}-{row:08x}",
        }
        for row in range(_BATCH_ROWS)
    ]


class _Sender:
    """Pushes bodies over one connection that stays open."""

    def __init__(self, url: str, key: str, media_type: str = _NDJSON) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        self._key, self._media_type = key, media_type

    def push(self, number: str, body: bytes) -> None:
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": self._media_type,
            "Idempotency-Key": number,
        }
        while True:
            self._connection.request("POST", "/v1/impressions", body, headers)
            answer = self._connection.getresponse()
            content = answer.read()
            if answer.status == 429:
                time.sleep(0.01)
                continue
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {content[:300]!r}")
            return

    def get(self, path: str, cookie: str = "") -> bytes:
        self._connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return content


def _together(count: int, work: Callable[[int], None]) -> float:
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


def ingest_of_batches(scale: float) -> Measured:
    """Batches of 1,000 impressions as NDJSON, parsed, checked, synced and answered; the floor
    writes the same rows, as tables in memory, to one Parquet file a batch."""
    return _ingest(scale, _NDJSON, lambda table, _body, file: pq.write_table(table, file))


def ingest_of_parquet_batches(scale: float) -> Measured:
    """The same batches as Parquet bodies, against the same floor."""
    return _ingest(scale, _PARQUET, lambda table, _body, file: pq.write_table(table, file))


def ingest_beside_parsing(scale: float) -> Measured:
    """NDJSON again; the floor starts from it too: pyarrow parses each body and writes it."""
    return _ingest(
        scale, _NDJSON,
        lambda _table, body, file: pq.write_table(pj.read_json(pa.BufferReader(body)), file),
    )  # fmt: skip


def _ingest(
    scale: float, media_type: str, write: Callable[[pa.Table, bytes, Path], None]
) -> Measured:
    count = max(_SENDERS, round(_BATCHES * scale))
    batches = [_rows(batch) for batch in range(count)]
    tables = [pa.Table.from_pylist(rows) for rows in batches]
    if media_type == _NDJSON:
        bodies = ["\n".join(map(json.dumps, rows)).encode() for rows in batches]
    else:
        bodies = [_as_parquet(rows) for rows in batches]
    with TemporaryDirectory() as folder:
        directory = Path(folder)

        def plain() -> None:
            for number, (table, body) in enumerate(zip(tables, bodies, strict=True)):
                write(table, body, directory / f"{number}.parquet")

        plain()
        floor = seconds_of(plain)
        key = _key(directory, "publisher", "P-1")
        with _process(directory, "--workers", str(_WORKERS)) as (url, number):
            senders = [_Sender(url, key, media_type) for _ in range(_SENDERS)]

            def send(own: int) -> None:
                for batch in range(own, count, _SENDERS):
                    senders[own].push(f"batch-{batch}", bodies[batch])

            # Until every worker is up.
            for sender in senders:
                sender.get("/readyz")
            seconds = _together(_SENDERS, send)
            return Measured.of(floor, seconds, _peak_mib(number))


def _as_parquet(rows: list[dict[str, str]]) -> bytes:
    moments = [datetime.fromisoformat(row["timestamp"]) for row in rows]
    table = pa.Table.from_pylist(rows)
    position = table.schema.get_field_index("timestamp")
    table = table.set_column(position, "timestamp", pa.array(moments, pa.timestamp("us", "UTC")))
    content = pa.BufferOutputStream()
    pq.write_table(table, content)
    return bytes(content.getvalue())


def dashboard_page(scale: float) -> Measured:
    """A campaign's page with 31 slots of 50 publishers, signed in; the floor is a static file of
    the same size from the same kind of server."""
    from bench.service_data import released_campaign, signed_in

    count = max(5, round(_PAGES * scale))
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        path = released_campaign(directory, _SLOTS, _PUBLISHERS)
        settings = ("--config", "service.toml")
        key = _key(directory, "operator", "", *settings)
        with _process(directory, *settings) as (url, number):
            sender = _Sender(url, key)
            cookie = signed_in(url, key)
            content = sender.get(path, cookie)
            seconds = seconds_of(lambda: [sender.get(path, cookie) for _ in range(count)])
            peak = _peak_mib(number)
        (directory / "page.html").write_bytes(content)
        with _static(directory / "page.html") as url:
            sender = _Sender(url, "")
            sender.get("/")
            floor = seconds_of(lambda: [sender.get("/") for _ in range(count)])
    return Measured.of(floor, seconds, peak)


def memory_under_load(scale: float) -> Measured:
    """Five minutes of pushes and pages: the ratio is the memory of the last minute to that of the
    second."""
    length = max(5.0, _LOAD_SECONDS * scale)
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        key = _key(directory, "publisher", "P-1")
        (directory / "service.toml").write_text('[ingest]\ncompact_every = "5s"\n')
        with _process(directory, "--config", "service.toml") as (url, number):
            # Up, and with everything loaded that the first batch needs.
            _Sender(url, key).push("first", "\n".join(map(json.dumps, _rows(10**9))).encode())
            ends = time.perf_counter() + length
            taken: list[tuple[float, int]] = []

            def send(own: int) -> None:
                sender, batch = _Sender(url, key), 0
                while time.perf_counter() < ends:
                    body = "\n".join(map(json.dumps, _rows(own * 10**6 + batch))).encode()
                    sender.push(f"{own}-{batch}", body)
                    sender.get("/sign-in")
                    batch += 1
                    if own == 0:
                        taken.append((time.perf_counter(), _now_mib(number)))

            _together(2, send)
            fifths = [
                max(mib for at, mib in taken if at <= ends - (4 - k) * length / 5) for k in range(5)
            ]
            return Measured(
                ratio=round(fifths[4] / fifths[1], 3),
                floor_seconds=round(length / 5, 3),
                seconds=round(length, 3),
                peak_mib=_peak_mib(number),
            )


def memory_by_rows(scale: float) -> Measured:
    """Four million rows with event ids, compacted meanwhile: the ratio is the memory of the larger
    worker after all of them to that after the first million. Seconds are those of the pushes."""
    count = max(4 * _SENDERS, round(_ROWS_IN_ALL / _BATCH_ROWS * scale))
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        key = _key(directory, "publisher", "P-1")
        (directory / "service.toml").write_text('[ingest]\ncompact_every = "5s"\n')
        more = ("--workers", str(_WORKERS), "--config", "service.toml")
        with _process(directory, *more) as (url, number):
            senders = [_Sender(url, key) for _ in range(_SENDERS)]
            for sender in senders:
                sender.get("/readyz")

            def push(first: int, last: int) -> float:
                def send(own: int) -> None:
                    for batch in range(first + own, last, _SENDERS):
                        body = "\n".join(map(json.dumps, _rows(batch))).encode()
                        senders[own].push(f"batch-{batch}", body)

                return _together(_SENDERS, send)

            floor = push(0, count // 4)
            before = _largest_mib(number)
            seconds = push(count // 4, count)
            after, peak = _largest_mib(number), _peak_mib(number)
    return Measured(round(after / before, 3), round(floor, 3), round(floor + seconds, 3), peak)


@contextmanager
def _static(file: Path) -> Iterator[str]:
    app = Starlette(routes=[Route("/", lambda _request: FileResponse(file))])
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def _now_mib(process: int) -> int:
    return _memory(process, "VmRSS")


def _peak_mib(process: int) -> int:
    return _memory(process, "VmHWM")


def _largest_mib(process: int) -> int:
    """Of the workers of a process, the one that takes most."""
    return max(_memory(child, "VmRSS") for child in _children(process))


def _memory(process: int, field: str) -> int:
    """Of a process and its workers."""
    own = next(
        int(line.split()[1]) // 1024
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith(field)
    )
    return own + sum(_memory(child, field) for child in _children(process))


def _children(process: int) -> list[int]:
    return [
        int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


SERVICE_CASES: dict[str, Callable[[float], Measured]] = {
    case.__name__: case
    for case in (
        ingest_of_batches,
        ingest_of_parquet_batches,
        ingest_beside_parsing,
        dashboard_page,
        memory_under_load,
        memory_by_rows,
    )
}
