"""Files that are there whole or not at all, and that are on the disk when it matters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; the file of that name becomes `path` if nothing fails."""
    # A name of its own: processes in different containers may share a number.
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def write_durably(path: Path, content: bytes, mode: int = 0o666, folders: int = 1) -> None:
    """Write a file that is still there after a power cut. Its name is too, once its folder is on
    the disk, and so are those of `folders` in all that may be new."""

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags, mode)

    with replacing(path) as unfinished, open(unfinished, "xb", opener=opened) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    for folder in path.parents[:folders]:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
