"""How much the world has seen of a scope, and the places where that is noted beside the ledger.

A ledger that was rolled back knows less than its mark, wherever the ledger's copy came from. Must
never: let an older mark take the place of a newer one.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Column, MetaData, String, Table, Text, delete, insert, select

from adsbpc.durable import write_durably
from adsbpc.errors import LedgerError
from adsbpc.ledger.database import Database, DatabaseSchema
from adsbpc.ledger.records import Head
from adsbpc.model.formats import format_of

_FORMAT = 2

MARKS = DatabaseSchema(
    noun="witness",
    key="[ledger] witness",
    versions=("0001",),
    version_table="adsbpc_marks_schema",
    migrations=Path(__file__).with_name("mark_migrations"),
    failure=LedgerError,
)

metadata = MetaData()

marks = Table(
    "adsbpc_marks",
    metadata,
    Column("scope", String(200), primary_key=True),
    Column("mark", Text, nullable=False),
)


@dataclass(frozen=True)
class Mark:
    """`head` is the newest entry when the mark was made, `identity` the scope's, `pico_rho` what
    was spent; `campaigns` has the SHA-256 of every release, in the order of slots. Marks of an
    earlier version have the head alone."""

    scope: str
    head: Head
    identity: str | None = None
    pico_rho: int = 0
    campaigns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def lost_in(self, other: Mark) -> dict[str, list[int]]:
        """The slots of this mark, by campaign, that another does not have byte for byte."""
        found = {}
        for campaign, hashes in self.campaigns.items():
            there = other.campaigns.get(campaign, ())
            lost = [
                slot
                for slot, sha256 in enumerate(hashes, start=1)
                if there[slot - 1 : slot] != (sha256,)
            ]
            if lost:
                found[campaign] = lost
        return found

    def to_text(self) -> str:
        content = {
            "format": _FORMAT,
            "scope": self.scope,
            "position": self.head.position,
            "hash": self.head.hash,
            "identity": self.identity,
            "pico_rho": self.pico_rho,
            "campaigns": {name: list(hashes) for name, hashes in self.campaigns.items()},
        }
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Mark:
        content: dict[str, Any] = json.loads(text)
        scope, head = str(content["scope"]), Head(int(content["position"]), str(content["hash"]))
        if format_of(content, _FORMAT) == 1:
            return cls(scope, head)
        campaigns = {str(name): tuple(hashes) for name, hashes in content["campaigns"].items()}
        return cls(scope, head, str(content["identity"]), int(content["pico_rho"]), campaigns)


# Given the mark that stands there, the one to put in its place; None to leave it.
Renewal = Callable[[Mark | None], Mark | None]


class MarkPlace(Protocol):
    """Where the mark of one scope stands."""

    where: str

    def read(self) -> Mark | None: ...

    def renew(self, renewal: Renewal) -> None:
        """One at a time, whoever races; on the disk when this returns."""


class MarkFile:
    def __init__(self, path: Path, scope: str) -> None:
        self.where, self._path, self._scope = str(path), path, scope

    def read(self) -> Mark | None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(self.where, error) from None
        return _mark_of(text, self._scope, self.where)

    def renew(self, renewal: Renewal) -> None:
        with self._locked():
            mark = renewal(self.read())
            if mark is not None:
                write_record(self._path, mark.to_text())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # A file of its own: the mark is replaced, and folders are not locked across machines.
        lock = self._path.with_name(f".{self._path.name}.lock")
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            opened = lock.open("a")
        except OSError as error:
            raise _not_written(lock, error) from None
        with opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX)
            except OSError as error:
                raise _not_written(lock, error) from None
            yield


class MarkTable:
    def __init__(self, location: str, scope: str) -> None:
        self._database = Database(location, Path(), MARKS)
        self.where, self._scope = self._database.where, scope

    def read(self) -> Mark | None:
        if not self._database.exists():
            return None
        wanted = select(marks.c.mark).where(marks.c.scope == self._scope)
        with self._database.reading() as connection:
            text = connection.execute(wanted).scalar_one_or_none()
        return None if text is None else _mark_of(text, self._scope, self.where)

    def renew(self, renewal: Renewal) -> None:
        self._database.bring_up_to_date()
        ours = marks.c.scope == self._scope
        with self._database.writing(f"mark of {self._scope}") as connection:
            text = connection.execute(select(marks.c.mark).where(ours)).scalar_one_or_none()
            mark = renewal(None if text is None else _mark_of(text, self._scope, self.where))
            if mark is not None:
                connection.execute(delete(marks).where(ours))
                connection.execute(insert(marks).values(scope=self._scope, mark=mark.to_text()))


def _mark_of(text: str, scope: str, where: str) -> Mark:
    try:
        mark = Mark.from_text(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(where, error) from None
    if mark.scope != scope:
        raise LedgerError(
            f"{where}: is the mark of scope {mark.scope!r}, not of {scope!r}. Give every scope a "
            "witness of its own"
        )
    return mark


def _unreadable(where: str, error: Exception) -> LedgerError:
    return LedgerError(
        f"{where}: cannot be read ({error}). It says how far the ledger of this scope is: restore "
        "it from a backup"
    )


def write_record(path: Path, text: str) -> None:
    """Write what the world is about to see, so that it is never forgotten."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.encode(), folders=4)
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"{path}: cannot be written ({error.strerror or error}). Free space or give rights, "
        "and run the same command again: what was committed is returned as it was"
    )
