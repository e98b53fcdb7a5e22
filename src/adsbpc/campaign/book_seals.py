"""What the ledger says of the files of books, and whether they still are that.

Its entry for a slot names each file with size, SHA-256 and, where there is one, version: of a local
file its inode and when that changed. Where a cluster has written folders of files, it names a
manifest alone, and that names the files.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeGuard

from adsbpc.contributions.account_books import FILES
from adsbpc.contributions.long_books import LONG_FILES
from adsbpc.errors import EngineError, LedgerError
from adsbpc.model.formats import format_of
from adsbpc.storage import Place, RemotePath, Stamp, seal_file, stamp_of

FOLDER = "adsbpc-books"
MANIFEST = "manifest.json"
_FORMAT = 1

# Steps of an engine that write books, and what it says of a disk that does not take them.
_WRITES = tuple(f"write {file}" for file in {*FILES, *LONG_FILES})
_REFUSALS = tuple(
    os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
)

# Of each file by its name in the folder of the slot.
Seals = Mapping[str, Sequence[Any]]
# SHA-256 of whole files, or why one cannot be read.
Hashes = Callable[[Sequence[Place]], list[str | OSError]]

LOST = (
    "Without them nobody knows what people have spent, so nothing more may be released: restore "
    f"the folder {FOLDER} from the backup that belongs to the ledger's"
)


def seal_files(folder: Place, files: Sequence[str]) -> Seals:
    """Bring new files onto the disk; in place of one may stand a folder of several, as a cluster
    has noted them."""
    names = [name for file in files for name in _written(folder, file)]
    with ThreadPoolExecutor() as threads:
        seals = threads.map(lambda name: seal_file(folder / name), names)
        found = dict(zip(names, seals, strict=True))
    if not isinstance(folder, RemotePath) or names == list(files):
        return found
    content = json.dumps({"format": _FORMAT, "files": found}, indent=1).encode()
    (folder / MANIFEST).create(content)
    return {MANIFEST: [len(content), sha256(content).hexdigest()]}


def _written(folder: Place, file: str) -> list[str]:
    noted = folder.uploaded if isinstance(folder, RemotePath) else ()
    below = sorted(url for url in noted if url.startswith(f"{folder / file}/"))
    return [url.removeprefix(f"{folder}/") for url in below] or [file]


def read_manifests(sealed: Mapping[Place, Sequence[Any]]) -> dict[Place, Seals]:
    """Of folders, with what the ledger says of their manifests."""
    with ThreadPoolExecutor() as threads:
        contents = list(threads.map(_content, [folder / MANIFEST for folder in sealed]))
    found: dict[Place, Seals] = {}
    for (folder, seal), content in zip(sealed.items(), contents, strict=True):
        if sha256(content).hexdigest() != seal[1]:
            raise LedgerError(f"{folder / MANIFEST}: is not what was written. {LOST}")
        listed = json.loads(content)
        try:
            format_of(listed, _FORMAT)
        except ValueError as error:
            raise LedgerError(f"{folder / MANIFEST}: has {error}") from None
        found[folder] = listed["files"]
    return found


def _content(file: Place) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise LedgerError(_unread(file, error)) from None


def changed_since(
    sealed: Sequence[tuple[Place, Sequence[Any]]], listed: Mapping[RemotePath, Stamp]
) -> list[tuple[Place, Sequence[Any]]]:
    """Files of which disk or store do not say what they said when these were written."""

    def is_as_then(file: tuple[Place, Sequence[Any]]) -> bool:
        return _is_as_then(*file, listed)

    if any(isinstance(path, RemotePath) for path, _ in sealed):
        with ThreadPoolExecutor() as threads:
            known = list(threads.map(is_as_then, sealed))
    else:
        known = list(map(is_as_then, sealed))
    return [each for each, is_known in zip(sealed, known, strict=True) if not is_known]


def _is_as_then(path: Place, seal: Sequence[Any], listed: Mapping[RemotePath, Stamp]) -> bool:
    size, _, *version = seal
    known = Stamp(size, *version)
    with suppress(OSError):
        if isinstance(path, RemotePath) and known == listed.get(path):
            return True
        return known == stamp_of(path)
    return False


def problem_of(path: Place, sealed: Sequence[Any], found: str | OSError) -> str | None:
    """What is wrong with a file, unless its hash is what the ledger says."""
    if isinstance(found, OSError):
        return _unread(path, found)
    return None if found == sealed[1] else f"{path}: is not what was written. {LOST}"


def _unread(path: Place, error: OSError) -> str:
    if isinstance(path, RemotePath) and not isinstance(error, FileNotFoundError):
        return str(unreadable(path, error))
    return f"{path}: cannot be read ({error.strerror}). {LOST}"


def unreadable(folder: Place, error: OSError) -> LedgerError:
    return LedgerError(
        f"{folder}: cannot be read ({error.strerror}). Check the bucket, the credentials and the "
        "rights, with adsbpc doctor, and run the same command again"
    )


def is_refused_by_the_disk(error: BaseException) -> TypeGuard[EngineError]:
    return (
        isinstance(error, EngineError)
        and error.step in _WRITES
        and any(sign in error.cause for sign in (*_REFUSALS, "cannot be written"))
    )


def unwritable(new: Place, cause: str | None) -> LedgerError:
    first = "Free space or give rights"
    if isinstance(new, RemotePath):
        first = "Check the bucket, the credentials and the rights, with adsbpc doctor"
    return LedgerError(
        f"{new}: cannot be written ({cause}). {first}, and run the same command again"
    )
