"""`adsbpc init`: a commented campaign file to start from, or one proposed for files of events."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from adsbpc.cli.campaign_text import CampaignText
from adsbpc.errors import SpecError
from adsbpc.model import load_spec

_ADVERTISER, _PUBLISHERS, _SLOTS = "Ad-1", ["P-1", "P-2"], 31


@dataclass(frozen=True)
class Wishes:
    """What the options of the command say; None, or nothing, where they say nothing."""

    file: Path
    name: str | None = None
    advertiser: str | None = None
    start: str | None = None
    slots: int | None = None
    publishers: tuple[str, ...] = ()
    impressions: str | None = None
    conversions: str | None = None
    columns: tuple[str, ...] = ()
    timezone: str | None = None
    rho: float = 1.0
    publishers_are_public: bool = False

    @property
    def first_day(self) -> date | None:
        try:
            return None if self.start is None else date.fromisoformat(self.start)
        except ValueError:
            raise SpecError(f"--start {self.start}: expected a date such as 2026-03-01") from None


def run(wishes: Wishes, as_json: bool) -> None:
    wishes.first_day  # noqa: B018
    asks = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if wishes.file.exists():
        raise SpecError(f"{wishes.file}: is there already. Give another name, or edit it")
    if asks and wishes.impressions is None and wishes.conversions is None:
        wishes = _asked_for_files(wishes)
    if wishes.impressions is not None or wishes.conversions is not None:
        from adsbpc.cli.init_from_files import propose

        propose(wishes, asks, as_json)
        return
    file = wishes.file
    text = CampaignText(
        wishes.name or wishes.file.stem,
        wishes.advertiser or _ADVERTISER,
        wishes.first_day or date.today().replace(day=1),
        wishes.slots or _SLOTS,
        list(wishes.publishers) or _PUBLISHERS,
        timezone=wishes.timezone or "UTC",
        rho=wishes.rho,
    )
    write({file: str(text)}, lambda: load_spec(file))
    if as_json:
        print(json.dumps({"file": str(file)}))
        return
    print(f"Wrote {file}. Set [events] and the publishers, then:")
    print(next_steps(file))


def _asked_for_files(wishes: Wishes) -> Wishes:
    from dataclasses import replace

    import typer

    from adsbpc.errors import SourceError
    from adsbpc.events.sources import resolve_source

    print("Where are your events? CSV or Parquet; nothing leaves this machine. Press Enter for a")
    print("commented file without a look at any data.")
    found: dict[str, str] = {}
    for source in ("impressions", "conversions"):
        while source not in found:
            answer = typer.prompt(f"Files of {source}", default="", show_default=False).strip()
            if not answer:
                return wishes
            try:
                resolve_source(str(Path(answer).expanduser()), Path(), f"--{source}")
            except SourceError as error:
                print(f"{error.where}: {error.found}. Try again.")
            else:
                found[source] = answer
    return replace(wishes, impressions=found["impressions"], conversions=found["conversions"])


def next_steps(file: Path) -> str:
    return (
        f"  adsbpc plan {file}                 what it will promise and how accurate it will be\n"
        f"  adsbpc release {file} --dry-run    what it reads, before anything is charged\n"
        f"  adsbpc release {file}              every morning"
    )


def write(texts: dict[Path, str], check: Callable[[], object]) -> None:
    """All of the files or none, and none over another. They stay if the check has no objection."""
    written: list[Path] = []
    try:
        for file, text in texts.items():
            with file.open("x", encoding="utf-8") as target:
                written.append(file)
                target.write(text)
        check()
    except (OSError, SpecError) as error:
        for each in written:
            each.unlink()
        if isinstance(error, FileExistsError):
            raise SpecError(f"{file}: is there already. Give another name, or edit it") from None
        if isinstance(error, OSError):
            raise SpecError(
                f"{file}: cannot be written ({error.strerror}). Give another name"
            ) from None
        raise
