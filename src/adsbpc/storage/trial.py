"""Whether a store can be used: a file is written, refused a second time, read, and removed."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from adsbpc.storage.remote_path import RemotePath

_CONTENT = b"written by adsbpc doctor\n"


def problem_of_store(folder: RemotePath) -> tuple[str, str] | None:
    """What does not work, and the next step, if anything."""
    file = folder / f"adsbpc-doctor-{uuid4().hex}"
    check = "Check the bucket, the credentials and the right to"
    try:
        file.create(_CONTENT)
    except OSError as error:
        return f"{folder} cannot be written ({error.strerror})", f"{check} write there"
    try:
        file.create(_CONTENT)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{folder} fails at times ({error.strerror})", "Try again"
    else:
        with suppress(OSError):
            file.unlink()
        return (
            f"{folder} lets a file be written twice, and should refuse it (If-None-Match)",
            "Use a store that refuses, or a local folder: of two releases at once, one could hide "
            "what the other has published",
        )
    try:
        if file.read_bytes() != _CONTENT:
            return f"{folder} gives back something else than was written", "Use another store"
    except OSError as error:
        return f"{folder} cannot be read ({error.strerror})", f"{check} read there"
    try:
        list(folder.glob("*"))
    except OSError as error:
        return f"{folder} cannot be listed ({error.strerror})", f"{check} list it"
    try:
        file.unlink()
    except OSError as error:
        return (
            f"of {folder} nothing can be removed ({error.strerror})",
            f"{check} delete there: books that are out of use would stay, and nobody could be "
            f"forgotten. Then remove {file}",
        )
    return None
