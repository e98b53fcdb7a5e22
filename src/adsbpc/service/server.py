"""Server processes: the application on uvicorn, stopped gracefully by SIGTERM or Ctrl-C.

Several can share one socket, as many as there are cores to use. Each is a whole server, with a
scheduler of its own; the databases keep them from doing anything twice. One that ends is started
again. Connections are handed to them in turn, because senders keep theirs open for long: with
SO_REUSEPORT, of 16 connections to 2 processes the busier one had 9.5 on average and up to 12 (twice
20 trials on Linux 6.18), and would have done up to three quarters of the work.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from adsbpc import telemetry
from adsbpc.errors import ServiceError
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.http.app import create_app
from adsbpc.service.http.limits import Wire
from adsbpc.service.http.sharing import Sharing
from adsbpc.service.logs import log, to_stderr
from adsbpc.service.settings import Settings

_STOP_SECONDS = 30


class Server(uvicorn.Server):
    """Tells those who listen to a stream that it stops, so that it need not wait for them. On a
    `way` it is handed connections, one a byte, after it has said that it is up. It ends at once if
    it was `told_to_stop` before it could hear that itself."""

    def __init__(
        self,
        backend: Backend,
        way: socket.socket | None = None,
        told_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backend, self._way, self._told_to_stop = backend, way, told_to_stop
        self._entering: set[asyncio.Task[object]] = set()
        section = backend.settings.service
        super().__init__(
            uvicorn.Config(
                create_app(backend),
                host=section.host,
                port=section.port,
                http=Wire,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._backend.watch.stopping = True
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        telemetry.configure()
        if self._told_to_stop():
            self._backend.watch.stopping = self.should_exit = True
        if self._way is not None:
            self._way.setblocking(False)
            asyncio.get_running_loop().add_reader(self._way, self._take, self._way)
            self._way.send(b"u")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._way is not None:
            asyncio.get_running_loop().remove_reader(self._way)
        await super().shutdown(sockets)

    def _take(self, way: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        said, handed, _, _ = socket.recv_fds(way, 1, 1)
        if not said:
            loop.remove_reader(way)
        for descriptor in handed:
            connection = socket.socket(fileno=descriptor)
            connection.setblocking(False)
            entering = loop.create_task(loop.connect_accepted_socket(self._protocol, connection))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)

    def _protocol(self) -> Wire:
        return Wire(self.config, self.server_state, self.lifespan.state)

    def listen(self) -> socket.socket:
        """The socket, before anything runs: whether the port is free is known at once."""
        section = self._backend.settings.service
        family = socket.AF_INET6 if ":" in section.host else socket.AF_INET
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((section.host, section.port))
            # Who connects from now on waits until the application is up.
            opened.listen()
        except OSError as error:
            opened.close()
            raise ServiceError(
                f"[service] host = {section.host!r}, port = {section.port}: cannot be listened on "
                f"({error.strerror}). Stop what uses it, or give another port"
            ) from None
        return opened


@contextmanager
def serving(backend: Backend) -> Iterator[str]:
    """The address of a server that runs in a thread of this process for as long as the block."""
    server = Server(backend)
    opened = server.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise ServiceError("the server did not start. Look into the log above")
            time.sleep(0.005)
        yield address_of(opened)
    finally:
        backend.watch.stopping = True
        server.should_exit = True
        thread.join()


def address_of(opened: socket.socket) -> str:
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


_LOOK_SECONDS = 0.5
_BUSY_SECONDS = 0.01


def run_workers(settings: Settings, opened: socket.socket, stopping: threading.Event) -> None:
    """Until told to stop; then each finishes what it has begun."""
    # Who is next stands first.
    sharing = Sharing.among(settings.service.workers)
    places = range(settings.service.workers)
    workers = deque(_Worker(settings, sharing.at(place)) for place in places)
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
            for turn, worker in enumerate(workers):
                if not worker.is_alive():
                    log("worker ended", code=worker.process.exitcode)
                    workers[turn] = _Worker(settings, worker.sharing)
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
    """A server process, the way on which it gets its connections, and what it shares with the
    others."""

    def __init__(self, settings: Settings, sharing: Sharing) -> None:
        self.sharing = sharing
        self._way, theirs = socket.socketpair()
        self._way.setblocking(False)
        self._is_up = False
        with theirs:
            self.process = multiprocessing.get_context("spawn").Process(
                target=_work, args=(settings, theirs, sharing)
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


def _work(settings: Settings, way: socket.socket, sharing: Sharing) -> None:
    to_stderr()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    backend = open_backend(settings, sharing=sharing)
    Server(backend, way).run(sockets=[])


def _end_with_the_parent() -> None:
    """A parent that was killed can tell nobody to stop."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
