"""A stream over a file of an object store; each read is one request for a range of bytes."""

from __future__ import annotations

from io import SEEK_CUR, SEEK_END, RawIOBase
from threading import get_ident
from typing import Any

from adsbpc.storage.client import client_of, explained


class RangeReader(RawIOBase):
    """Threads may share it, each with a position of its own: an engine seeks and then reads, and
    another of its threads may come in between."""

    def __init__(self, url: str, size: int) -> None:
        super().__init__()
        self._url, self._size = url, size
        self._positions: dict[int, int] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        start = {SEEK_CUR: self.tell(), SEEK_END: self._size}.get(whence, 0)
        self._positions[get_ident()] = start + offset
        return start + offset

    def tell(self) -> int:
        return self._positions.get(get_ident(), 0)

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if end <= start:
            return b""
        with explained(self._url):
            found = bytes(client_of(self._url).cat_file(self._url, start=start, end=end))
            if len(found) != end - start:
                raise OSError(f"gave {len(found)} of {end - start} bytes")
        self.seek(end)
        return found

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)
