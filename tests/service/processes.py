"""Servers in processes of their own, as `adsbpc serve` runs them, for tests that kill them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from adsbpc.cli import serve
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.settings import load_settings

_PRELOADED = ["pytest", "tests.service.processes", "adsbpc.service.server", "uvloop", "duckdb"]


def prepared(directory: Path, settings: str = "") -> tuple[Path, Backend]:
    """A settings file, and what a server with it will stand on: for keys, and to look into."""
    config = directory / "service.toml"
    config.write_text(f'[service]\nport = 0\ndata = "data"\n{settings}')
    return config, open_backend(load_settings(config, {}))


@dataclass(frozen=True)
class Served:
    url: str
    process: ForkServerProcess

    def kill(self) -> None:
        """Signal 9."""
        self.process.kill()
        self.process.join()

    def stop(self) -> int | None:
        """As an operator would; what the process returns."""
        self.process.terminate()
        self.process.join(60)
        return self.process.exitcode


def start(config: Path) -> Served:
    """A fresh process of a parent that has the libraries loaded, and nothing opened."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(config, theirs), daemon=True)
    process.start()
    theirs.close()
    with ours, os.fdopen(os.dup(ours.fileno())) as printed:
        line = printed.readline()
    assert line.startswith("adsbpc serves http://"), line
    return Served(line.split()[2], process)


@contextmanager
def served(config: Path) -> Iterator[Served]:
    found = start(config)
    try:
        yield found
    finally:
        found.kill()


def _serve(config: Path, told: Connection) -> None:
    """What it prints first, its address, goes through the pipe; its log nowhere."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(told.fileno(), 1)
    os.dup2(silent, 2)
    serve.run(config, None, None, False)
