"""The audit log: one line for each decision about who may do what, in one file a day (UTC).

Must never: hold the secret of a key, a user's id or an event.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from adsbpc.durable import sync_folder
from adsbpc.errors import ServiceError
from adsbpc.service.auth.keys import without_secrets
from adsbpc.service.auth.permissions import Principal
from adsbpc.service.clock import Clock

Decision = Literal["allowed", "refused"]

_FILE_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})\.jsonl")
_LONGEST = 300
# In place of an address.
_COMMAND_LINE = "command line"
_BLOCK_BYTES = 64 * 1024
_MOST_LOOKED_AT = 50_000


class AuditLog:
    """Lines in `folder`/YYYY-MM-DD.jsonl. Several servers may write to the same folder.

    A line is one append by the system, so that lines of others never come into its middle; no
    file stays open, so that there is nothing to lock, and midnight needs no care.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _failure(folder, error) from None

    def note(
        self,
        principal: Principal | None,
        action: str,
        target: str,
        decision: Decision,
        reason: str,
        request: str,
        address: str,
        durable: bool = False,
    ) -> None:
        """Write one decision. What a known key was refused is on the disk when this returns; the
        others are too many to wait for, and anybody can cause them."""
        now = self._clock.now().astimezone(UTC)
        fields = {
            "at": now.isoformat(timespec="microseconds"),
            "decision": decision,
            "action": action,
            "target": target,
            "reason": reason,
            "key_id": principal.key_id if principal else "",
            "role": principal.role.value if principal else "",
            "subject": principal.subject if principal else "",
            "request": request,
            "address": address,
        }
        shown = {name: _fit(value) for name, value in fields.items()}
        # Plain ASCII without control characters, whatever came in: the rest is escaped.
        line = json.dumps(shown, ensure_ascii=True) + "\n"
        file = self._folder / f"{now:%Y-%m-%d}.jsonl"
        try:
            self._append(
                file,
                line.encode("ascii"),
                durable or (decision == "refused" and principal is not None),
            )
        except OSError as error:
            raise _failure(file, error) from None

    def note_command(self, action: str, target: str = "", refused: str = "") -> None:
        """Write what was done, or `refused`, by a command beside the server: whoever gives it may
        write here anyway."""
        decision: Decision = "refused" if refused else "allowed"
        self.note(None, action, target, decision, refused, "", _COMMAND_LINE, durable=True)

    def _append(self, file: Path, line: bytes, durable: bool) -> None:
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # A crash or a full disk may have left half a line: it must not swallow this one.
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            written = os.write(descriptor, line)
            if written != len(line):
                raise OSError(0, f"only {written} of {len(line)} bytes were written")
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if size == 0:
            # A new file survives a crash only once its folder is on the disk too.
            sync_folder(self._folder)

    def days(self) -> list[str]:
        """The days that have a file, oldest first."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError as error:
            raise _failure(self._folder, error) from None
        return sorted(found[1] for name in names if (found := _FILE_NAME.fullmatch(name)))

    def newest(
        self, limit: int, wanted: Callable[[dict[str, Any]], bool] = lambda line: True
    ) -> list[dict[str, Any]]:
        """The newest lines that are wanted, newest first, as far back as it is worth looking. Half
        lines that a crash left are passed over."""
        looked_at = islice(self._backwards(), _MOST_LOOKED_AT)
        return list(islice(filter(wanted, looked_at), max(limit, 0)))

    def _backwards(self) -> Iterator[dict[str, Any]]:
        for day in reversed(self.days()):
            file = self._folder / f"{day}.jsonl"
            try:
                for line in _lines_from_the_end(file):
                    entry = _parsed(line)
                    if entry is not None:
                        yield entry
            except OSError as error:
                raise _failure(file, error) from None


def _fit(value: str) -> str:
    # Cut first: whatever is left of a key by the cut is still seen as one.
    return without_secrets(value[:_LONGEST])


def _lines_from_the_end(file: Path) -> Iterator[bytes]:
    """Reads no more than it needs: files of busy days are large."""
    with file.open("rb") as stream:
        position = stream.seek(0, os.SEEK_END)
        rest = b""
        while position > 0:
            start = max(position - _BLOCK_BYTES, 0)
            stream.seek(start)
            first, *lines = (stream.read(position - start) + rest).split(b"\n")
            yield from reversed(lines)
            # No line of ours is that long: what a damaged file holds there is let go.
            position, rest = start, first if len(first) <= _BLOCK_BYTES else b""
        yield rest


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _failure(path: Path, error: OSError) -> ServiceError:
    return ServiceError(
        f"audit log {path}: cannot be used ({error.strerror}). Check that there is space, that "
        "the folder exists, and that adsbpc may write there"
    )
