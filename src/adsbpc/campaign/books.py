"""The folder beside a campaign file with the books of personal budgets: who asked for what, and
what everybody has spent.

As sensitive as the events. Every attempt to release a slot writes a folder of its own, and the
ledger's entry for the slot names the one that counts, with the hash of every file: the two stores
cannot disagree, and books that were lost or changed are refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from adsbpc.campaign.book_seals import (
    FOLDER,
    MANIFEST,
    Hashes,
    Seals,
    changed_since,
    is_refused_by_the_disk,
    problem_of,
    read_manifests,
    seal_files,
    unreadable,
    unwritable,
)
from adsbpc.campaign.book_uses import (
    LONG_FORMATS,
    firsts_of,
    gathered,
    is_long,
    last_whole,
    renewed_last,
    whole_in_use,
)
from adsbpc.campaign.release_folder import folder_name, home_of
from adsbpc.contributions import Books
from adsbpc.contributions.account_books import (
    FILES,
    GATHERED,
    NAMES,
    Parts,
    first_ungathered,
    slots_read,
)
from adsbpc.contributions.long_books import LONG_FILES, READ_AGAIN, SUMS, LongBooks
from adsbpc.durable import sync_folder, write_durably
from adsbpc.engines import Engine, quote_text
from adsbpc.errors import LedgerError, SourceError
from adsbpc.mechanisms import step_of
from adsbpc.model import CampaignSpec
from adsbpc.model.formats import format_of
from adsbpc.storage import Place, RemotePath, hashes_of, remove_tree

# A file that says that the first slot counts, whatever becomes of ledger and releases.
_RELEASED = "released"
# Of the five files. Format 1 had four, and was not named in the ledger before it had a number.
_FORMAT = 2
# Where each of the files, of any kind, is a folder of several, which a manifest names; and where
# the five files or folders have rows of slots before theirs, from a `first` one on.
_FOLDER_FORMAT, _GATHERED_FORMAT = 5, 6
WHOLE_EVERY = 128
GATHERED_EVERY = 32
# What is out of use is removed so many slots later, when nobody can still be reading it, from so
# many slots: older ones were swept before.
_KEPT_SLOTS = 3
_SWEPT = 8
# Signs in a path that some engine takes for a pattern.
_SIGNS = "*?[]{}\\"


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
        self._manifests: dict[Place, Seals] = {}

    @classmethod
    def all_of(cls, spec: CampaignSpec) -> list[BookFolder]:
        return [cls(spec, measure.name) for measure in spec.measures]

    @contextmanager
    def attempt(
        self, steps: Sequence[dict[str, Any]], hashes: Hashes = hashes_of
    ) -> Iterator[Books]:
        """The books that count, and a new folder for the next slot's, which goes if this fails.
        What has to be read whole is left to `hashes`."""
        earlier = tuple(self._committed(slot, step) for slot, step in enumerate(steps, start=1))
        own = self._own(steps)
        since, firsts = renewed_last(own), firsts_of(own)
        five_since = 1 + sum(step["books"].get("format", 1) < _FORMAT for step in own)
        gathers = None if (len(steps) + 1) % GATHERED_EVERY else first_ungathered(firsts)
        with self._opened(steps, hashes) as new:
            parts = self._parts(steps, {*slots_read(firsts, 1), *slots_read(firsts, since)})
            yield Books(earlier, new, since, five_since, parts, firsts, gathers)

    @contextmanager
    def long_attempt(
        self, steps: Sequence[dict[str, Any]], hashes: Hashes = hashes_of
    ) -> Iterator[LongBooks]:
        """The same for a long campaign: the last books that are whole are all that counts, and
        those of the slot before."""
        slot, last = len(steps) + 1, last_whole(self._own(steps))
        whole = self._committed(last, steps[last - 1]) if last else None
        recent = self._committed(slot - 1, steps[-1]) if steps and last < slot - 1 else None
        with self._opened(steps, hashes) as new:
            parts = self._parts(steps, {last, slot - 1})
            yield LongBooks(slot, whole, recent, new, slot % WHOLE_EVERY == 0, parts)

    def _parts(self, steps: Sequence[dict[str, Any]], slots: set[int]) -> Parts:
        """The files of some slots, of those whose books are folders of files."""
        named = [each for each in self._named(steps) if each[0] in slots]
        return {
            self._committed(slot, step): tuple(seals)
            for slot, step, seals in self._sealed(named)
            if MANIFEST in seals
        }

    @contextmanager
    def _opened(self, steps: Sequence[dict[str, Any]], hashes: Hashes) -> Iterator[Place]:
        new = self._open(steps, hashes)
        self._sweep(steps)
        try:
            yield new
        except BaseException as error:
            remove_tree(new)
            if is_refused_by_the_disk(error):
                raise unwritable(new, error.cause) from error
            raise

    def _open(self, steps: Sequence[dict[str, Any]], hashes: Hashes) -> Place:
        problem = self.problem(steps, hashes=hashes)
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
            raise unreadable(self.folder, error) from None
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
            if isinstance(self.folder, Path):
                files = self.folder.glob(f"slot=*/attempt=*/{name}")
                return [file for each in files for file in _files_in(each)]
            found = {f for f in self.folder.stamps() if f.below(self.folder)[2:3] == (name,)}
            known = {file for file in self._known(steps) if file.below(self.folder)[2] == name}
            return [*found, *(file for file in known - found if file.exists())]
        except OSError as error:
            raise unreadable(self.folder, error) from None

    def _known(self, steps: Sequence[dict[str, Any]]) -> Iterator[RemotePath]:
        """Files of a store that the ledger names, or manifests that are still there."""
        for slot, step in self._named(steps):
            committed, names = self._committed(slot, step), set(FILES) | {SUMS}
            # Whoever erases books removes the manifest after what it names.
            if (committed / MANIFEST).exists():
                names |= {name for _, _, seals in self._sealed([(slot, step)]) for name in seals}
            for name in sorted(names, key=lambda each: each == MANIFEST):
                found = committed / name
                assert isinstance(found, RemotePath)
                yield found

    def _named(self, steps: Sequence[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
        """Slots for which the ledger names books."""
        own = enumerate(self._own(steps), start=1)
        return [(slot, steps[slot - 1]) for slot, step in own if "books" in step]

    def _own(self, steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [step_of(step, self._measure) for step in steps]

    def erase(self, steps: Sequence[dict[str, Any]]) -> None:
        """Delete all books. That the campaign was released is still known."""
        if isinstance(self.folder, Path):
            for folder in sorted(self.folder.glob("slot=*")):
                # Another process may do the same.
                with suppress(FileNotFoundError):
                    shutil.rmtree(folder)
            return
        try:
            known = list(self._known(steps))
            for file in sorted(self.folder.stamps(), key=lambda each: each.name == MANIFEST):
                if file.name != _RELEASED:
                    file.unlink(missing_ok=True)
            # And those that the store does not list yet.
            for file in known:
                file.unlink(missing_ok=True)
        except OSError as error:
            raise LedgerError(
                f"{self.folder}: cannot be erased ({error.strerror}). Give the right to delete, "
                "and run the same command again"
            ) from None

    def seal(self, books: Books | LongBooks) -> dict[str, Any]:
        """Bring new books onto the disk; returns what the ledger keeps of them."""
        new, is_long = books.new, isinstance(books, LongBooks)
        try:
            files = seal_files(new, LONG_FILES if is_long else FILES)
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
            kept |= {"format": max(LONG_FORMATS), "whole": books.merges}
        if MANIFEST in files:
            kept |= {"format": _FOLDER_FORMAT}
        if isinstance(books, Books) and books.gathers is not None:
            kept |= {"format": _GATHERED_FORMAT, "first": books.gathers}
        return kept

    def _sweep(self, steps: Sequence[dict[str, Any]]) -> None:
        """Remove attempts that never counted, accounts that later ones have replaced, and files
        that another slot has gathered."""
        if isinstance(self.folder, RemotePath):
            self._sweep_store(steps, self.folder)
            return
        own, out_of_use = self._own(steps), list(enumerate(steps[:-_KEPT_SLOTS], start=1))
        in_use = whole_in_use(own, _KEPT_SLOTS)
        before = last_whole(own[: min(in_use) - 1]) if in_use else 0
        out_of_use = [*out_of_use[:-_SWEPT][before - 1 : before], *out_of_use[-_SWEPT:]]
        for slot, step in out_of_use:
            committed = self._committed(slot, step)
            for file in READ_AGAIN if slot not in in_use else ():
                remove_tree(committed / file)
            for other in self._slot(slot).glob("attempt=*"):
                if other != committed:
                    remove_tree(other)
        replaced = gathered(own[:-_KEPT_SLOTS])
        for slot in replaced.keys() - gathered(own[: -_KEPT_SLOTS - _SWEPT]):
            for file in replaced[slot]:
                remove_tree(self._committed(slot, steps[slot - 1]) / file)

    def _sweep_store(self, steps: Sequence[dict[str, Any]], folder: RemotePath) -> None:
        """The same, from one list: what a store does not list yet is swept by a later slot."""
        old = {
            str(self._slot(slot)): self._committed(slot, step)
            for slot, step in enumerate(steps[:-_KEPT_SLOTS], start=1)
        }
        own = self._own(steps)
        in_use = {str(self._slot(slot)) for slot in whole_in_use(own, _KEPT_SLOTS)}
        elsewhere = {str(self._slot(n)): f for n, f in gathered(own[:-_KEPT_SLOTS]).items()}
        with suppress(OSError):
            for file in folder.stamps() if old else ():
                slot, *attempt = file.below(folder)
                above = str(folder / slot)
                committed = old.get(above)
                replaced = elsewhere.get(above, ()) + (READ_AGAIN if above not in in_use else ())
                is_replaced = bool(attempt[1:2]) and attempt[1] in replaced
                if committed is not None and (attempt[0] != committed.name or is_replaced):
                    file.unlink(missing_ok=True)

    def problem(
        self, steps: Sequence[dict[str, Any]], whole: bool = False, hashes: Hashes = hashes_of
    ) -> str | None:
        """What of the books is not what the ledger says, if anything. Files are only read if they
        are looked at `whole`, or are not of the size and version of then. Of a long campaign only
        what is read again is looked at: the rest is for who audits. What another slot has gathered
        is out of use."""
        own, in_use = self._own(steps), {len(steps)}
        elsewhere = gathered(own)
        named = [each for each in self._named(steps) if elsewhere.get(each[0]) != GATHERED]
        if own and is_long(own[-1]):
            in_use.add(last_whole(own))
            named = [(slot, step) for slot, step in named if slot in in_use]
        try:
            listed = self.folder.stamps() if isinstance(self.folder, RemotePath) else {}
            sealed = [
                (folder / file, seal)
                for slot, step, seals in self._sealed(named)
                for folder in (self._committed(slot, step),)
                for file, seal in seals.items()
                for name in (file.split("/")[0],)
                if slot in in_use or name not in READ_AGAIN
                if file != MANIFEST and name not in elsewhere.get(slot, ())
            ]
        except OSError as error:
            return str(unreadable(self.folder, error))
        except LedgerError as error:
            return str(error)
        unknown = sealed if whole else changed_since(sealed, listed)
        found = hashes([path for path, _ in unknown]) if unknown else []
        checks = (problem_of(*each, sha256) for each, sha256 in zip(unknown, found, strict=True))
        return next(filter(None, checks), None)

    def _sealed(
        self, named: Sequence[tuple[int, dict[str, Any]]]
    ) -> list[tuple[int, dict[str, Any], Seals]]:
        """What the files of slots were like when they were written, as the ledger says, and the
        manifests that it names."""
        found = [
            (slot, step, step_of(step, self._measure)["books"]["files"]) for slot, step in named
        ]
        lists = {self._committed(n, step): f[MANIFEST] for n, step, f in found if MANIFEST in f}
        unread = {folder: seal for folder, seal in lists.items() if folder not in self._manifests}
        self._manifests |= read_manifests(unread)
        return [
            (
                slot,
                step,
                {**self._manifests[self._committed(slot, step)], **f} if MANIFEST in f else f,
            )
            for slot, step, f in found
        ]

    def _committed(self, slot: int, step: dict[str, Any]) -> Place:
        try:
            books = step_of(step, self._measure)["books"]
            format_of(books, _GATHERED_FORMAT)
            return self._slot(slot) / str(books["attempt"])
        except ValueError as error:
            raise LedgerError(f"slot {slot}: its books have {error}") from None
        except (KeyError, TypeError, AttributeError):
            raise LedgerError(
                f"slot {slot}: the ledger names no books for it. Run adsbpc status --verify"
            ) from None

    def _slot(self, slot: int) -> Place:
        return self.folder / f"slot={slot:04d}"


def _files_in(path: Path) -> list[Path]:
    """A file, or those of a folder."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def _make(new: Path) -> None:
    if any(sign in str(new.absolute()) for sign in _SIGNS):
        raise LedgerError(
            f"{new}: has one of {' '.join(_SIGNS)} in its path, which engines take for a "
            "pattern. Rename the folder of the campaign file"
        )
    try:
        new.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise unwritable(new, error.strerror) from None
