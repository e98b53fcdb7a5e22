"""The folder beside a campaign file that holds what was published, and remembers which ledger paid.

A ledger that was lost, rolled back or swapped for another would refund budget. What was published
is out, so this folder is compared with the ledger before anything is released.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from adsbpc.model import CampaignSpec

FOLDER = "adsbpc-releases"
_MARKER = "ledger.json"
_LONGEST_NAME = 120


class Published:
    """`adsbpc-releases/<scope>/ledger.json` and `.../<campaign>/0001.json`, one file a slot."""

    def __init__(self, spec: CampaignSpec) -> None:
        self._scope, self._campaign = spec.campaign.scope, spec.campaign.name
        self._marker = spec.directory / FOLDER / _folder_name(self._scope) / _MARKER
        self.folder = self._marker.parent / _folder_name(self._campaign)

    def check(self, ledger: Ledger) -> None:
        """Refuse a ledger that does not know what was published here."""
        remembered = self._remembered()
        if remembered is None:
            return
        scope = ledger.scope(self._scope) if ledger.exists() else None
        if scope is None or scope.identity != remembered:
            found = "has no such scope" if scope is None else "began that scope afresh"
            raise LedgerError(
                f"{self._marker}: budget of scope {self._scope!r} was spent, but ledger "
                f"{ledger.where} {found}. A lost ledger counts as spent: restore it from a backup, "
                "or put [ledger] location back. If it is lost for good, measure these people "
                "no more, or under a new scope whose budget you can defend beside the old one"
            )
        newest = max(self._slots(), default=0)
        known = ledger.last_slot(self._scope, self._campaign)
        if newest > known:
            raise LedgerError(
                f"{self._file(newest)}: was published, but ledger {ledger.where} ends at slot "
                f"{known}. It is older than what was published: restore the newest backup"
            )

    def remember(self, ledger: Ledger) -> None:
        """Note which ledger pays, before anything is released."""
        if self._remembered() is None:
            scope = ledger.scope(self._scope)
            assert scope is not None
            note = {"scope": self._scope, "identity": scope.identity, "ledger": ledger.where}
            _write_durably(self._marker, json.dumps(note, indent=2) + "\n")

    def publish(self, slot: int, text: str) -> None:
        """Write a committed release; one that is there already must be the same."""
        file = self._file(slot)
        if not file.exists():
            _write_durably(file, text)
        elif file.read_text(encoding="utf-8") != text:
            raise LedgerError(self._differs(file))

    def problem(self, texts: list[str]) -> str | None:
        """What of the published files is not in the ledger, if anything."""
        for slot in self._slots():
            file = self._file(slot)
            if slot > len(texts) or file.read_text(encoding="utf-8") != texts[slot - 1]:
                return self._differs(file)
        return None

    def _differs(self, file: Path) -> str:
        return (
            f"{file}: is not what the ledger says was released. Find out who changed it; delete "
            "the file to have it written again"
        )

    def _remembered(self) -> str | None:
        try:
            return str(json.loads(self._marker.read_text(encoding="utf-8"))["identity"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"{self._marker}: cannot be read ({error}). It says which ledger pays for this "
                "scope: restore it from a backup"
            ) from None

    def _slots(self) -> list[int]:
        return sorted(int(file.stem) for file in self.folder.glob("*.json") if file.stem.isdigit())

    def _file(self, slot: int) -> Path:
        return self.folder / f"{slot:04d}.json"


def _folder_name(name: str) -> str:
    """A name of scope or campaign as one folder, whatever signs it holds."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{quoted[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:16]}"


def _write_durably(path: Path, text: str) -> None:
    """Whole or not at all, and on the disk when this returns."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise LedgerError(
            f"{path}: cannot be written ({error.strerror or error}). Free space or give rights, "
            "and run the same command again: what was committed is returned as it was"
        ) from None
