"""Several server processes behind one socket, as many as there are cores to use.

Each is a whole server, with a scheduler of its own; the databases keep them from doing anything
twice. Connections are handed to them in turn: senders keep theirs open for long, and a process
that happened to accept most of them would do most of the work. One that ends is started again.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections import deque

from adsbpc.service.backend import open_backend
from adsbpc.service.logs import log, to_stderr
from adsbpc.service.server import Server
from adsbpc.service.settings import Settings

_LOOK_SECONDS = 0.5
_BUSY_SECONDS = 0.01


def run_workers(settings: Settings, opened: socket.socket) -> None:
    """Until SIGTERM or Ctrl-C; then each finishes what it has begun."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    # Who is next stands first.
    workers = deque(_Worker(settings) for _ in range(settings.service.workers))
    while not stopping.is_set() and not all(worker.is_settled() for worker in workers):
        time.sleep(_BUSY_SECONDS)
    looked = time.monotonic()
    while not stopping.is_set():
        if not any(worker.is_up() for worker in workers):
            # Who connects meanwhile waits in the queue of the system.
            stopping.wait(_BUSY_SECONDS)
        elif select.select([opened], [], [], _LOOK_SECONDS)[0]:
            _hand_on(opened, workers)
        if time.monotonic() - looked > _LOOK_SECONDS:
            looked = time.monotonic()
            for place, worker in enumerate(workers):
                if not worker.is_alive():
                    log("worker ended", code=worker.process.exitcode)
                    workers[place] = _Worker(settings)
    opened.close()
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.process.join()


def _hand_on(opened: socket.socket, workers: deque[_Worker]) -> None:
    """The next connection to the next worker that takes it."""
    try:
        connection, _ = opened.accept()
    except OSError:
        # Gone again before it was its turn.
        return
    with connection:
        for _ in range(len(workers)):
            worker = workers[0]
            workers.rotate(-1)
            if worker.takes(connection):
                return
    log("connection refused", reason="no worker takes one")


class _Worker:
    """A server process, and the way on which it gets its connections."""

    def __init__(self, settings: Settings) -> None:
        self._way, theirs = socket.socketpair()
        self._way.setblocking(False)
        self._is_up = False
        with theirs:
            self.process = multiprocessing.get_context("spawn").Process(
                target=_work, args=(settings, theirs)
            )
            self.process.start()

    def is_alive(self) -> bool:
        return self.process.is_alive()

    def is_settled(self) -> bool:
        """Whether it is up, or will not come up."""
        return self.is_up() or not self.is_alive()

    def is_up(self) -> bool:
        """It says so, once."""
        if not self._is_up and select.select([self._way], [], [], 0)[0]:
            self._is_up = self._way.recv(1) != b""
        return self._is_up and self.is_alive()

    def takes(self, connection: socket.socket) -> bool:
        """False if it has ended, or has many waiting."""
        if not self.is_up():
            return False
        try:
            socket.send_fds(self._way, [b"c"], [connection.fileno()])
        except OSError:
            return False
        return True

    def stop(self) -> None:
        if self.process.pid is not None and self.is_alive():
            os.kill(self.process.pid, signal.SIGTERM)


def _work(settings: Settings, way: socket.socket) -> None:
    to_stderr()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    Server(open_backend(settings), way).run(sockets=[])


def _end_with_the_parent() -> None:
    """A parent that was killed can tell nobody to stop."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
