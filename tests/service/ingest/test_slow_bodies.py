"""Bodies that come slowly, or never to their end, keep nobody out."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.service.clocks import START, SetClock
from tests.service.pushed import IMPRESSION
from tests.service.raw import connected, received, status_of
from tests.service.running import Running, running, settings_in


@contextmanager
def begun(server: Running, key: str, sent: bytes) -> Iterator[socket.socket]:
    """A push of which only so much has come."""
    with connected(server.url) as opened:
        head = (
            "POST /v1/impressions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {key}\r\nIdempotency-Key: slow\r\nContent-Length: 3000\r\n\r\n"
        )
        opened.sendall(head.encode() + sent)
        yield opened


@contextmanager
def held(server: Running, key: str, sent: bytes) -> Iterator[socket.socket]:
    """The same, after the server has it."""
    before = server.backend.body_room._held.total()
    with begun(server, key, sent) as opened:
        while server.backend.body_room._held.total() < before + len(sent):
            time.sleep(0.005)
        yield opened


def pushed(server: Running, publisher: str) -> int:
    rows = [{**IMPRESSION, "publisher_id": publisher}]
    return int(server.client("publisher", publisher).push_impressions(rows)["accepted"])


def answered_before_its_end(opened: socket.socket) -> int:
    return status_of(received(opened))


def test_two_slow_senders_block_nobody(tmp_path: Path) -> None:
    with running(settings_in(tmp_path), SetClock(START)) as server, ExitStack() as slow:
        for publisher in ("P-1", "P-2"):
            key = server.key("publisher", publisher)
            for _ in range(66):
                slow.enter_context(begun(server, key, b"["))
        others = [f"P-{number}" for number in range(1, 13)]
        assert [pushed(server, each) for each in others] == [1] * 12


def test_memory_of_bodies_is_bounded(tmp_path: Path) -> None:
    """Two bodies' worth: one sender has that of one."""
    limits = {"waiting_batches": 2, "max_body_bytes": 4_096}
    part = b"[" + b" " * 2_500
    with running(settings_in(tmp_path, ingest=limits), SetClock(START)) as server:
        one, two, three = (server.key("publisher", f"P-{number}") for number in (1, 2, 3))
        with held(server, one, part), held(server, two, part):
            for key in (one, two):
                with begun(server, key, part) as more:
                    assert answered_before_its_end(more) == 429
            with held(server, three, part) as third:
                rest = json.dumps([{**IMPRESSION, "publisher_id": "P-3"}])[1:]
                third.sendall(rest.rjust(3_000 - len(part)).encode())
                assert b"HTTP/1.1 200 OK" in third.recv(2**16)
            with (
                held(server, three, part),
                begun(server, server.key("publisher", "P-4"), part) as more,
            ):
                assert answered_before_its_end(more) == 429
            assert pushed(server, "P-4") == 1
        assert pushed(server, "P-1") == 1
