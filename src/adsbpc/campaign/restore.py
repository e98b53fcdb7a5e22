"""Goes on from releases that people have seen and a restored ledger has lost.

What was published is committed as it is, with its charges; the state follows from it, and under
personal budgets from the events of then. Must never: draw noise, or commit a file for which neither
the ledger's own seal nor a mark vouches.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from adsbpc.campaign.data_path import Attributed, attribute
from adsbpc.campaign.release import Released, Releases, Running, SlotRows, take_up
from adsbpc.campaign.release_folder import ReleaseFolder, named_slots, release_files, text_of
from adsbpc.engines import Engine
from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import MeasuresState
from adsbpc.model import CampaignSpec, Release
from adsbpc.model.rules import cause_of
from adsbpc.storage import Place


@dataclass(frozen=True)
class Restored:
    """`releases` are in the ledger now; slots in `lost` were published and are still missing from
    it, by campaign."""

    releases: Releases
    lost: dict[str, list[int]]


def restore(
    spec: CampaignSpec, ledger: Ledger, folder: Place | None, engine: Callable[[], Engine]
) -> Restored:
    """Take the releases of the slots that the ledger lacks from a folder, in order."""
    published = ReleaseFolder(spec, ledger)
    folder = published.folder if folder is None else folder
    if ledger.mark(spec.campaign.scope) is None:
        raise LedgerError(
            f"ledger {ledger.where}: has no scope {spec.campaign.scope!r}, so nothing shows whose "
            "releases these are. Restore a backup of the ledger that has the scope"
        )
    running = take_up(spec, ledger, published)
    texts = _handed_back(running, folder)
    done = []
    for text in texts:
        done.append(_restore_slot(running, text, engine))
        if running.opening is not None:
            running = take_up(spec, ledger, published)
    lost = published.lost()
    if not done and spec.campaign.name in lost:
        missing = named_slots({spec.campaign.name: lost[spec.campaign.name]})
        raise LedgerError(
            f"{folder}: has no release that the ledger lacks, and these were published: {missing}. "
            "Give the folder with their files"
        )
    if not lost:
        published.mark()
    return Restored(Releases(done), lost)


def _handed_back(running: Running, folder: Place) -> list[str]:
    """The texts of the slots that the ledger lacks, all of them vouched for, before any is
    committed."""
    known, marked = running.ledger.releases(*running.key), running.published.hashes()
    for slot in running.published.lost().get(running.key[1], []):
        if slot <= len(known):
            raise _drawn_twice(f"what was published of slot {slot}", slot)
    texts: list[str] = []
    for slot, file in release_files(folder).items():
        text = text_of(file)
        if slot <= len(known):
            if text != known[slot - 1]:
                raise _drawn_twice(str(file), slot)
            continue
        if slot != len(known) + len(texts) + 1:
            raise LedgerError(
                f"{file}: slot {len(known) + len(texts) + 1} is missing before it. Slots are "
                "restored one by one: hand back all of them"
            )
        _check(running, file, slot, text, {each[slot - 1] for each in marked if slot <= len(each)})
        texts.append(text)
    return texts


def _check(running: Running, file: Place, slot: int, text: str, hashes: set[str]) -> None:
    """Refuse a file that is not, byte for byte, what this ledger released of the slot. `hashes` are
    what marks know of it."""
    try:
        release = Release.from_text(text)
    except ValueError as error:
        raise LedgerError(
            f"{file}: is not a release ({cause_of(error)}). Hand back the file that was published"
        ) from None
    found, expected = (release.scope, release.campaign, release.slot), (*running.key, slot)
    if found != expected:
        raise LedgerError(
            f"{file}: is slot {found[2]} of campaign {found[1]!r} of scope {found[0]!r}; expected "
            f"slot {slot} of campaign {expected[1]!r} of scope {expected[0]!r}. Give the folder of "
            "this campaign's releases"
        )
    if hashes - {sha256(text.encode()).hexdigest()}:
        raise LedgerError(
            f"{file}: is not what was published for slot {slot}: the mark has another hash. Hand "
            "back the file that people have seen"
        )
    if release.ledger is None and not hashes:
        raise LedgerError(
            f"{file}: carries nothing that shows that it is genuine, as releases of an earlier "
            "version do not, and no mark knows it. The slot counts as spent: restore a newer "
            "backup of the ledger"
        )
    if release.ledger is not None and not running.ledger.sealed(release.scope, text):
        raise LedgerError(
            f"{file}: was changed, or released from another ledger. Hand back the file that people "
            "have seen"
        )
    own = running.published.file(slot)
    if own.exists() and text_of(own) != text:
        raise LedgerError(f"{file}: differs from {own}. Find out which of the two was published")


def _restore_slot(running: Running, text: str, engine: Callable[[], Engine]) -> Released:
    release, state = Release.from_text(text), running.state()
    if release.slot != state.next_slot:
        raise _released_meanwhile(release.slot)
    step = _adopt(running, state, release, engine)
    stored, _ = running.ledger.adopt(text, step, running.opening)
    if stored != text:
        raise _released_meanwhile(release.slot)
    running.published.give_back(release.slot, text)
    return Released(text, replayed=True)


def _adopt(
    running: Running, state: MeasuresState, release: Release, engine: Callable[[], Engine]
) -> dict[str, Any]:
    """What the ledger keeps of the state that the slot left: exactly what it was."""
    measures, slot = running.measures, release.slot
    carries = release.ledger is not None and release.ledger.commitment is not None
    if measures.adopts_from_rows and not carries:
        raise LedgerError(
            f"slot {slot}: its release carries no commitment, as those of an earlier version do "
            f"not, and nothing else shows whether the events are the same as then. {_ENDS}"
        )
    with ExitStack() as stack:

        def attributed() -> Attributed:
            stack.enter_context(engine().scratch())
            return attribute(running.spec, engine(), slot, running.fit())

        rows = SlotRows(running, attributed, earlier=True)
        states = measures.adopt(state, rows.of, release)
    if carries:
        states = [
            each
            for each in states
            if any(
                running.ledger.committed(release, secret)
                for secret in (rows.secret(each), *rows.earlier_secrets(each))
            )
        ]
    if len(states) == 1 and (carries or running.opening is None):
        return states[0].last_step(rows.kept)
    rows.discard()
    if measures.adopts_from_rows:
        raise LedgerError(
            f"the events of slot {slot} are not those that were released. {_ENDS}, or give the "
            "events of that time"
        )
    raise LedgerError(
        f"slot {slot}: what it left does not follow from its release and this ledger. {_ENDS}"
    )


def _drawn_twice(what: str, slot: int) -> LedgerError:
    return LedgerError(
        f"{what}: is not what the ledger has of slot {slot}, which was drawn twice or changed. "
        "Restore a newer backup of the ledger"
    )


def _released_meanwhile(slot: int) -> LedgerError:
    return LedgerError(
        f"slot {slot}: another process released or restored it meanwhile. Run the same command "
        "again"
    )


_ENDS = (
    "The slot counts as spent, and the campaign cannot go on from it: restore a newer backup of "
    "the ledger"
)
