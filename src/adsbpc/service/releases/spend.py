"""What publishers were paid for a campaign: public, pushed whole, kept in the campaign's folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from adsbpc.campaign.spend import spend_of
from adsbpc.durable import write_durably
from adsbpc.errors import SourceError
from adsbpc.model import CampaignSpec
from adsbpc.model.spend import SpendSection

# Publisher, day, amount, and a value of each further dimension.
SpendRow = tuple[str, date, float, Mapping[str, str]]
_COLUMNS = ("publisher_id", "day", "amount")


def _file(folder: Path) -> Path:
    return folder / "spend.csv"


def with_spend(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """A campaign with what was pushed of its spend, if anything was."""
    file = _file(folder)
    if not file.exists():
        return spec
    with file.open(encoding="utf-8", newline="") as opened:
        by = tuple(next(csv.reader(opened))[len(_COLUMNS) :])
    return spec.model_copy(update={"spend": SpendSection(file=str(file), by=by)})


def spend_version(folder: Path) -> int:
    """Another one whenever something else is pushed; 0 before anything is."""
    file = _file(folder)
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
    write_durably(_file(folder), text.getvalue().encode(), folders=2)
    return total
