"""How much the world has seen of a scope, and the places where that is noted beside the ledger.

A ledger that was rolled back knows less than its mark, wherever the ledger's copy came from. Must
never: let an older mark take the place of a newer one.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Column, MetaData, String, Table, Text, delete, insert, select

from adsbpc.durable import write_durably
from adsbpc.errors import LedgerError
from adsbpc.ledger.database import Database, DatabaseSchema
from adsbpc.ledger.records import Head
from adsbpc.model.formats import format_of
from adsbpc.storage import Place, RemotePath

_FORMAT = 2
# Of the marks of a store, so many are kept, and of older ones every so many.
_KEPT = 64

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


class MarkObjects:
    """Marks of an object store, which are never replaced: `ledger-000001.json` and so on, each
    after the one before it; the last one counts.

    A number is taken by whoever creates its file first, and only after looking at the mark before
    it, so that nobody goes back. The last one is found by name: a store that lists late hides
    nothing. Must never: leave a number out.
    """

    def __init__(self, place: RemotePath, scope: str) -> None:
        self._place, self._scope = place, scope
        self.where = f"{place.parent / place.stem}-*.json"

    def read(self) -> Mark | None:
        return self._read(self._last())

    def renew(self, renewal: Renewal) -> None:
        while True:
            number = self._last()
            marked = self._read(number)
            mark = renewal(marked)
            if mark is None or mark == marked:
                return
            if self._create(number + 1, mark.to_text()):
                self._sweep(number + 1)
                return

    def _create(self, number: int, text: str) -> bool:
        """Whether the number is ours. One that a request took whose answer was lost is, too."""
        file = self._file(number)
        if not write_new(file, text):
            return self._text(number) == text
        if number == 1 and write_new(file, text):
            file.unlink(missing_ok=True)
            raise LedgerError(
                f"{file}: was written twice, and the store should have refused it (a write with "
                "If-None-Match). Of two releases at once one could hide what the other has "
                "published: use a store that refuses, or a local folder"
            )
        return True

    def _last(self) -> int:
        """Every number up to the last was created, and those that `_sweep` keeps are still
        there."""
        number = max(self._listed(), default=0)
        while self._is_there(number - number % _KEPT + _KEPT):
            number += _KEPT - number % _KEPT
        while self._is_there(number + 1):
            number += 1
        return number

    def _listed(self) -> list[int]:
        start = f"{self._place.stem}-"
        try:
            files = [each.stem for each in self._place.parent.glob(f"{start}*.json")]
        except OSError as error:
            raise _unreadable(self.where, error) from None
        numbers = [stem.removeprefix(start) for stem in files]
        return [int(each) for each in numbers if each.isdecimal()]

    def _sweep(self, last: int) -> None:
        """Remove marks that nobody needs to find the last one; a store that refuses keeps them."""
        number = last - _KEPT
        if number > 0 and number % _KEPT:
            with suppress(OSError):
                self._file(number).unlink(missing_ok=True)

    def _read(self, number: int) -> Mark | None:
        if number == 0:
            return None
        return _mark_of(self._text(number), self._scope, str(self._file(number)))

    def _text(self, number: int) -> str:
        try:
            return self._file(number).read_bytes().decode()
        except (OSError, ValueError) as error:
            raise _unreadable(str(self._file(number)), error) from None

    def _is_there(self, number: int) -> bool:
        try:
            return self._file(number).exists()
        except OSError as error:
            raise _unreadable(str(self._file(number)), error) from None

    def _file(self, number: int) -> RemotePath:
        return self._place.parent / f"{self._place.stem}-{number:06d}.json"


def mark_place(place: Place, scope: str) -> MarkPlace:
    """A mark at a name of a folder, or at names like it of a store."""
    return MarkFile(place, scope) if isinstance(place, Path) else MarkObjects(place, scope)


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


def write_new(file: RemotePath, text: str) -> bool:
    """The same in a store, where nothing is replaced; whether there was no such file."""
    try:
        file.create(text.encode())
    except FileExistsError:
        return False
    except OSError as error:
        raise _not_written(file, error) from None
    return True


def _not_written(path: Place, error: OSError) -> LedgerError:
    first = "Free space or give rights"
    if isinstance(path, RemotePath):
        first = "Check the bucket, the credentials and the rights, with adsbpc doctor"
    return LedgerError(
        f"{path}: cannot be written ({error.strerror or error}). {first}, "
        "and run the same command again: what was committed is returned as it was"
    )
