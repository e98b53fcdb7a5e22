"""What publishers were paid for a campaign: public, pushed whole, kept in the campaign's folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from adsbpc.campaign.spend import spend_of
from adsbpc.durable import write_durably
from adsbpc.model import CampaignSpec
from adsbpc.model.spend import SpendSection

SpendRow = tuple[str, date, float]


def _file(folder: Path) -> Path:
    return folder / "spend.csv"


def with_spend(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """A campaign with what was pushed of its spend, if anything was."""
    file = _file(folder)
    if not file.exists():
        return spec
    return spec.model_copy(update={"spend": SpendSection(file=str(file))})


def spend_version(folder: Path) -> int:
    """Another one whenever something else is pushed; 0 before anything is."""
    file = _file(folder)
    return file.stat().st_mtime_ns if file.exists() else 0


def keep_spend(spec: CampaignSpec, folder: Path, rows: Sequence[SpendRow]) -> float:
    """In place of what was pushed before; returns the sum. Raises SourceError for a row that the
    campaign has no place for, and then nothing changes."""
    total = spend_of(spec, rows).until(spec.campaign.slots)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("publisher_id", "day", "amount"))
    writer.writerows(rows)
    folder.mkdir(exist_ok=True, mode=0o700)
    write_durably(_file(folder), text.getvalue().encode(), folders=2)
    return total
