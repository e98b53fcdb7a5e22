"""The folder beside a campaign file with the books of personal budgets: who asked for what, and
what everybody has spent.

As sensitive as the events. Every attempt to release a slot writes a folder of its own, and the
ledger's entry for the slot names the one that counts, with the hash of every file: the two stores
cannot disagree, and books that were lost or changed are refused.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeGuard
from uuid import uuid4

from adsbpc.campaign.release_folder import folder_name, home_of
from adsbpc.contributions import Books
from adsbpc.contributions.account_books import FILES, NAMES
from adsbpc.contributions.long_books import LONG_FILES, READ_AGAIN, SUMS, LongBooks
from adsbpc.durable import sync_folder, write_durably
from adsbpc.engines import Engine, quote_text
from adsbpc.errors import EngineError, LedgerError, SourceError
from adsbpc.mechanisms import step_of
from adsbpc.model import CampaignSpec
from adsbpc.model.formats import format_of
from adsbpc.storage import Place, RemotePath, Stamp, hash_of, remove_tree, seal_file

FOLDER = "adsbpc-books"
# A file that says that the first slot counts, whatever becomes of ledger and releases.
_RELEASED = "released"
# Of the five files. Format 1 had four, and was not named in the ledger before it had a number.
_FORMAT = 2
# Of the files of a long campaign, of which only the newest are read again. In format 3 all were
# whole, now every so many slots' are, and the others hold what changed since.
_LONG_FORMATS = 3, 4
WHOLE_EVERY = 128
_LONG_SWEPT = 8
# What is out of use is removed this many slots later, when nobody can still be reading it.
_KEPT_SLOTS = 3
# Signs in a path that some engine takes for a pattern.
_SIGNS = "*?[]{}\\"
# Steps of an engine that write books, and what it says of a disk that does not take them.
_WRITES = tuple(f"write {file}" for file in {*FILES, *LONG_FILES})
_REFUSALS = tuple(
    os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
)


class BookFolder:
    """`adsbpc-books/<scope>/<campaign>/slot=0001/attempt=<id>/`, of which one a slot counts. Where
    a campaign has several measures, each has such a folder of its own below the campaign's."""

    def __init__(self, spec: CampaignSpec, measure: str) -> None:
        campaign = spec.campaign
        self.folder: Place = (
            home_of(spec) / FOLDER / folder_name(campaign.scope) / folder_name(campaign.name)
        )
        # Folders above the books of a slot, up to the campaign file's.
        self._measure, self._levels = measure, 5
        if len(spec.measures) > 1:
            self.folder = self.folder / f"measure={folder_name(measure)}"
            self._levels += 1

    @classmethod
    def all_of(cls, spec: CampaignSpec) -> list[BookFolder]:
        return [cls(spec, measure.name) for measure in spec.measures]

    @contextmanager
    def attempt(self, steps: Sequence[dict[str, Any]]) -> Iterator[Books]:
        """The books that count, and a new folder for the next slot's, which goes if this fails."""
        earlier = tuple(self._committed(slot, step) for slot, step in enumerate(steps, start=1))
        own = [step_of(step, self._measure) for step in steps]
        renewed = [slot for slot, step in enumerate(own, start=1) if step.get("renewal")]
        old = [step for step in own if step["books"].get("format", 1) < _FORMAT]
        with self._opened(steps) as new:
            yield Books(earlier, new, renewed[-1] if renewed else 1, len(old) + 1)

    @contextmanager
    def long_attempt(self, steps: Sequence[dict[str, Any]]) -> Iterator[LongBooks]:
        """The same for a long campaign: the last books that are whole are all that counts, and
        those of the slot before."""
        slot, last = len(steps) + 1, self._last_whole(steps)
        whole = self._committed(last, steps[last - 1]) if last else None
        recent = self._committed(slot - 1, steps[-1]) if steps and last < slot - 1 else None
        with self._opened(steps) as new:
            yield LongBooks(slot, whole, recent, new, slot % WHOLE_EVERY == 0)

    @contextmanager
    def _opened(self, steps: Sequence[dict[str, Any]]) -> Iterator[Place]:
        new = self._open(steps)
        self._sweep(steps)
        try:
            yield new
        except BaseException as error:
            remove_tree(new)
            if _is_refused_by_the_disk(error):
                raise _not_written(new, error.cause) from error
            raise

    def _open(self, steps: Sequence[dict[str, Any]]) -> Place:
        problem = self.problem(steps)
        if problem is not None:
            raise LedgerError(problem)
        new = self._slot(len(steps) + 1) / f"attempt={uuid4().hex}"
        if isinstance(new, Path):
            _make(new)
        return new

    def check_new(self) -> None:
        """Refuse a campaign that the ledger does not know, and that has books all the same: it was
        released before. A first slot's may be left over from a run that was killed."""
        try:
            later = [folder for folder in self.folder.glob("slot=*") if folder != self._slot(1)]
            known = bool(later) or (self.folder / _RELEASED).exists()
        except OSError as error:
            raise _unreadable(self.folder, error) from None
        if known:
            raise LedgerError(
                f"{self.folder}: has books of a campaign of this name, which was released before, "
                "and the ledger does not know it. Restore the ledger; a campaign that is really "
                "new needs another name"
            )

    def remember(self) -> None:
        """Note beside the books of the first slot that it was released. A disk that does not take
        it stops nobody: the release is committed, and the books of slot 2 will say the same."""
        note = self.folder / _RELEASED
        with suppress(OSError):
            if note.exists():
                return
            if isinstance(note, Path):
                write_durably(note, b"", mode=0o600)
            else:
                note.create(b"")

    def holds(self, user: str, engine: Engine, steps: Sequence[dict[str, Any]]) -> bool:
        """Whether somebody is in the books, of any slot and of any attempt."""
        for file in self._found(NAMES, steps):
            # An attempt that never counted may go meanwhile.
            with suppress(SourceError), engine.scratch():
                names = engine.read_files("names", "parquet", [str(file)], None, ["user_id"])
                theirs = f"CAST(user_id AS STRING) = {quote_text(user)}"
                sql = f"SELECT count(*) FROM {names} WHERE {theirs}"
                if engine.rows("somebody in the books", sql)[0][0]:
                    return True
        return False

    def is_empty(self, steps: Sequence[dict[str, Any]]) -> bool:
        if isinstance(self.folder, Path):
            return not any(self.folder.glob("slot=*"))
        return not any(self._found(file, steps) for file in (*FILES, SUMS))

    def _found(self, name: str, steps: Sequence[dict[str, Any]]) -> list[Place]:
        """Files of a name, of all attempts; also those that a store does not list yet, if the
        ledger names them."""
        try:
            found: list[Place] = list(self.folder.glob(f"slot=*/attempt=*/{name}"))
            if isinstance(self.folder, RemotePath):
                known = {self._committed(slot, step) / name for slot, step in self._named(steps)}
                found += [file for file in known - {*found} if file.exists()]
        except OSError as error:
            raise _unreadable(self.folder, error) from None
        return found

    def _named(self, steps: Sequence[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
        """Slots for which the ledger names books."""
        numbered = enumerate(steps, start=1)
        return [(slot, step) for slot, step in numbered if "books" in step_of(step, self._measure)]

    def erase(self, steps: Sequence[dict[str, Any]]) -> None:
        """Delete all books. That the campaign was released is still known."""
        if isinstance(self.folder, Path):
            for folder in sorted(self.folder.glob("slot=*")):
                # Another process may do the same.
                with suppress(FileNotFoundError):
                    shutil.rmtree(folder)
            return
        try:
            for file in self.folder.stamps():
                if file.name != _RELEASED:
                    file.unlink(missing_ok=True)
            # And those that the store does not list yet.
            for slot, step in self._named(steps):
                for name in (*FILES, SUMS):
                    (self._committed(slot, step) / name).unlink(missing_ok=True)
        except OSError as error:
            raise LedgerError(
                f"{self.folder}: cannot be erased ({error.strerror}). Give the right to delete, "
                "and run the same command again"
            ) from None

    def seal(self, books: Books | LongBooks) -> dict[str, Any]:
        """Bring new books onto the disk; returns what the ledger keeps of them."""
        new, is_long = books.new, isinstance(books, LongBooks)
        try:
            files = {file: seal_file(new / file) for file in (LONG_FILES if is_long else FILES)}
            if isinstance(new, Path):
                # The folder itself and those above it that may be new, up to the campaign file's.
                for folder in (new, *new.parents[: self._levels]):
                    sync_folder(folder)
        except OSError as error:
            raise LedgerError(
                f"{new}: cannot be written to the disk ({error.strerror}). Nothing was released: "
                "run the same command again"
            ) from None
        kept = {"format": _FORMAT, "attempt": new.name, "files": files}
        if isinstance(books, LongBooks):
            kept |= {"format": max(_LONG_FORMATS), "whole": books.merges}
        return kept

    def _sweep(self, steps: Sequence[dict[str, Any]]) -> None:
        """Remove attempts that never counted, and accounts that later ones have replaced."""
        if isinstance(self.folder, RemotePath):
            self._sweep_store(steps, self.folder)
            return
        out_of_use = list(enumerate(steps[:-_KEPT_SLOTS], start=1))
        in_use = self._whole_in_use(steps)
        if out_of_use and self._is_long(steps[-1]):
            before = self._last_whole(steps[: min(in_use) - 1]) if in_use else 0
            out_of_use = [*out_of_use[before - 1 : before], *out_of_use[-_LONG_SWEPT:]]
        for slot, step in out_of_use:
            committed = self._committed(slot, step)
            for file in READ_AGAIN if slot not in in_use else ():
                with suppress(OSError):
                    (committed / file).unlink(missing_ok=True)
            for other in self._slot(slot).glob("attempt=*"):
                if other != committed:
                    remove_tree(other)

    def _sweep_store(self, steps: Sequence[dict[str, Any]], folder: RemotePath) -> None:
        """The same, from one list: what a store does not list yet is swept by a later slot."""
        old = {
            str(self._slot(slot)): self._committed(slot, step)
            for slot, step in enumerate(steps[:-_KEPT_SLOTS], start=1)
        }
        in_use = {str(self._slot(slot)) for slot in self._whole_in_use(steps)}
        with suppress(OSError):
            for file in folder.stamps() if old else ():
                attempt = file.parent
                committed = old.get(str(attempt.parent))
                is_replaced = file.name in READ_AGAIN and str(attempt.parent) not in in_use
                if committed is not None and (attempt != committed or is_replaced):
                    file.unlink(missing_ok=True)

    def problem(self, steps: Sequence[dict[str, Any]], whole: bool = False) -> str | None:
        """What of the books is not what the ledger says, if anything. Files of a store are only
        read if they are looked at `whole`, or are not of the size and version of then. Of a long
        campaign only what is read again is looked at: the rest is for who audits."""
        named, in_use = self._named(steps), {len(steps)}
        if steps and self._is_long(steps[-1]):
            in_use.add(self._last_whole(steps))
            named = [(slot, step) for slot, step in named if slot in in_use]
        try:
            listed = self.folder.stamps() if isinstance(self.folder, RemotePath) else {}
        except OSError as error:
            return str(_unreadable(self.folder, error))
        sealed = [
            (self._committed(slot, step) / file, seal)
            for slot, step in named
            for file, seal in step_of(step, self._measure)["books"]["files"].items()
            if slot in in_use or file not in READ_AGAIN
        ]
        # Hashes leave Python to other threads.
        with ThreadPoolExecutor() as threads:
            checks = threads.map(lambda each: _changed(each[0], each[1], whole, listed), sealed)
            return next(filter(None, checks), None)

    def _is_long(self, step: dict[str, Any]) -> bool:
        books = step_of(step, self._measure).get("books") or {}
        return books.get("format", 1) in _LONG_FORMATS

    def _last_whole(self, steps: Sequence[dict[str, Any]]) -> int:
        """The last slot of a long campaign whose books are whole, 0 if there is none."""
        for slot in range(len(steps), 0, -1):
            books = step_of(steps[slot - 1], self._measure).get("books") or {}
            if books.get("format") == min(_LONG_FORMATS) or books.get("whole"):
                return slot
        return 0

    def _whole_in_use(self, steps: Sequence[dict[str, Any]]) -> set[int]:
        """Slots of a long campaign whose books are whole and may be read: the next slot's, or
        those of somebody who is late."""
        if not steps or not self._is_long(steps[-1]):
            return set()
        return {self._last_whole(each) for each in (steps, steps[:-_KEPT_SLOTS])} - {0}

    def _committed(self, slot: int, step: dict[str, Any]) -> Place:
        try:
            books = step_of(step, self._measure)["books"]
            format_of(books, max(_LONG_FORMATS))
            return self._slot(slot) / str(books["attempt"])
        except ValueError as error:
            raise LedgerError(f"slot {slot}: its books have {error}") from None
        except (KeyError, TypeError, AttributeError):
            raise LedgerError(
                f"slot {slot}: the ledger names no books for it. Run adsbpc status --verify"
            ) from None

    def _slot(self, slot: int) -> Place:
        return self.folder / f"slot={slot:04d}"


def _changed(
    path: Place, sealed: Sequence[Any], whole: bool, listed: Mapping[RemotePath, Stamp]
) -> str | None:
    """What is wrong with a file, unless it is what the ledger says."""
    try:
        if not whole and isinstance(path, RemotePath):
            size, _, *version = sealed
            known = Stamp(size, *version)
            if known == listed.get(path) or known == path.stamp():
                return None
        with path.open("rb") as content:
            if hash_of(content) != sealed[1]:
                return f"{path}: is not what was written. {_LOST}"
    except OSError as error:
        if isinstance(path, RemotePath) and not isinstance(error, FileNotFoundError):
            return str(_unreadable(path, error))
        return f"{path}: cannot be read ({error.strerror}). {_LOST}"
    return None


_LOST = (
    "Without them nobody knows what people have spent, so nothing more may be released: restore "
    f"the folder {FOLDER} from the backup that belongs to the ledger's"
)


def _make(new: Path) -> None:
    if any(sign in str(new.absolute()) for sign in _SIGNS):
        raise LedgerError(
            f"{new}: has one of {' '.join(_SIGNS)} in its path, which engines take for a "
            "pattern. Rename the folder of the campaign file"
        )
    try:
        new.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise _not_written(new, error.strerror) from None


def _is_refused_by_the_disk(error: BaseException) -> TypeGuard[EngineError]:
    return (
        isinstance(error, EngineError)
        and error.step in _WRITES
        and any(sign in error.cause for sign in (*_REFUSALS, "cannot be written"))
    )


def _not_written(new: Place, cause: str | None) -> LedgerError:
    first = "Free space or give rights"
    if isinstance(new, RemotePath):
        first = "Check the bucket, the credentials and the rights, with adsbpc doctor"
    return LedgerError(
        f"{new}: cannot be written ({cause}). {first}, and run the same command again"
    )


def _unreadable(folder: Place, error: OSError) -> LedgerError:
    return LedgerError(
        f"{folder}: cannot be read ({error.strerror}). Check the bucket, the credentials and the "
        "rights, with adsbpc doctor, and run the same command again"
    )
