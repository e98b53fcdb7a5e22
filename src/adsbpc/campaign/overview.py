"""What a release of a slot reads, without noise, and whether a campaign may start from it.

All of it is for the operator, who holds the events; none of it belongs in a report. Must never:
stop a campaign that has started, because then stopping would tell others what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adsbpc.campaign.data_path import Attributed
from adsbpc.errors import ReleaseError
from adsbpc.events import Reason, SourceCounts
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec

# With fewer conversions, none with a touch may be chance.
_JUDGED_FROM = 20


@dataclass(frozen=True)
class Overview:
    """`matched` conversions have a touch; `credited` is how many each publisher gets of them."""

    slot: int
    conversions: int
    matched: int
    credited: Mapping[str, float]
    sources: Mapping[str, SourceCounts]

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


def check_start(spec: CampaignSpec, seen: Overview) -> None:
    """Refuse to begin with events that are read wrongly, before anything is charged."""
    problem = start_problem(spec, seen)
    if problem is not None:
        raise ReleaseError(
            f"slot {seen.slot} was not released, and nothing was charged: the campaign would start "
            f"with events that look wrong\n{problem}\n"
            "Look at them with adsbpc release --dry-run"
        )


def start_problem(spec: CampaignSpec, seen: Overview) -> str | None:
    """Why a campaign may not start with these events, a line for each reason."""
    problems = [
        problem
        for source, counts in seen.sources.items()
        if (problem := _problem_of(spec, source, counts))
    ]
    floor = spec.checks.min_match_rate
    if seen.conversions >= _JUDGED_FROM and seen.matched < floor * seen.conversions:
        problems.append(
            f"{seen.matched:,} of {seen.conversions:,} conversions have a touch, and [checks] "
            f"min_match_rate = {floor:g} expects {floor:.1%} or more. Compare how both files write "
            "user_id (5 is not 00005) and [events] timezone; if few conversions come from ads, "
            "lower min_match_rate"
        )
    return "\n".join(f"  {problem}" for problem in problems) or None


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
