"""Servers in processes of their own, as `adsbpc serve` runs them, for tests that kill them.

They are forked from one process that has everything imported: so one starts in a moment.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from adsbpc.cli import serve
from adsbpc.service import backend as put_together
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.settings import load_settings


def prepared(directory: Path, settings: str = "") -> tuple[Path, Backend]:
    """A settings file, and what a server with it will stand on: for keys, and to look into."""
    config = directory / "service.toml"
    config.write_text(f'[service]\nport = 0\ndata = "data"\n{settings}')
    return config, open_backend(load_settings(config, {}))


@dataclass(frozen=True)
class Served:
    url: str
    pid: int

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an operator would."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        deadline = time.monotonic() + 60
        try:
            os.kill(self.pid, number)
            while time.monotonic() < deadline:
                os.kill(self.pid, 0)
                time.sleep(0.002)
        except ProcessLookupError:
            return
        raise AssertionError(f"the server does not end by signal {number}")


def start(config: Path, hurried: bool = False) -> Served:
    """One that is hurried compacts fifty times as often as can be set."""
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps([str(config), hurried]) + "\n")
    parent.stdin.flush()
    pid, line = json.loads(parent.stdout.readline())
    assert line.startswith("adsbpc serves http://"), line
    return Served(line.split()[2], pid)


@contextmanager
def served(config: Path) -> Iterator[Served]:
    found = start(config)
    try:
        yield found
    finally:
        found.kill()


@cache
def _parent() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from tests.service import processes; processes.be_parent()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    atexit.register(process.kill)
    return process


def be_parent() -> None:
    """For each line that comes, fork a server, and tell its number and what it prints first."""
    import duckdb  # noqa: F401
    import pandas  # noqa: F401 (by pyarrow, at its first use)
    import uvloop  # noqa: F401

    import adsbpc.service.server  # noqa: F401

    # Nobody has to wait for those that end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for asked in sys.stdin:
        config, hurried = json.loads(asked)
        theirs, ours = os.pipe()
        pid = os.fork()
        if pid == 0:
            _be_server(Path(config), hurried, ours)
        os.close(ours)
        with os.fdopen(theirs) as printed:
            sys.stdout.write(json.dumps([pid, printed.readline()]) + "\n")
            sys.stdout.flush()


def _be_server(config: Path, hurried: bool, told: int) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    silent = os.open(os.devnull, os.O_RDWR)
    for source, target in ((silent, 0), (told, 1), (silent, 2)):
        os.dup2(source, target)
    if hurried:
        put_together.MICROSECONDS_PER_SECOND *= 50  # type: ignore[attr-defined]
    serve.run(config, {}, False)
    os._exit(0)
