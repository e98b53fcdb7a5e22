"""Files that are written whole or not at all, and are on the disk when that returns."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from adsbpc.errors import LedgerError


def write_durably(path: Path, text: str) -> None:
    # A name of its own: processes in different containers may share a number.
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        # The file's folder, and those above it that may be new.
        for folder in (path.parent, *path.parent.parents[:3]):
            sync_folder(folder)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise not_written(path, error) from None


def not_written(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"{path}: cannot be written ({error.strerror or error}). Free space or give rights, "
        "and run the same command again: what was committed is returned as it was"
    )


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
