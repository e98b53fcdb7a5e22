"""What a release of a slot reads, without noise, and whether a campaign may start from it.

All of it is for the operator, who holds the events; none of it belongs in a report. Must never:
stop a campaign that has started, because then stopping would tell others what was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adsbpc.campaign.data_path import Attributed, attribute
from adsbpc.campaign.due_slots import slots_over
from adsbpc.errors import ReleaseError
from adsbpc.events import Reason, SourceCounts, count_rows
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Fit
from adsbpc.model.grid import OTHER_PUBLISHER

# With fewer conversions, none with a touch may be chance.
_JUDGED_FROM = 20


@dataclass(frozen=True)
class Overview:
    """`matched` conversions have a touch; `credited` is how many each publisher gets of them.
    `problems` say why a campaign may not start with it."""

    slot: int
    conversions: int
    matched: int
    credited: Mapping[str, float]
    sources: Mapping[str, SourceCounts]
    problems: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Those that were found in the slots, whether they can be used or not."""
        return sum(each.usable + sum(each.bad.values()) for each in self.sources.values())

    @property
    def quarantined(self) -> dict[tuple[str, str], int]:
        return {
            (source, reason): count
            for source, counts in self.sources.items()
            for reason, count in counts.bad.items()
        }


def overview_of(attributed: Attributed, slot: int) -> Overview:
    events, names = attributed.events, attributed.spec.reported_publishers
    ((matched,),) = events.engine.rows(
        "count matched conversions",
        "SELECT count(*) FROM (SELECT DISTINCT user_id, slot, conversion_number"
        f" FROM {attributed.credits}) AS matched",
    )
    credited = dict.fromkeys(names, 0.0)
    for index, units in events.engine.rows(
        "credits by publisher",
        f"SELECT publisher_index, sum(credit_units) FROM {attributed.credits}"
        " GROUP BY publisher_index",
    ):
        credited[names[index]] = int(units) / UNITS_PER_CONVERSION
    return Overview(slot, events.conversion_count(), int(matched), credited, events.source_counts())


def start_of(attributed: Attributed, fit: Fit | None) -> Overview:
    """What the first slot reads, with the problems that speak against starting. Where it has too
    few conversions to judge, all slots that are over by now are looked at for them."""
    spec, engine = attributed.spec, attributed.events.engine
    seen = overview_of(attributed, 1)
    last, judged = slots_over(spec), seen
    if seen.conversions < _JUDGED_FROM and last > 1:
        with engine.scratch():
            all_over = attribute(spec, engine, range(1, last + 1), fit, kept=True)
            judged = overview_of(all_over, last)
    problems = _problems(spec, judged)
    if not problems and judged.rows < spec.checks.min_rows:
        problems = _rows_elsewhere(spec, judged, count_rows(spec, engine))
    return replace(seen, problems=tuple(problems))


def check_start(seen: Overview) -> None:
    """Refuse to begin with events that are read wrongly, before anything is charged."""
    if seen.problems:
        raise ReleaseError(
            f"slot {seen.slot} was not released, and nothing was charged: the campaign would start "
            f"with events that look wrong\n{listed(seen.problems)}\n"
            "Look at them with adsbpc release --dry-run"
        )


def listed(problems: Sequence[str]) -> str:
    return "\n".join(f"  {problem}" for problem in problems)


def _problems(spec: CampaignSpec, judged: Overview) -> list[str]:
    problems = [
        problem
        for source, counts in judged.sources.items()
        if (problem := _problem_of(spec, source, counts))
    ]
    where = "" if judged.slot == 1 else f" of slots 1 to {judged.slot}"
    floor = spec.checks.min_match_rate
    if judged.conversions >= _JUDGED_FROM and judged.matched < floor * judged.conversions:
        problems.append(
            f"{judged.matched:,} of {judged.conversions:,} conversions{where} have a touch, and "
            f"[checks] min_match_rate = {floor:g} expects {floor:.1%} or more. Compare how both "
            "files write user_id (5 is not 00005) and [events] timezone; if few conversions come "
            "from ads, lower min_match_rate"
        )
    most = spec.checks.max_other_rate
    others, credited = judged.credited[OTHER_PUBLISHER], sum(judged.credited.values())
    if judged.matched >= _JUDGED_FROM and others > most * credited:
        problems.append(
            f"{others / credited:.1%} of the credit for {judged.matched:,} conversions{where} goes "
            f"to publishers that [campaign] publishers does not list, and [checks] max_other_rate "
            f"= {most:g} allows {most:.1%}. Compare how both write them, capitals and spaces too; "
            "if those listed have nothing yet, set max_other_rate = 1"
        )
    return problems


def _rows_elsewhere(spec: CampaignSpec, judged: Overview, there: Mapping[str, int]) -> list[str]:
    """None where sources have no others: nothing has happened yet."""
    if sum(there.values()) <= judged.rows:
        return []
    begins, ends = spec.grid.bounds_text(1)[0], spec.grid.bounds_text(judged.slot)[1]
    slots = "slot 1" if judged.slot == 1 else f"slots 1 to {judged.slot}"
    rows, floor = (
        " and ".join(f"{n:,} {source}" for source, n in there.items()),
        spec.checks.min_rows,
    )
    return [
        f"{judged.rows:,} of {rows} belong to {slots}, from {begins} to {ends}, and [checks] "
        f"min_rows = {floor} expects {floor:,} or more. Compare the years and hours in the files "
        "with [campaign] start and timezone, and with [events] timezone and timestamps; if nothing "
        "has happened yet, set min_rows = 0"
    ]


def _problem_of(spec: CampaignSpec, source: str, counts: SourceCounts) -> str | None:
    most = spec.checks.max_quarantine_rate
    rows = counts.usable + counts.broken
    others = counts.bad.get(Reason.OTHER_ADVERTISER, 0)
    if not rows and others and most < 1:
        return (
            f"{source}: all {others:,} rows are of other advertisers than [campaign] advertiser = "
            f"{spec.campaign.advertiser!r}. Correct it; if there is nothing of this one yet, set "
            "[checks] max_quarantine_rate = 1"
        )
    if counts.broken <= most * rows:
        return None
    reason, count = max(
        ((r, c) for r, c in counts.bad.items() if r != Reason.OTHER_ADVERTISER),
        key=lambda each: each[1],
    )
    told = (
        f"{source}: {counts.broken:,} of {rows:,} rows cannot be used, and [checks] "
        f"max_quarantine_rate = {most:g} allows {most:.0%}. {count:,} of them: {reason}"
    )
    if reason == Reason.BAD_TIMESTAMP:
        shape = counts.unreadable_timestamp
        told += f"{f', which looks like {shape}' if shape else ''}; {_expected(spec)}"
    return told


def _expected(spec: CampaignSpec) -> str:
    if spec.events.timestamp_format is not None:
        return f"[events] timestamp_format expects {spec.events.timestamp_format}"
    form = spec.events.timestamps
    expected = (
        "whole numbers" if form.startswith("epoch") else "a form such as 2026-03-01T12:00:00Z"
    )
    return (
        f"[events] timestamps = {form!r} expects {expected}. Declare how they are written, for "
        'example timestamp_format = "%d.%m.%Y %H:%M" or timestamps = "epoch_seconds"'
    )
