"""A hash of the whole SQLite file, kept beside it: finds damage that touches no entry.

Most of a database file is room that holds nothing, where the chain of entries sees no flipped bit.
The seal belongs to a number of entries in a schema; after a crash or a migration it is older than
the file and says nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from adsbpc.durable import replacing


def seal_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.seal")


@dataclass(frozen=True)
class Extent:
    """How much a file holds, by which its seal is known to be of this file."""

    entries: int
    schema: str


def write_seal(file: Path, extent: Extent) -> None:
    """Seal a file that has grown. One that has not is left: sealing it again would hide damage."""
    seal = seal_of(file)
    # A disk that is full leaves the old seal, which says nothing about a file that has grown.
    with suppress(OSError):
        if _being_written(file) or _is_of(_sealed(file), extent):
            return
        content = {**asdict(extent), "sha256": _digest(file)}
        with replacing(seal) as unfinished:
            unfinished.write_text(json.dumps(content) + "\n")


def broken_seal(file: Path, extent: Extent) -> str | None:
    """What is wrong, if the file is not as it was when it was sealed with as much in it."""
    sealed = _sealed(file)
    if not _is_of(sealed, extent) or _being_written(file):
        return None
    if sealed.get("sha256") == _digest(file):
        return None
    return (
        f"every entry is intact, but {file} is not as adsbpc left it. If you rewrote the file "
        f"yourself, delete {seal_of(file).name}"
    )


def _sealed(file: Path) -> dict[str, Any]:
    """What stands in the seal; nothing if there is none, or none that can be read."""
    with suppress(FileNotFoundError, ValueError):
        content = json.loads(seal_of(file).read_text())
        return content if isinstance(content, dict) else {}
    return {}


def _is_of(sealed: dict[str, Any], extent: Extent) -> bool:
    return (sealed.get("entries"), sealed.get("schema")) == (extent.entries, extent.schema)


def _being_written(file: Path) -> bool:
    """Whether commits wait in the log beside the file to be carried into it."""
    log = file.with_name(f"{file.name}-wal")
    try:
        return log.stat().st_size > 0
    except FileNotFoundError:
        return False


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()
