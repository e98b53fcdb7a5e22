"""`adsbpc release` of several campaign files, or of folders of them: each as it is alone, and what
fails of one stops no other."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer
from rich.table import Table

from adsbpc import telemetry
from adsbpc.campaign import Campaign, Overview, Released
from adsbpc.campaign.series import Series
from adsbpc.campaign.together import Asked, releasing_together
from adsbpc.cli.console import counted, named_run, notes, results, stoppable
from adsbpc.cli.overview import overview_object
from adsbpc.cli.release import (
    as_line,
    note_events,
    note_fit,
    progress_of_slots,
    show_rehearsal,
)
from adsbpc.errors import AdsbpcError, SpecError
from adsbpc.events import Reason
from adsbpc.report.numbers import budget_texts


@dataclass
class Told:
    """A campaign file, and what became of it; of one without an end, what became of a period."""

    file: Path
    campaign: Campaign | None = None
    series: Series | None = None
    done: list[Released] = field(default_factory=list)
    failure: Exception | None = None

    @property
    def name(self) -> str:
        """As its scope has it; a file that cannot be read has none but its own."""
        if self.campaign is None:
            return str(self.file)
        section = self.campaign.spec.campaign
        return f"{section.scope}/{section.name}"


def campaign_files(given: Sequence[Path]) -> list[Path]:
    """The files as they are given, and those that end in .toml in the folders; each once."""
    found: dict[Path, Path] = {}
    for path in given:
        files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not files:
            raise SpecError(
                "no campaign file, which ends in .toml, is in the folder",
                path=str(path),
                to_do=f"Write one with: adsbpc init {path / 'campaign.toml'}",
            )
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def run(given: Sequence[Path], through: str | None, dry: bool, as_json: bool) -> None:
    told = [_loaded(file) for file in campaign_files(given)]
    if dry:
        for each in told:
            _rehearse(each, as_json)
    else:
        _release(told, through, as_json)
    if not as_json and not dry:
        results().print(_table(told))
        print(_summary(told))
    failed = [each for each in told if each.failure is not None]
    for each in failed:
        place = "" if each.campaign is None else f" ({each.file})"
        typer.echo(f"adsbpc: {each.name}{place}: {_in_words(each.failure)}", err=True)
    if failed:
        others = len(_files(told)) - len(failed)
        typer.echo(
            f"{counted(len(failed), 'campaign')} failed, and {others:,} did not. Correct what is "
            "said above and run it again: nothing is drawn or charged twice.",
            err=True,
        )
        raise typer.Exit(1)


def _files(told: Sequence[Told]) -> set[Path]:
    return {each.file for each in told}


def _in_words(failure: Exception | None) -> str:
    """A mistake of the program itself is shown with its place."""
    if isinstance(failure, AdsbpcError | OSError):
        return str(failure)
    return "".join(traceback.format_exception(failure))


def _loaded(file: Path) -> Told:
    try:
        series = Series.load(file)
        # Of a campaign without an end, the period that is under way.
        return Told(file, Campaign.load(file) if series is None else series.current(), series)
    except (AdsbpcError, OSError) as error:
        return Told(file, failure=error)


def _release(told: list[Told], through: str | None, as_json: bool) -> None:
    """What is due of all of them; then the periods that follow those which are complete by now."""
    telemetry.configure()
    under_way = list(told)
    while under_way:
        _release_together(under_way, through, as_json)
        following = [_next_period(each, through) for each in under_way]
        under_way = [each for each in following if each is not None]
        told += under_way


def _next_period(told: Told, through: str | None) -> Told | None:
    if told.series is None or told.campaign is None or told.failure is not None:
        return None
    following = _loaded(told.file)
    if following.campaign is not None:
        if following.name == told.name:
            return None
        if through is not None and following.campaign.starts_after(through):
            return None
    return following


def _release_together(told: Sequence[Told], through: str | None, as_json: bool) -> None:
    by_campaign = {id(each.campaign): each for each in told if each.campaign is not None}
    asked = [Asked(each.campaign, through=through) for each in told if each.campaign is not None]
    with stoppable(), progress_of_slots(_slots(asked)) as advance:
        for outcome in releasing_together(asked, _note_start):
            each = by_campaign[id(outcome.campaign)]
            each.failure = outcome.failure
            if outcome.released is not None:
                each.done.append(outcome.released)
                advance(outcome.released)
                if as_json:
                    print(as_line(outcome.released), flush=True)
    for each in by_campaign.values():
        note_events(each.done, f"{each.name}: ", left_out=Reason.OTHER_ADVERTISER)
        for released in each.done:
            note_fit(released, f"{each.name}: ")


def _slots(asked: Sequence[Asked]) -> int:
    """How many are due, as far as that can be told."""
    slots = 0
    for each in asked:
        try:
            slots += len(each.campaign.due(each.slot, each.through)) if each.is_due else 0
        except AdsbpcError:
            continue
    return slots


def _note_start(campaign: Campaign, seen: Overview) -> None:
    """Before the first charge of a campaign: in a line, where there may be hundreds."""
    section = campaign.spec.campaign
    usable = ", ".join(f"{counts.usable:,} {source}" for source, counts in seen.sources.items())
    notes().print(
        f"{section.scope}/{section.name} starts: {usable} can be used; {seen.matched:,} of "
        f"{counted(seen.conversions, 'conversion')} have a touch. These counts have no noise.",
        style="dim",
        soft_wrap=True,
    )


def _rehearse(told: Told, as_json: bool) -> None:
    if told.campaign is None:
        return
    try:
        standing = told.campaign.status()
        if standing.closed or standing.released == standing.slots:
            notes().print(f"{told.name}: nothing is left to release.", style="dim")
            return
        seen = told.campaign.rehearse()
    except (AdsbpcError, OSError) as error:
        told.failure = error
        return
    if as_json:
        section = told.campaign.spec.campaign
        named = {"scope": section.scope, "campaign": section.name}
        print(json.dumps({**named, **overview_object(seen)}), flush=True)
    else:
        results().print(f"\n{told.name}", style="bold")
        show_rehearsal(seen)


def _table(told: Sequence[Told]) -> Table:
    table = Table("campaign", "released now", "before", "spent", "left")
    for column in table.columns[2:]:
        column.justify = "right"
    for each in told:
        new = [one.release.slot for one in each.done if not one.replayed]
        before = len(each.done) - len(new)
        budget = ("", "")
        if each.campaign is not None and each.failure is None:
            spent, _, left = budget_texts(each.campaign.status().campaign_budget)
            budget = (spent, left)
        said = named_run(new) if new else "nothing"
        if each.failure is not None:
            said = f"{said}, then failed" if new else "failed"
        style = None if each.failure is None else "red"
        table.add_row(each.name, said, f"{before:,}" if before else "", *budget, style=style)
    return table


def _summary(told: Sequence[Told]) -> str:
    new = sum(not one.replayed for each in told for one in each.done)
    before = sum(one.replayed for each in told for one in each.done)
    return (
        f"Released {counted(new, 'slot')} of {counted(len(_files(told)), 'campaign')}; "
        f"{counted(before, 'slot')} {'was' if before == 1 else 'were'} released before."
    )
