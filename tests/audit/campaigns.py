"""Released campaigns to audit and to forge: made once, copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc import Campaign
from adsbpc.audit import Findings
from adsbpc.mechanisms.by_rows.outlook import Outlook
from adsbpc.mechanisms.by_rows.state import Row
from tests.campaign.files import FIXED, PERSONAL, edit, write_campaign

SUBSTITUTE = 'adjacency = "substitute"'
SVT = '[privacy.adsbpc]\nbounds = "svt"\nquantile_slots = 2'
FIT = "\n[attribution.fit]\nrho = 0.05\nslots = 2\n\n[privacy]\n"


def _with_fit(directory: Path, privacy: str) -> Path:
    file = write_campaign(directory, model="shapley", privacy=privacy)
    edit(file, "\n[privacy]\n", FIT)
    return file


def _of_values(directory: Path, privacy: str) -> Path:
    """What conversions are worth, by windows of three days."""
    file = write_campaign(directory, privacy=privacy)
    edit(file, 'slot = "1d"', 'slot = "1d"\nmetric = "value"\nvalue_cap = 50.0')
    edit(file, 'queries = "prefix"', 'queries = "sliding"\nwindow = 3')
    conversions = pq.read_table(directory / "conversions.parquet")
    worth = pa.array([12.5] * len(conversions))
    pq.write_table(conversions.append_column("value", worth), directory / "conversions.parquet")
    return file


def _of_people(directory: Path, privacy: str) -> Path:
    """Who was reached, once each. New people come on every slot."""
    file = write_campaign(directory, privacy=privacy)
    file.write_text(f'{file.read_text()}\n[[measure]]\nname = "people"\nmetric = "reach"\n')
    impressions = pq.read_table(directory / "impressions.parquet")
    names = impressions["user_id"].to_pylist()
    days = [str(moment.day) for moment in impressions["timestamp"].to_pylist()]
    users = [f"{user} {day}" for user, day in zip(names, days, strict=True)]
    both = pa.concat_tables([impressions, impressions.set_column(0, "user_id", [users])])
    pq.write_table(both, directory / "impressions.parquet")
    return file


def _with_sums(directory: Path, privacy: str) -> Path:
    """Conversions by publisher, where their sum is a cell of its own."""
    file = write_campaign(directory, privacy=privacy)
    file.write_text(f'{file.read_text()}\n[[measure]]\nname = "conversions"\n')
    return file


def _renewed(directory: Path) -> Path:
    """Five cells, so that two columns count what was cut, and the past is let in again twice. Every
    row holds all slots so far."""
    strategy = '[privacy.personal_budget]\nstrategy = "square-root"'
    file = write_campaign(directory, privacy=f"{PERSONAL}\n{strategy}")
    edit(file, 'publishers = ["P-1", "P-2"]', 'publishers = ["P-1", "P-2", "X", "P-4"]')
    return file


# What a renewed campaign measures, by slot: slots 2 and 4 let the past in again, and slot 4 with
# another allowance too. Everybody is cut.
RENEWALS = (2, 4)
_ALLOWANCES = (0.9, 0.9, 0.9, 0.7, 0.7)
_SIZES = {2: (48, 80, 64, 64, 70), 4: (50, 64, 90, 64, 64)}


@contextmanager
def chosen_renewals() -> Iterator[None]:
    """Renewals at known slots, rather than where noisy figures ask for them."""

    def choose(_: Outlook, rows: Sequence[Row], *_given: Any) -> float:
        return _ALLOWANCES[len(rows)]

    def sizes_of(
        _totals: Any, _errors: Any, current: tuple[int, ...], _layout: Any
    ) -> tuple[int, ...]:
        return _SIZES[2] if set(current) == {64} else _SIZES[4]

    with (
        patch.object(Outlook, "choose", choose),
        patch("adsbpc.mechanisms.by_rows.mechanism.sizes_of", sizes_of),
    ):
        yield


# Everybody is cut under a fixed allowance, and comes near the limit.
KINDS: dict[str, Callable[[Path], Path]] = {
    "adsbpc": write_campaign,
    "adsbpc, substitution": lambda place: write_campaign(place, privacy=SUBSTITUTE),
    "adsbpc, sparse vector": lambda place: write_campaign(place, privacy=SVT),
    "adsbpc, fit": lambda place: _with_fit(place, ""),
    "adsbpc, values": lambda place: _of_values(place, ""),
    "personal, values": lambda place: _of_values(place, PERSONAL),
    "personal": lambda place: write_campaign(place, privacy=PERSONAL),
    "personal, substitution": lambda place: write_campaign(
        place, privacy=f"{SUBSTITUTE}\n{PERSONAL}"
    ),
    "personal, cut": lambda place: write_campaign(place, privacy=FIXED),
    "personal, cut, substitution": lambda place: write_campaign(
        place, privacy=f"{SUBSTITUTE}\n{FIXED}"
    ),
    "personal, renewed": _renewed,
    "personal, sums": lambda place: _with_sums(place, PERSONAL),
    "personal, sums, cut": lambda place: _with_sums(place, FIXED),
    "personal, people": lambda place: _of_people(place, PERSONAL),
    "personal, people, cut": lambda place: _of_people(place, FIXED),
    "personal, fit": lambda place: _with_fit(place, f"{SUBSTITUTE}\n{PERSONAL}"),
}


class Released:
    """Each kind of campaign with all of its slots, or so many of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def copy(self, kind: str, to: Path, slots: int = 5) -> Path:
        """A copy of the folder; returns the campaign file in it."""
        place = self._directory / f"{kind} {slots}"
        if not place.exists():
            file = KINDS[kind](place)
            with chosen_renewals() if "renewed" in kind else nullcontext():
                Campaign.load(file).release(through=f"2026-03-{slots:02d}")
        shutil.copytree(place, to, dirs_exist_ok=True)
        return to / "spring.toml"


def broken(found: Findings, chosen: bool = False) -> dict[str, str]:
    """Claims that do not hold, with what was found. Renewals that a test has chosen do not follow
    from what was released, and the audit says so."""
    told = {claim.name: claim.detail for claim in found.broken}
    if chosen:
        del told["choices"]
    return told


# Claims that whoever changes things can make hold again.
SEALED = {"chain of the ledger", "book files", "published files"}


def found_in(directory: Path, chosen: bool = False) -> dict[str, str]:
    return broken(Campaign.load(directory / "spring.toml").audit(), chosen)
