"""`adsbpc release`: what is due, in order, exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from adsbpc.campaign import Campaign, Released
from adsbpc.cli.status import budget_line


def run(file: Path, slot: int | None, through: str | None, as_json: bool) -> None:
    campaign = Campaign.load(file)
    notes = Console(stderr=True)
    wanted = campaign.due(slot, through)
    done = []
    with progress(notes, len(wanted)) as advance:
        for released in campaign.releasing(slot, through):
            done.append(released)
            advance(released)
            if as_json:
                print(as_line(released), flush=True)
    note_quarantine(notes, done)
    if as_json:
        return
    out = Console()
    if not done:
        ends_at = campaign.spec.grid.bounds_text(1)[1]
        out.print(f"Nothing is due: slot 1 lasts until {ends_at}.", highlight=False)
        return
    out.print(campaign.report().table())
    out.print(_summary(done), highlight=False)
    out.print(budget_line(campaign.status()), highlight=False)


@contextmanager
def progress(notes: Console, slots: int) -> Iterator[ProgressOfSlots]:
    columns = (
        TextColumn("Releasing slot"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} conversions read"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as shown:
        yield ProgressOfSlots(shown, slots)


class ProgressOfSlots:
    """A bar that moves with every slot and counts the rows that were read."""

    def __init__(self, shown: Progress, slots: int) -> None:
        self._shown = shown
        self._rows = 0
        self._task = shown.add_task("slots", total=slots, rows=0)

    def __call__(self, released: Released) -> None:
        self._rows += released.conversions or 0
        self._shown.update(self._task, advance=1, rows=self._rows)


def as_line(released: Released) -> str:
    body = json.loads(released.text)
    return json.dumps({"slot": body.pop("slot"), "replayed": released.replayed, **body})


def note_quarantine(notes: Console, done: list[Released]) -> None:
    """Bad rows at the newest slot, for the operator: never part of what is published."""
    newest = next((one for one in reversed(done) if not one.replayed), None)
    for (source, reason), count in newest.quarantined.items() if newest else ():
        notes.print(f"quarantined {count:,} {source}: {reason}", style="yellow", highlight=False)


def _summary(done: list[Released]) -> str:
    new = [released.release.slot for released in done if not released.replayed]
    if not new:
        return f"All {len(done)} were released before: nothing was drawn or charged again."
    told = f"slot {new[0]}" if len(new) == 1 else f"slots {new[0]} to {new[-1]}"
    before = len(done) - len(new)
    return f"Released {told}" + (f"; {before} were released before." if before else ".")
