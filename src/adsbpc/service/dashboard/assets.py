"""Static files of the pages: held in memory, each under a name that changes with its content.

Style and script of the report are the report's own, so that both pages look and draw alike. These
and the charts' library are put together here and are no files, which is what StaticFiles serves.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import PurePosixPath

from fastapi import APIRouter, Request, Response

from adsbpc.report import page_parts
from adsbpc.service.http.problems import Problem

router = APIRouter()

FOREVER = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_SCRIPTS = ("draw.js", "keys.js", "live.js", "planner.js")
_NAMES = ("style.css", "report.js", "vega.js", "icon.svg", *_SCRIPTS)


@dataclass(frozen=True)
class Asset:
    content: bytes
    packed: bytes
    media_type: str


@cache
def asset(name: str) -> Asset:
    content = _text(name).encode()
    media_type = _MEDIA_TYPES[PurePosixPath(name).suffix]
    return Asset(content, gzip.compress(content, mtime=0), media_type)


def _text(name: str) -> str:
    if name == "style.css":
        return f"{page_parts.style()}\n{_own(name)}"
    if name == "report.js":
        return page_parts.script()
    if name == "vega.js":
        return page_parts.libraries()
    return _own(name)


def _own(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


@cache
def url(name: str) -> str:
    """Where a page finds a file: browsers keep what they have until it changes."""
    path = PurePosixPath(name)
    return f"/static/{path.stem}-{_fingerprint(name)}{path.suffix}"


def _fingerprint(name: str) -> str:
    if name == "vega.js":
        # By its version, because putting the libraries together takes a second.
        return version("vl-convert-python")
    return sha256(asset(name).content).hexdigest()[:12]


@router.get("/static/{file}")
def answer(request: Request, file: str) -> Response:
    """The file of a URL, packed for who takes that.

    A page that was loaded before an upgrade gets today's file, which it must not keep.
    """
    name = next((each for each in _NAMES if _is_version_of(file, each)), None)
    if name is None:
        raise Problem(404, "Not found", f"There is no file {file[:100]!r}", "Reload the page")
    found = asset(name)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {
        "Cache-Control": FOREVER if url(name) == f"/static/{file}" else "no-cache",
        "Vary": "Accept-Encoding",
        **({"Content-Encoding": "gzip"} if packed else {}),
    }
    content = found.packed if packed else found.content
    return Response(content, headers=headers, media_type=found.media_type)


def _is_version_of(file: str, name: str) -> bool:
    path = PurePosixPath(name)
    return file.startswith(f"{path.stem}-") and file.endswith(path.suffix)
