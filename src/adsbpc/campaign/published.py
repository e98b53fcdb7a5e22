"""The folder beside a campaign file that holds what was published, and how far the ledger was then.

A ledger that was lost, rolled back, forked or swapped for another would refund budget. What was
published is out, so this folder is compared with the ledger before anything is released or shown.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from adsbpc.errors import LedgerError
from adsbpc.ledger import Head, Ledger
from adsbpc.model import CampaignSpec

FOLDER = "adsbpc-releases"
_MARK = "ledger.json"
_LONGEST_NAME = 120


class Published:
    """`adsbpc-releases/<scope>/ledger.json` and `.../<campaign>/0001.json`, one file a slot.

    The mark is the newest entry that the scope's ledger had when something of the scope was last
    shown, by any campaign of this folder.
    """

    def __init__(self, spec: CampaignSpec, ledger: Ledger) -> None:
        self._scope, self._ledger = spec.campaign.scope, ledger
        self._mark = spec.directory / FOLDER / folder_name(self._scope) / _MARK
        self.folder = self._mark.parent / folder_name(spec.campaign.name)

    def check(self) -> None:
        """Refuse a ledger that does not know what was published here."""
        marked = self._marked()
        if marked is None:
            return
        if not self._ledger.exists() or self._ledger.scope(self._scope) is None:
            raise LedgerError(
                f"{self._mark}: budget of scope {self._scope!r} was spent, but ledger "
                f"{self._ledger.where} has no such scope. {_LOST}"
            )
        if not self._ledger.holds(self._scope, marked):
            raise LedgerError(
                f"{self._mark}: something was published when the ledger of scope {self._scope!r} "
                f"had {marked.position} entries, and ledger {self._ledger.where} is older than "
                f"that, or another one. {_LOST}"
            )

    def mark(self) -> None:
        """Note how far the ledger is, before anything of it is published or shown."""
        marked, head = self._marked(), self._ledger.head(self._scope)
        if marked is None or marked.position < head.position:
            note = {"scope": self._scope, "position": head.position, "hash": head.hash}
            _write_durably(self._mark, json.dumps(note, indent=2) + "\n")

    def publish(self, slot: int, text: str) -> None:
        """Write a committed release; one that is there already must be the same."""
        file = self._file(slot)
        if not file.exists():
            self.mark()
            _write_durably(file, text)
        elif file.read_text(encoding="utf-8") != text:
            raise LedgerError(self._differs(file))

    def problem(self, texts: list[str]) -> str | None:
        """What of the published files is not in the ledger, if anything."""
        for file in sorted(self.folder.glob("*.json")):
            slot = int(file.stem) if file.stem.isdecimal() else 0
            if slot > len(texts):
                return f"{file}: was published, but the ledger ends at slot {len(texts)}. {_LOST}"
            if slot and file.read_text(encoding="utf-8") != texts[slot - 1]:
                return self._differs(file)
        return None

    def _differs(self, file: Path) -> str:
        return (
            f"{file}: is not what the ledger says was released. Find out which of the two was "
            "changed, and restore it from a backup"
        )

    def _marked(self) -> Head | None:
        try:
            note = json.loads(self._mark.read_text(encoding="utf-8"))
            return Head(int(note["position"]), str(note["hash"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"{self._mark}: cannot be read ({error}). It says how far the ledger of this scope "
                "is: restore it from a backup"
            ) from None

    def _file(self, slot: int) -> Path:
        return self.folder / f"{slot:04d}.json"


_LOST = (
    "A lost ledger counts as spent: restore it from its newest backup, or put [ledger] location "
    "back. If it is lost for good, measure these people no more, or under a new scope whose budget "
    "you can defend beside the old one"
)


def folder_name(name: str) -> str:
    """A name of scope or campaign as one folder, whatever signs it holds."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{quoted[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:16]}"


def _write_durably(path: Path, text: str) -> None:
    """Whole or not at all, and on the disk when this returns."""
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
        raise LedgerError(
            f"{path}: cannot be written ({error.strerror or error}). Free space or give rights, "
            "and run the same command again: what was committed is returned as it was"
        ) from None


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
