"""The data folder, and who is at work in it: many at a time, or one alone.

The system ends a hold with its process, however that ends. SQLite files stand on a local disk, so
that whoever uses them sees the holds of all others.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from adsbpc.errors import ServiceError

_NAME = "in-use.lock"
_FOLDERS = ("events", "campaigns", "audit")
# Only the owner may look into it, whatever is put there.
_MODE = 0o700


def enter(data: Path) -> FileIO:
    """Make the folder if it is new, and be at work in it until the file that comes back is
    closed."""
    try:
        for folder in (data, *(data / name for name in _FOLDERS)):
            folder.mkdir(parents=True, exist_ok=True, mode=_MODE)
        return _held(data, fcntl.LOCK_SH)
    except BlockingIOError:
        raise ServiceError(
            f"[service] data = {data}: adsbpc move is carrying its databases away. Wait for it, "
            "set [service] database and [ledger] location as it says, and start again"
        ) from None
    except OSError as error:
        raise ServiceError(
            f"[service] data = {data}: cannot be created ({error.strerror}). "
            "Give another folder, or the right to write there"
        ) from None


def enter_alone(data: Path) -> FileIO:
    """The same of a folder that is there, with nobody else at work in it."""
    try:
        return _held(data, fcntl.LOCK_EX)
    except BlockingIOError:
        raise ServiceError(
            f"[service] data = {data}: a server is at work there, and what it stores meanwhile "
            "would be in no database. Nothing was moved: stop all servers, and run it again"
        ) from None


@dataclass(frozen=True)
class Disk:
    """The disk of a folder; it is full with less room than it must have, or with none for another
    file."""

    folder: str
    free_bytes: int
    total_bytes: int
    is_full: bool


def disk_of(folder: Path, least_bytes: int) -> Disk:
    found = os.statvfs(folder)
    # Some file systems do not count files, and say that they have none.
    no_more_files = found.f_files > 0 and found.f_favail == 0
    free = found.f_bavail * found.f_frsize
    total = found.f_blocks * found.f_frsize
    return Disk(str(folder), free, total, free < least_bytes or no_more_files)


def _held(data: Path, kind: int) -> FileIO:
    file = FileIO(os.open(data / _NAME, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file
