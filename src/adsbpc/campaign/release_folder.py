"""The folder beside a campaign file that holds what was published, and how far the ledger was then.

A ledger that was lost, rolled back, forked or swapped for another would refund budget. What was
published is out, so this folder, and the witness where there is one, are compared with the ledger
before anything is released or shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from adsbpc.errors import LedgerError
from adsbpc.ledger import Head, Ledger, Mark, MarkFile, MarkPlace, MarkTable, Snapshot
from adsbpc.ledger.marks import mark_place, write_new, write_record
from adsbpc.model import CampaignSpec, Release
from adsbpc.storage import Place, RemotePath, contents_of, folder_at, is_remote, place_at

FOLDER = "adsbpc-releases"
_MARK = "ledger.json"
_LONGEST_NAME = 120
_NOTHING = Head(0, "")


class ReleaseFolder:
    """`adsbpc-releases/<scope>/ledger.json` and `.../<campaign>/0001.json`, one file a slot.

    The mark is what the scope's ledger held when something of the scope was last shown, by any
    campaign of this folder; a witness has the same mark in another place.
    """

    def __init__(self, spec: CampaignSpec, ledger: Ledger) -> None:
        self._scope, self._campaign, self._ledger = spec.campaign.scope, spec.campaign.name, ledger
        folder = home_of(spec) / FOLDER / folder_name(self._scope)
        self.folder = folder / folder_name(self._campaign)
        # The witness first: what it has noted may be published, whatever becomes of this folder.
        self._places = [*_witnesses(spec), mark_place(folder / _MARK, self._scope)]

    def check(self) -> None:
        """Refuse a ledger that does not know what was published here, or what a witness knows."""
        self._check(*self._seen(), self._ledger.mark(self._scope))

    def snapshot(self, through: Mapping[str, int] | None = None) -> Snapshot:
        """The ledger at one moment, which was held to the same."""
        seen = self._seen()
        found = self._ledger.snapshot(self._scope, self._campaign, through)
        self._check(*seen, found.mark)
        return found

    def verify(self) -> None:
        """Refuse the same, and files that were changed."""
        marks, texts = self._seen()
        found = self._ledger.snapshot(self._scope, self._campaign)
        self._check(marks, texts, found.mark)
        for slot, text in texts.items():
            if found.releases[slot - 1 : slot] != (text,):
                raise LedgerError(self._differs(self.file(slot)))

    def _check(
        self, marks: Mapping[str, Mark], texts: Mapping[int, str], standing: Mark | None
    ) -> None:
        for where, marked in marks.items():
            self._compare(where, marked, standing)
        behind = self._behind(texts, standing)
        if behind:
            raise LedgerError(
                f"{self.folder}: holds releases that are not in ledger {self._ledger.where}: "
                f"{named_slots({self._campaign: behind})}. {_BEHIND}"
            )

    def _seen(self) -> tuple[dict[str, Mark], dict[int, str]]:
        """Marks by place, and files by slot. The ledger is asked after them: what another process
        publishes meanwhile is in the ledger before it is anywhere else."""
        marks = {place.where: place.read() for place in self._places}
        texts = release_texts(self.folder)
        return {where: mark for where, mark in marks.items() if mark is not None}, texts

    def mark(self, shown: Mark | None = None) -> None:
        """Note how far the ledger is before anything of it is published or shown; if it is `shown`
        as it was at a moment, how far it was then, at least."""
        head = self._ledger.head(self._scope) if shown is None else shown.head
        for place in self._places:
            marked = place.read()
            if head != (_NOTHING if marked is None else marked.head):
                place.renew(partial(self._renewed, place.where))

    def _renewed(self, where: str, marked: Mark | None) -> Mark | None:
        """What the ledger holds now, under the lock of the place: nobody has noted more since."""
        standing = self._ledger.mark(self._scope)
        if marked is not None:
            self._compare(where, marked, standing)
        return standing

    def _compare(self, where: str, marked: Mark, standing: Mark | None) -> None:
        """Refuse a ledger that holds less than the mark. It need not be the same entries: one that
        was restored from a backup, and went on from what was published, has others."""
        if standing is None:
            raise LedgerError(
                f"{where}: budget of scope {self._scope!r} was spent, but ledger "
                f"{self._ledger.where} has no such scope. {_LOST}"
            )
        if self._holds(marked.head, standing):
            return
        lost = marked.lost_in(standing)
        if marked.identity == standing.identity:
            if not lost and standing.pico_rho >= marked.pico_rho:
                return
            to_do = _BEHIND
        else:
            to_do = _LOST
        missing = f" Not in it: {named_slots(lost)}." if lost else ""
        raise LedgerError(
            f"{where}: something was published when the ledger of scope {self._scope!r} had "
            f"{marked.head.position} entries, and ledger {self._ledger.where} is older than that, "
            f"or another one.{missing} {to_do}"
        )

    def _behind(self, texts: Mapping[int, str], standing: Mark | None) -> list[int]:
        """Slots whose files were published from a ledger that went further than this one, or
        another way."""
        hashes = () if standing is None else standing.campaigns.get(self._campaign, ())
        found = []
        for slot, text in texts.items():
            if hashes[slot - 1 : slot] == (sha256(text.encode()).hexdigest(),):
                continue
            if slot > len(hashes) or not self._holds_entry_of(text, standing):
                found.append(slot)
        return found

    def _holds(self, head: Head, standing: Mark | None) -> bool:
        # Entries stay as they are, so that it does not matter when an earlier one is asked for.
        newest = None if standing is None else standing.head
        return head == newest or self._ledger.holds(self._scope, head)

    def _holds_entry_of(self, text: str, standing: Mark | None) -> bool:
        """Whether a file that is not what the ledger has was at least changed from it."""
        try:
            carried = Release.from_text(text).ledger
        except ValueError:
            return True
        return carried is not None and self._holds(Head(carried.position, carried.hash), standing)

    def publish(self, slot: int, text: str) -> None:
        """Write a committed release; one that is there already must be the same."""
        if not is_there(self.file(slot)):
            self.mark()
        self.give_back(slot, text)

    def give_back(self, slot: int, text: str) -> None:
        """The same for a release that was published before, whatever the marks say by now."""
        file = self.file(slot)
        if is_there(file):
            if text_of(file) != text:
                raise LedgerError(self._differs(file))
        elif isinstance(file, Path):
            write_record(file, text)
        elif not write_new(file, text) and text_of(file) != text:
            raise LedgerError(self._differs(file))

    def lost(self) -> dict[str, list[int]]:
        """Slots that were published and are not in the ledger, by campaign, as far as it is known
        here."""
        marks, texts = self._seen()
        standing = self._ledger.mark(self._scope)
        found = {self._campaign: self._behind(texts, standing)}
        for marked in marks.values():
            there = Mark(self._scope, _NOTHING) if standing is None else standing
            for campaign, slots in marked.lost_in(there).items():
                found[campaign] = sorted({*found.get(campaign, []), *slots})
        return {campaign: slots for campaign, slots in found.items() if slots}

    def hashes(self) -> list[tuple[str, ...]]:
        """What each mark of this very scope knows of the campaign's releases, in the order of
        slots."""
        marks, _ = self._seen()
        standing = self._ledger.mark(self._scope)
        return [
            marked.campaigns.get(self._campaign, ())
            for marked in marks.values()
            if standing is not None and marked.identity == standing.identity
        ]

    def _differs(self, file: Place) -> str:
        return (
            f"{file}: is not what the ledger says was released. Find out which of the two was "
            "changed, and restore it from a backup"
        )

    def file(self, slot: int) -> Place:
        return release_file(self.folder, slot)


_LOST = (
    "A lost ledger counts as spent: restore it from its newest backup, or put [ledger] location "
    "back. If it is lost for good, measure these people no more, or under a new scope whose budget "
    "you can defend beside the old one"
)
_BEHIND = (
    "Nothing was drawn or charged. Restore a newer backup of the ledger, or hand back the release "
    "files of these slots: adsbpc restore FILE --releases FOLDER"
)


def _witnesses(spec: CampaignSpec) -> list[MarkPlace]:
    """The second place for the mark, if the campaign has one."""
    witness, scope = spec.ledger.witness, spec.campaign.scope
    if witness is None:
        return []
    if is_remote(witness):
        return [mark_place(folder_at(witness, spec.directory, "[ledger] witness"), scope)]
    if "://" in witness:
        return [MarkTable(witness, scope)]
    path = spec.directory / witness
    # A missing witness is made, so a disk that is not there must not look like one.
    if not path.parent.is_dir():
        raise LedgerError(
            f"[ledger] witness = {witness!r}: the folder {path.parent} does not exist. Mount the "
            "disk that it is on, or create it"
        )
    return [MarkFile(path, scope)]


def named_slots(lost: Mapping[str, Sequence[int]]) -> str:
    """Slots by campaign, in words."""
    return "; ".join(
        f"campaign {campaign!r}, {_in_words(slots)}: {'count' if slots[1:] else 'counts'} as spent"
        for campaign, slots in lost.items()
    )


def _in_words(slots: Sequence[int]) -> str:
    runs = []
    for _, run in groupby(enumerate(slots), key=lambda each: each[1] - each[0]):
        first, *rest = (slot for _, slot in run)
        runs.append(f"{first} to {rest[-1]}" if rest else str(first))
    return f"slot{'s' if slots[1:] else ''} {', '.join(runs)}"


def release_files(folder: Place) -> dict[int, Place]:
    """The files of releases in a folder, by slot, in order."""
    try:
        files = {int(f.stem): f for f in folder.glob("*.json") if f.stem.isdecimal()}
    except OSError as error:
        raise _unreadable(folder, error) from None
    if isinstance(folder, RemotePath):
        # Some stores list late, and tell at once whether there is a file of a name.
        last, slot = max(files, default=0), 1
        while slot <= last or is_there(release_file(folder, slot)):
            if slot not in files and (slot > last or is_there(release_file(folder, slot))):
                files[slot] = release_file(folder, slot)
            slot += 1
    return dict(sorted(files.items()))


def release_file(folder: Place, slot: int) -> Place:
    return folder / f"{slot:04d}.json"


def is_there(file: Place) -> bool:
    try:
        return file.exists()
    except OSError as error:
        raise _unreadable(file, error) from None


def text_of(file: Place) -> str:
    """Byte for byte; line ends are not translated."""
    try:
        return file.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None


def release_texts(folder: Place) -> dict[int, str]:
    """What stands in them."""
    files = release_files(folder)
    if isinstance(folder, Path):
        return {slot: text_of(file) for slot, file in files.items()}
    try:
        texts = [content.decode() for content in contents_of(list(files.values()))]
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from None
    return dict(zip(files, texts, strict=True))


def _unreadable(place: Place, error: Exception) -> LedgerError:
    if isinstance(place, Path):
        return LedgerError(f"{place}: cannot be read ({error}). Restore it from a backup")
    told = error.strerror if isinstance(error, OSError) else error
    return LedgerError(
        f"{place}: cannot be read ({told}). Check the bucket, the credentials and the rights, with "
        "adsbpc doctor, and run the same command again"
    )


def home_of(spec: CampaignSpec) -> Place:
    """Where books and releases of the campaign are."""
    return place_at(spec.storage.location, spec.directory, "[storage] location")


def folder_name(name: str) -> str:
    """A name of scope or campaign as one folder, whatever signs it holds."""
    quoted = quote(name, safe=" ").replace(".", "%2E")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{quoted[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:16]}"
