"""`adsbpc release`: what is due, in order, exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.progress import TextColumn, TimeRemainingColumn

from adsbpc import telemetry
from adsbpc.campaign import Campaign, Overview, Released
from adsbpc.campaign.overview import listed
from adsbpc.campaign.release import rows_of
from adsbpc.campaign.series import Series
from adsbpc.cli.console import counted, named_run, notes, progress, results, stoppable
from adsbpc.cli.overview import overview_object, show_overview, show_start
from adsbpc.cli.quarantine import note_quarantine
from adsbpc.cli.status import budget_line
from adsbpc.errors import SpecError
from adsbpc.report.model_words import LARGE_FIT_NOISE, noise_of_fit


def run(
    given: Sequence[Path], slot: int | None, through: str | None, dry: bool, as_json: bool
) -> None:
    """One campaign by itself; several, or those of folders, together."""
    if len(given) > 1 or given[0].is_dir():
        from adsbpc.cli import release_many

        if slot is not None:
            raise SpecError(
                f"--slot {slot}: belongs to one campaign, and several are given. Give one file, or "
                "--through DATE"
            )
        release_many.run(given, through, dry, as_json)
        return
    series = Series.load(given[0])
    if series is not None:
        _run_series(series, slot, through, dry, as_json)
        return
    campaign = Campaign.load(given[0])
    if dry:
        _rehearse(campaign, slot, as_json)
        return
    wanted = campaign.due(slot, through)
    done = _shown(campaign.releasing(slot, through, show_start), len(wanted), as_json)
    if as_json:
        return
    if not done:
        ends_at = campaign.spec.grid.bounds_text(1)[1]
        print(f"Nothing is due: slot 1 lasts until {ends_at}.")
        return
    report = campaign.report()
    results().print(report.table())
    print(_summary(done))
    if len(done) < len(wanted):
        print("The campaign was closed: nothing more is released of it.")
    print(budget_line(report.campaign_budget))


def _run_series(
    series: Series, slot: int | None, through: str | None, dry: bool, as_json: bool
) -> None:
    """A campaign without an end: what is due of every period."""
    if slot is not None:
        first = series.first.spec.campaign.name.rpartition("@")[2]
        raise SpecError(
            f"--slot {slot}: slots are counted within a {series.renewal}. Say which, for example "
            f"{series.file}@{first}"
        )
    if dry:
        _rehearse(series.current(), None, as_json)
        return
    slots = (released for _, released in series.releasing(through, show_start))
    done = _shown(slots, None, as_json)
    if as_json:
        return
    if not done:
        standing = series.standing()
        if any(found.closed for _, found in standing):
            print("The campaign was closed: nothing more is released of it.")
        else:
            print("Nothing is due.")
        return
    report = series.report()
    results().print(report.table())
    new = sum(not one.replayed for one in done)
    print(
        f"Released {counted(new, 'slot')}; {counted(len(done) - new, 'slot')} had been released "
        "before."
    )
    print(f"{done[-1].release.campaign}: {budget_line(report.campaign_budget)}")


def _shown(slots: Iterator[Released], expected: int | None, as_json: bool) -> list[Released]:
    """All of them, each shown as it is committed; then what the operator should know of them."""
    telemetry.configure()
    done = []
    with stoppable(), progress_of_slots(expected) as advance:
        for released in slots:
            done.append(released)
            advance(released)
            if as_json:
                print(as_line(released), flush=True)
    note_events(done)
    for one in done:
        note_fit(one)
    return done


@contextmanager
def progress_of_slots(slots: int | None) -> Iterator[Callable[[Released | None], None]]:
    """A bar that moves with every slot and counts the rows that were read, where that is known."""
    read = TextColumn("{task.fields[rows]:,} conversions read")
    with progress("Releasing slots", slots, read, TimeRemainingColumn(), rows=0) as step:
        rows = 0

        def advance(released: Released | None) -> None:
            nonlocal rows
            rows += (released.conversions if released else None) or 0
            step(rows=rows)

        yield advance


def as_line(released: Released) -> str:
    """What machines read of a release: its estimates one by one, and everything that was stored."""
    body = json.loads(released.text)
    return json.dumps(
        {
            "slot": body.pop("slot"),
            "replayed": released.replayed,
            "charges": [asdict(charge) for charge in released.release.charges],
            "estimates": [
                {name: row[name] for name in row if name not in ("slot", "replayed")}
                for row in rows_of(released)
            ],
            **{name: body[name] for name in body if name not in ("charges", "estimates")},
        }
    )


def note_events(done: list[Released], whose: str = "", left_out: str | None = None) -> None:
    """What was read, for the operator: never part of what is published. `whose` it is opens the
    lines, where there are several; a reason may be `left_out`."""
    read = [one for one in done if one.conversions is not None]
    if not read:
        return
    # A row without a moment is reported with every slot: how many there are in all, nobody knows.
    most: dict[tuple[str, str], int] = {}
    for one in read:
        for kind, count in one.quarantined.items():
            if kind[1] != left_out:
                most[kind] = max(count, most.get(kind, 0))
    note_quarantine(most, "in one slot" if len(read) > 1 else "", whose)
    late = max(one.late for one in read)
    if late:
        where = " in one slot" if len(read) > 1 else ""
        notes().print(
            f"{whose}{counted(late, 'impression')}{where} of people who convert arrived after "
            "[events] settle and wait: conversions may have been released without them. Deliver "
            "them sooner, or let the next campaign wait longer",
            style="yellow",
        )
    if not any(one.conversions for one in done):
        notes().print(
            f"{whose}WARNING: no conversion was read. The slots are released and charged all the "
            "same, because stopping would reveal it. Check [campaign] advertiser and [events]; "
            "next time try --dry-run first",
            style="bold yellow",
        )


def note_fit(released: Released, whose: str = "") -> None:
    """How noisy a fit is that was just made."""
    fit = None if released.replayed else released.release.fit
    if fit is None or fit.relative_noise is None:
        return
    style = "bold yellow" if fit.relative_noise > LARGE_FIT_NOISE else None
    notes().print(f"{whose}{noise_of_fit(fit.relative_noise)}", style=style)


def _rehearse(campaign: Campaign, slot: int | None, as_json: bool) -> None:
    found = campaign.rehearse(slot)
    if as_json:
        print(json.dumps(overview_object(found)))
        return
    show_rehearsal(found)


def show_rehearsal(found: Overview) -> None:
    """What a dry run has found."""
    show_overview(found, results())
    if found.problems:
        results().print(
            f"\nA release would be refused:\n{listed(found.problems)}", style="bold yellow"
        )
    print("Nothing was drawn or charged. These counts have no noise: keep them to yourself.")


def _summary(done: list[Released]) -> str:
    new = [released.release.slot for released in done if not released.replayed]
    before = len(done) - len(new)
    replayed = f"{counted(before, 'slot')} {'was' if before == 1 else 'were'} released before"
    if not new:
        return f"{replayed}: nothing was drawn or charged again."
    return f"Released {named_run(new)}" + (f"; {replayed}." if before else ".")
