"""A file or folder of an object store, with as much of `pathlib.Path` as callers need.

Files are written whole, and never changed: a name that is taken is refused, or is one that nobody
else can have. What is asked by name is asked of the store each time; lists are hints, because some
stores list late.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path
from typing import Any
from uuid import uuid4

from adsbpc.storage.client import client_of, explained, files_below, has_conditions, is_there
from adsbpc.storage.ranges import RangeReader


@dataclass(frozen=True)
class Stamp:
    """What a store says of a file without reading it. A `version` is whatever changes with it."""

    size: int
    version: str | None = None

    @classmethod
    def of(cls, info: dict[str, Any]) -> Stamp:
        keys = ("ETag", "etag", "generation", "modificationTime")
        found = next((info[key] for key in keys if info.get(key)), None)
        return cls(int(info["size"] or 0), None if found is None else str(found).strip('"'))


@dataclass(frozen=True)
class RemotePath:
    """`uploaded` are size and SHA-256, by URL, of what was written through this path and those
    below it."""

    url: str
    uploaded: dict[str, tuple[int, str]] = field(default_factory=dict, compare=False, repr=False)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.url.rstrip('/')}/{name}", self.uploaded)

    def __str__(self) -> str:
        return self.url

    def __lt__(self, other: RemotePath) -> bool:
        return self.url < other.url

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def stem(self) -> str:
        return self.name.rpartition(".")[0] or self.name

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.url.rpartition("/")[0], self.uploaded)

    def stamp(self) -> Stamp:
        """FileNotFoundError if there is no such file."""
        with explained(self.url):
            info = client_of(self.url).info(self.url)
            # A name that others begin with is a folder, and no file.
            if info["type"] != "file":
                raise FileNotFoundError(self.url)
            return Stamp.of(info)

    def exists(self) -> bool:
        try:
            self.stamp()
        except FileNotFoundError:
            return False
        return True

    def read_bytes(self) -> bytes:
        with explained(self.url):
            return bytes(client_of(self.url).cat_file(self.url))

    def open(self, mode: str = "rb") -> BufferedReader:
        assert mode == "rb"
        return BufferedReader(RangeReader(self.url, self.stamp().size), 2**23)

    def stamps(self) -> dict[RemotePath, Stamp]:
        """Files below this folder, as far as the store lists them."""
        with explained(self.url):
            found = files_below(self.url)
            return {self / name: Stamp.of(info) for name, info in found.items()}

    def below(self, folder: RemotePath) -> tuple[str, ...]:
        """The names that lead here from a folder."""
        return tuple(self.url.removeprefix(f"{folder.url.rstrip('/')}/").split("/"))

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Files and folders below this one, as far as the store lists them."""
        parts, seen = pattern.split("/"), set()
        for path in self.stamps():
            names = path.below(self)[: len(parts)]
            found = "/".join(names)
            fits = len(names) == len(parts) and all(map(fnmatchcase, names, parts))
            if fits and found not in seen:
                seen.add(found)
                yield self / found

    def create(self, content: bytes) -> None:
        """Write a file that must not be there: FileExistsError if it is, whoever races."""
        with explained(self.url):
            client = client_of(self.url)
            if has_conditions(self.url):
                client.pipe_file(self.url, content, mode="create")
                return
            # Under a name of our own first; it stays if the one that is wanted was taken.
            own = f"{self.url}.{uuid4().hex}"
            client.pipe_file(own, content)
            try:
                client.mv(client._strip_protocol(own), client._strip_protocol(self.url))
            except OSError:
                if not is_there(client, self.url):
                    raise
            if is_there(client, own):
                client.rm_file(own)
                raise FileExistsError(self.url)

    def upload(self, file: Path) -> None:
        """Write a file under a name that nobody else has, and remember its hash."""
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            self.uploaded[self.url] = content.tell(), digest
        with explained(self.url):
            client_of(self.url).put_file(str(file), self.url)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with explained(self.url):
                client_of(self.url).rm_file(self.url)
        except FileNotFoundError:
            if not missing_ok:
                raise
