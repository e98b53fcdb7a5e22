"""From a campaign file to what it says, whole or of one period, or a message for every problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adsbpc.errors import SpecError
from adsbpc.model.periods import OPEN, Period, check_open, file_and_period, is_open, of_period
from adsbpc.model.spec import CampaignSpec
from adsbpc.model.toml import checked, read_toml


def load_spec(path: Path) -> CampaignSpec:
    """Read a campaign file, or raise SpecError with every problem on a line of its own. Of a file
    without an end, `path@2026-03` is one period."""
    file, period = file_and_period(path)
    content = read_campaign(file)
    if period is None:
        return spec_of(content, file.resolve().parent, str(file))
    if not is_open(content):
        raise SpecError(
            f'the file has an end, and no periods: only slots = "{OPEN}" has',
            path=str(path),
            to_do=f"Name the file alone: {file}",
        )
    return spec_of_period(content, period, file)


def read_campaign(file: Path) -> dict[str, Any]:
    missing = SpecError(
        "no such campaign file",
        path=str(file),
        to_do=f"Check the path, or write one with: adsbpc init {file}",
    )
    return read_toml(file, missing)


def spec_of_period(content: Mapping[str, Any], period: Period, file: Path) -> CampaignSpec:
    """One period of a file without an end."""
    start, renewal = check_open(content, str(file))
    if period.renewal != renewal or period.last < start:
        first = Period.of(start, renewal)
        raise SpecError(
            f"the campaign has no period {period.label}: budgets renew every {renewal}, from "
            f"{first.label} on",
            path=f"{file}@{period.label}",
            to_do=f"Say {file}@{first.label}, for example",
        )
    whole = of_period(content, period)
    return spec_of(whole, file.resolve().parent, f"{file}@{period.label}")


def spec_of(content: Mapping[str, Any], directory: Path, where: str) -> CampaignSpec:
    """What a campaign file says, once it is read, whatever it was written in."""
    if is_open(content):
        start, renewal = check_open(content, where)
        raise SpecError(
            f'slots = "{OPEN}": the campaign has no end, and this is done for one {renewal} of it',
            path=where,
            to_do=f"Say which: {where}@{Period.of(start, renewal).label}, for example",
        )
    return checked(CampaignSpec, content, directory, where, "campaign file")
