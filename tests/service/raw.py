"""Bytes over a socket, for requests that no client would send, and what came back."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx

MEGABYTE = 2**20
_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")


@cache
def http() -> httpx.Client:
    """One for all: to make one takes longer than what it is asked for."""
    # A server hangs up on connections that nobody uses, and may do it just when one is used.
    limits = httpx.Limits(keepalive_expiry=2)
    return httpx.Client(trust_env=False, timeout=30, limits=limits)


@contextmanager
def connected(url: str, timeout: float = 10) -> Iterator[socket.socket]:
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout) as opened:
        yield opened


def received(opened: socket.socket) -> bytes:
    """Everything until the server closes, or is silent for long."""
    parts = []
    with suppress(TimeoutError, ConnectionResetError):
        while part := opened.recv(2**16):
            parts.append(part)
    return b"".join(parts)


def exchange(url: str, sent: bytes, timeout: float = 10) -> bytes:
    """What the server answers before it closes; ask it to, by `Connection: close`."""
    with connected(url, timeout) as opened:
        # It may hang up before it has read everything.
        with suppress(ConnectionError):
            opened.sendall(sent)
        return received(opened)


@dataclass(frozen=True)
class Flood:
    """How many bytes the server took before it hung up, and what it answered."""

    taken: int
    answer: bytes


def flood(url: str, head: bytes, pieces: Iterable[bytes]) -> Flood:
    """Send pieces until the server hangs up."""
    taken = 0
    with connected(url) as opened:
        opened.sendall(head)
        with suppress(ConnectionError):
            for piece in pieces:
                opened.sendall(piece)
                taken += len(piece)
        return Flood(taken, received(opened))


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer.split(b" ", 2)[1])


def assert_problem(answer: httpx.Response, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "to_do", "request_id"}
    assert told["status"] == answer.status_code
    assert told["detail"]
    assert told["to_do"]


@contextmanager
def memory_stays_flat(most_bytes: int) -> Iterator[None]:
    """Fails if this process needs that much more at any moment of the block."""
    if not _STATUS.exists():
        yield
        return
    _PEAK.write_text("5")
    before = _kilobytes("VmRSS")
    yield
    grown = (_kilobytes("VmHWM") - before) * 1_024
    assert grown < most_bytes, f"{grown:,} bytes more"


def _kilobytes(field: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])
