"""Several server processes on one socket, as many as there are cores to use.

Each is a whole server, with a scheduler of its own; the databases keep them from doing anything
twice. One that ends is started again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from multiprocessing.context import SpawnProcess

from adsbpc.service.backend import open_backend
from adsbpc.service.logs import log, to_stderr
from adsbpc.service.server import Server
from adsbpc.service.settings import Settings

_LOOK_SECONDS = 0.5


def run_workers(settings: Settings, opened: socket.socket) -> None:
    """Until SIGTERM or Ctrl-C; then each finishes what it has begun."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    workers = [_start(settings, opened) for _ in range(settings.service.workers)]
    while not stopping.wait(_LOOK_SECONDS):
        for place, worker in enumerate(workers):
            if not worker.is_alive():
                log("worker ended", code=worker.exitcode)
                workers[place] = _start(settings, opened)
    for worker in workers:
        if worker.pid is not None and worker.is_alive():
            os.kill(worker.pid, signal.SIGTERM)
    for worker in workers:
        worker.join()


def _start(settings: Settings, opened: socket.socket) -> SpawnProcess:
    worker = multiprocessing.get_context("spawn").Process(target=_work, args=(settings, opened))
    worker.start()
    return worker


def _work(settings: Settings, opened: socket.socket) -> None:
    to_stderr()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    Server(open_backend(settings)).run(sockets=[opened])


def _end_with_the_parent() -> None:
    """A parent that was killed can tell nobody to stop."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
