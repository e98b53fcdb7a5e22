"""A place for files, local or remote, and what is done differently in the two.

A local folder is made durable by fsync. A store is durable when it answers, and has no folders.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import Any

from adsbpc.errors import SpecError
from adsbpc.storage.client import check_url, client_of, explained, is_remote
from adsbpc.storage.remote_path import RemotePath, Stamp

Place = Path | RemotePath


def place_at(location: str | None, directory: Path, key: str) -> Place:
    """Where a location of the campaign file is; the folder of the file if there is none."""
    if location is None:
        return directory
    found = folder_at(location, directory, key)
    # What is missing is made below it, so a disk that is not there must not look new.
    if isinstance(found, Path) and not found.is_dir():
        raise SpecError(
            "no such folder", key, repr(location), "Mount the disk that it is on, or create it"
        )
    return found


def folder_at(location: str, directory: Path, key: str) -> Place:
    """The same of a folder that may not be there."""
    if not is_remote(location):
        return directory / location
    check_url(location, key)
    return RemotePath(location.rstrip("/"))


def contents_of(places: Sequence[Place]) -> list[bytes]:
    """Whole files; remote ones at once, where the client can."""
    remote = [each for each in places if isinstance(each, RemotePath)]
    if not remote:
        return [each.read_bytes() for each in places]
    assert len(remote) == len(places)
    url = remote[0].url
    with explained(url):
        client = client_of(url)
        found = client.cat([each.url for each in remote], on_error="raise")
        if isinstance(found, bytes):
            return [found]
        return [bytes(found[client._strip_protocol(each.url)]) for each in remote]


def seal_file(place: Place) -> list[Any]:
    """Bring a file that was written onto the disk; its size, its SHA-256, and its version where
    there is one."""
    if isinstance(place, Path):
        with place.open("rb") as content:
            os.fsync(content.fileno())
            # Before it is read: whatever changes it meanwhile gives it another stamp.
            stamp = stamp_of(place)
            return [stamp.size, hash_of(content), stamp.version]
    stamp = place.stamp()
    if place.url in place.uploaded:
        size, digest = place.uploaded[place.url]
        if size != stamp.size:
            raise OSError(errno.EIO, f"has {stamp.size} of {size} bytes", place.url)
    else:
        with place.open() as content:
            digest = hash_of(content)
    return [stamp.size, digest] if stamp.version is None else [stamp.size, digest, stamp.version]


def stamp_of(place: Place) -> Stamp:
    """What says without reading a file whether it is what it was. Whatever changes a local one
    changes when its inode changed, which no program can set."""
    if isinstance(place, RemotePath):
        return place.stamp()
    found = place.stat()
    return Stamp(found.st_size, f"{found.st_ino}-{found.st_ctime_ns}")


def hash_of(content: Any) -> str:
    content.seek(0)
    return file_digest(content, "sha256").hexdigest()


def hashes_of(places: Sequence[Place]) -> list[str | OSError]:
    """SHA-256 of whole files, or why one cannot be read. Hashes leave Python to other threads."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(_hash_at, places))


def _hash_at(place: Place) -> str | OSError:
    try:
        with place.open("rb") as content:
            return hash_of(content)
    except OSError as error:
        return error


def remove_tree(place: Place) -> None:
    """Remove a file, or a folder with everything in it, as far as that works; of a store, what it
    lists."""
    if isinstance(place, Path):
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        with suppress(OSError):
            place.unlink(missing_ok=True)
        return
    with suppress(OSError):
        for file in place.stamps():
            with suppress(OSError):
                file.unlink(missing_ok=True)
