"""The documentation site as `make docs` builds it, and its pages as a browser asks for them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.documents.pages import ROOT

_SPHINX = next(
    line.split()[1:]
    for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    if "-m sphinx" in line
)


def build(target: Path) -> None:
    """With the options of the Makefile, by which a warning is an error."""
    *options, docs, _ = _SPHINX
    done = subprocess.run(
        [sys.executable, *options, docs, target], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


class Links(HTMLParser):
    """What a page refers to, and what may be referred to in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
            if value and name in ("id", "name"):
                self.names.add(value)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
