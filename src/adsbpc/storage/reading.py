"""A file system for engines that take one of fsspec's.

What kind of file it is, and how long, is asked once, because engines ask it again and again.
"""

from __future__ import annotations

from typing import Any

from fsspec import AbstractFileSystem

from adsbpc.storage.client import client_of, explained
from adsbpc.storage.ranges import RangeReader


class StoreReader(AbstractFileSystem):  # type: ignore[misc]
    """Read-only, for one protocol and one session. What it knows of a file is asked again after
    `forget`."""

    cachable = False

    def __init__(self, protocol: str) -> None:
        super().__init__()
        self.protocol = protocol
        self._infos: dict[str, dict[str, Any]] = {}

    def forget(self, url: str) -> None:
        self._infos.pop(url, None)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def unstrip_protocol(self, name: str) -> str:
        return name

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self._infos:
            with explained(path):
                found = client_of(path).info(path)
            self._infos[path] = {**found, "name": path}
        return self._infos[path]

    def glob(self, path: str, **_: Any) -> list[str]:
        return [path] if self.exists(path) else []

    def exists(self, path: str, **_: Any) -> bool:
        try:
            return bool(self.info(path)["type"] == "file")
        except FileNotFoundError:
            return False

    def modified(self, path: str) -> Any:
        found = self.info(path)
        known = found.get("LastModified") or found.get("created")
        if known is not None:
            return known
        with explained(path):
            return client_of(path).modified(path)

    def open(self, path: str, mode: str = "rb", **_: Any) -> RangeReader:
        if mode not in ("r", "rb"):
            raise OSError(f"{path}: is only read")
        return RangeReader(path, int(self.info(path)["size"] or 0))
