"""What the folder of a campaign holds beside its books: what publishers were paid, which is public
and pushed whole, and the key of a trial, which says who is in which arm and is made here.

Must never: make a second key for a campaign, or put one into an answer but for who assigns arms.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

from adsbpc.campaign.spend import spend_of
from adsbpc.durable import write_durably
from adsbpc.errors import ServiceError, SourceError, SpecError
from adsbpc.events.arms import keyed_arms
from adsbpc.model import CampaignSpec
from adsbpc.model.arms import KeyedArms, key_mark, read_key
from adsbpc.model.spend import SpendSection

# Publisher, day, amount, and a value of each further dimension.
SpendRow = tuple[str, date, float, Mapping[str, str]]
_COLUMNS = ("publisher_id", "day", "amount")
KEY_FILE = "lift.key"


def _spend_file(folder: Path) -> Path:
    return folder / "spend.csv"


def with_spend(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """A campaign with what was pushed of its spend, if anything was."""
    file = _spend_file(folder)
    if not file.exists():
        return spec
    with file.open(encoding="utf-8", newline="") as opened:
        by = tuple(next(csv.reader(opened))[len(_COLUMNS) :])
    return spec.model_copy(update={"spend": SpendSection(file=str(file), by=by)})


def spend_version(folder: Path) -> int:
    """Another one whenever something else is pushed; 0 before anything is."""
    file = _spend_file(folder)
    return file.stat().st_mtime_ns if file.exists() else 0


def keep_spend(spec: CampaignSpec, folder: Path, rows: Sequence[SpendRow]) -> float:
    """In place of what was pushed before; returns the sum. Raises SourceError for a row that the
    campaign has no place for, and then nothing changes."""
    by = tuple(rows[0][-1]) if rows else ()
    for number, (*_, values) in enumerate(rows, start=1):
        if values.keys() != set(by):
            raise SourceError(
                f"row {number}", f"the dimensions {', '.join(values) or '(none)'}",
                f"those of row 1: {', '.join(by) or '(none)'}", "Give every row the same ones",
            )  # fmt: skip
    plain = [(*row, *(values[name] for name in by)) for *row, values in rows]
    total = spend_of(spec, plain, by).until(spec.campaign.slots)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, *by))
    writer.writerows(plain)
    folder.mkdir(exist_ok=True, mode=0o700)
    write_durably(_spend_file(folder), text.getvalue().encode(), folders=2)
    return total


def with_key(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """A campaign with the key in its folder, if it is a trial."""
    if spec.lift is None:
        return spec
    own = spec.lift.model_copy(update={"key_file": str(folder / KEY_FILE)})
    return spec.model_copy(update={"lift": own})


def keep_new_key(folder: Path) -> None:
    _keep_key(folder, secrets.token_hex(32))


def keep_known_key(folder: Path, others: Path, mark: str) -> None:
    """The key of a campaign that has started, from the folder that it had then: the server's
    database was lost, and arms must stay as they are."""
    for file in sorted(others.glob(f"*/{KEY_FILE}")):
        # One of another trial may be damaged.
        with suppress(SpecError):
            key = read_key(file)
            if key_mark(key) == mark:
                _keep_key(folder, key)
                return
    raise SpecError(
        "the campaign has started, and the key that says who is in which arm is lost. Put "
        f"{KEY_FILE} back from a backup, into any folder below campaigns in the server's data, and "
        "create it again"
    )


def _keep_key(folder: Path, key: str) -> None:
    folder.mkdir(exist_ok=True, mode=0o700)
    write_durably(folder / KEY_FILE, f"{key}\n".encode("ascii"), mode=0o600, folders=2)


def arms_of(spec: CampaignSpec) -> KeyedArms:
    """Of a trial. Without its key it cannot go on, and where the key was is for the log."""
    try:
        return keyed_arms(spec)
    except SpecError as error:
        raise ServiceError(
            f"campaign {spec.campaign.name!r}: the key that says who is in which arm is lost "
            f"({error}). Put it back from a backup"
        ) from None
