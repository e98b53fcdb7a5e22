"""Folders for what a session copies and spills: rows of everybody, which go with the session.

A process that is killed removes nothing. So whoever makes such a folder first removes those that
nobody uses any more. Each has a file that is locked while its process lives: the lock ends with the
process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType

_PREFIX = "adsbpc-"
_IN_USE = "in-use"


class SessionFolder:
    """A folder among the temporary files that nobody else may open."""

    def __init__(self, kind: str) -> None:
        remove_abandoned(Path(tempfile.gettempdir()))
        self._folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{kind}-")
        self.path = Path(self._folder.name)
        # Locked before it has its name: without one the folder is not taken for abandoned.
        # Not every file system has locks.
        unnamed = self.path / f"{_IN_USE}.new"
        self._lock = FileIO(os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600), "r+")
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(self.path / _IN_USE)

    def cleanup(self) -> None:
        self._folder.cleanup()
        self._lock.close()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cleanup()


def remove_abandoned(among: Path) -> None:
    """Folders of our own user whose process has ended."""
    with suppress(OSError), os.scandir(among) as found:
        for entry in found:
            if entry.name.startswith(_PREFIX) and _is_our_folder(entry):
                _remove_if_abandoned(Path(entry.path))


def _is_our_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        is_folder = entry.is_dir(follow_symlinks=False)
        return is_folder and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return False


def _remove_if_abandoned(folder: Path) -> None:
    # Not there: of another kind, just being made, or just removed. Locked: in use.
    with suppress(OSError), (folder / _IN_USE).open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
