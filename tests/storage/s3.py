"""An S3 server of our own, started by tests: moto's, which may list late, fail, or refuse."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "bucket"
_ENTRY = re.compile(rb"<Contents>.*?<Key>(.*?)</Key>.*?</Contents>", re.DOTALL)

Start = Callable[..., Any]


class S3Server:
    """`late` while what is written appears in no list; `failing` while one request in ten does,
    after it was carried out or before, in turn; `overwriting` while conditions of writes are
    ignored. `denied` are methods that nobody may use, and `sent` is how many bytes were read."""

    def __init__(self) -> None:
        logging.getLogger("werkzeug").disabled = True
        self.requests: Counter[str] = Counter()
        self.behave()
        self._hidden: set[str] = set()
        self._lock, self._writes = Lock(), Lock()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def behave(self) -> None:
        self.late = self.failing = self.overwriting = False
        self.denied: set[str] = set()
        self.failed = self.sent = 0

    def variables(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-somebody",
            "AWS_DEFAULT_REGION": "us-east-1",
            # Clients wait longer and longer before they try again.
            "AWS_RETRY_MODE": "legacy",
            "AWS_MAX_ATTEMPTS": "8",
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _answer(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            self.requests[method] += 1
            number = self.requests.total()
            if method in ("PUT", "POST") and self.late:
                self._hidden.add(path.split("/", 2)[-1])
        if method in self.denied:
            return _refused(method, start, "403 Forbidden", "AccessDenied")
        if self.failing and number % 10 == 0:
            self.failed += 1
            if number % 20 == 0:
                with self._writes:
                    list(self._app(environ, lambda *_: None))
            return _refused(method, start, "503 Service Unavailable", "SlowDown")
        if self.overwriting:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        if method == "GET" and "list-type" in parse_qs(environ["QUERY_STRING"]):
            return self._listed(environ, start)
        # Of two writes with a condition one comes first, as a real store sees to.
        with self._writes if method == "PUT" else nullcontext():
            found = [bytes(each) for each in self._app(environ, start)]
        self.sent += sum(map(len, found)) if method == "GET" else 0
        return found

    def _listed(self, environ: dict[str, Any], start: Start) -> list[bytes]:
        told: list[Any] = []
        body = b"".join(self._app(environ, lambda *given: told.extend(given)))
        if self.late:
            body = _ENTRY.sub(
                lambda each: b"" if unquote(each[1].decode()) in self._hidden else each[0], body
            )
        headers = [each for each in told[1] if each[0].lower() != "content-length"]
        start(told[0], [*headers, ("Content-Length", str(len(body)))])
        return [body]


def _refused(method: str, start: Start, status: str, code: str) -> list[bytes]:
    body = f"<Error><Code>{code}</Code><Message>{status}</Message></Error>".encode()
    body = b"" if method == "HEAD" else body
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]
