"""A server process: the application on uvicorn, stopped gracefully by SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from adsbpc.errors import ServiceError
from adsbpc.service.app import create_app
from adsbpc.service.backend import Backend
from adsbpc.service.wire import Wire

_STOP_SECONDS = 30


class Server(uvicorn.Server):
    """Tells those who listen to a stream that it stops, so that it need not wait for them. On a
    `way` it is handed connections, one a byte, after it has said that it is up."""

    def __init__(self, backend: Backend, way: socket.socket | None = None) -> None:
        self._backend, self._way = backend, way
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
        """The socket, before anything runs: whether the port is free is told at once."""
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
