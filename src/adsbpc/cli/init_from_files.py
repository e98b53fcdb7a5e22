"""The part of `adsbpc init` that looks at files: which column is what, a draft of the public list
of publishers, and how accurate figures will be.

What follows from events is shown to the operator. Publishers are written down as a draft, with
which nothing can be released, until somebody has said that the names are public.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import typer
from rich.table import Table

from adsbpc.campaign.plan import Plan, plan
from adsbpc.cli.campaign_text import CampaignText
from adsbpc.cli.console import counted, results, say
from adsbpc.cli.init import Wishes, next_steps, write
from adsbpc.cli.plan import print_accuracy
from adsbpc.engines import Engine, open_engine
from adsbpc.errors import AdsbpcError, SourceError, SpecError, did_you_mean, no_such_choice
from adsbpc.events.clock_proposals import Clock
from adsbpc.events.drafts import MOST_PUBLISHERS, Draft, Files, advertisers_of, draft_of
from adsbpc.events.proposals import CONVERSIONS, IMPRESSIONS, REQUIRED, columns_of
from adsbpc.events.samples import Sample, sample_of
from adsbpc.model.campaign_file import spec_of
from adsbpc.model.toml import read_toml

_SECTIONS = {IMPRESSIONS: "impression_columns", CONVERSIONS: "conversion_columns"}
_TARGET = "conversions/publisher@10%=10%"
_DRAFT = """\
# A draft, found in your impressions. A list that follows from data tells about the people in it:
# keep names that are public anyway, by your media plan or contracts, and add those that are
# missing. Then take ".draft" out of this file's name; until then nothing can be released.
"""
_MOST_SLOTS = 8_784
_WORDS = {
    "user_id": "the person",
    "publisher_id": "the publisher",
    "advertiser_id": "the advertiser",
    "timestamp": "the moment",
    "kind": "click or view",
    "value": "the value",
    "event_id": "the event's id",
}


@dataclass(frozen=True)
class Proposal:
    files: Files
    advertiser: str
    timezone: str
    clock: Clock
    draft: Draft


def propose(wishes: Wishes, asks: bool, as_json: bool) -> None:
    for source in (IMPRESSIONS, CONVERSIONS):
        if getattr(wishes, source) is None:
            raise SpecError(f"--{source}: is missing. Name the files of both sources, or of none")
    engine = open_engine("duckdb")
    try:
        found = _proposal(engine, wishes, asks)
        if not as_json:
            _show(found)
        if asks:
            found = _corrected(engine, wishes, found)
        elif not as_json:
            say("A column is wrong? Run it again with --column impressions.user_id=NAME.")
    finally:
        engine.close()
    listed = _confirmed(wishes, found.draft, asks)
    names = list(wishes.publishers or found.draft.publishers)
    file = wishes.file
    public = file.with_name(f"{file.stem}-publishers.txt")
    draft = file.with_name(f"{file.stem}-publishers.draft.txt")
    text = _text(wishes, found, list(wishes.publishers) or public.name)
    texts = {file: str(text)}
    if not wishes.publishers:
        lines = "".join(f"{name}\n" for name in names)
        texts[public if listed else draft] = lines if listed else _DRAFT + lines
    planned: list[Plan] = []
    write(texts, lambda: planned.append(_planned(file, names, found.draft)))
    if as_json:
        print(json.dumps(_object(found, file, None if listed or wishes.publishers else draft)))
        return
    _show_accuracy(planned[0], found.draft, wishes.rho)
    print(f"Wrote {', '.join(str(each) for each in texts)}.")
    if not listed and not wishes.publishers:
        say(
            f"Publishers are a draft, and become public with the first release. Read {draft}, take "
            "out what is not public anyway, and confirm it by its name:"
        )
        print(f"  mv {draft} {public}")
    print("Then:")
    print(next_steps(file))


def _proposal(engine: Engine, wishes: Wishes, asks: bool) -> Proposal:
    samples = {
        source: sample_of(engine, _found_from(wishes, source), Path(), f"--{source}")
        for source in (IMPRESSIONS, CONVERSIONS)
    }
    columns = {source: _columns(source, samples, wishes, asks) for source in samples}
    files = Files(
        samples[IMPRESSIONS],
        samples[CONVERSIONS],
        columns[IMPRESSIONS],
        columns[CONVERSIONS],
    )
    clock = files.clock()
    advertiser = wishes.advertiser or _advertiser(engine, files, asks)
    zone = _zone(wishes, asks)
    return Proposal(files, advertiser, zone, clock, draft_of(engine, files, advertiser, zone))


def _corrected(engine: Engine, wishes: Wishes, found: Proposal) -> Proposal:
    """As often as somebody says that a column is another."""
    while not typer.confirm("Is every column what it should be?", default=True):
        text = typer.prompt("Which is another? Such as impressions.user_id=NAME")
        more = replace(
            wishes,
            columns=(*wishes.columns, text),
            advertiser=wishes.advertiser or found.advertiser,
            timezone=found.timezone,
        )
        try:
            found = _proposal(engine, more, True)
        except AdsbpcError as error:
            say(str(error))
            continue
        wishes = more
        _show(found)
    return found


def _zone(wishes: Wishes, asks: bool) -> str:
    zone = wishes.timezone or _own_zone()
    while True:
        if asks and wishes.timezone is None:
            zone = typer.prompt("Time zone, in which days begin", default=zone)
        try:
            return ZoneInfo(zone).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            # Most people name the city.
            zones = sorted(available_timezones())
            by_city = {name.rpartition("/")[2].lower(): name for name in zones}
            city = by_city.get(zone.strip().replace(" ", "_").lower())
            known = [city] if city else zones
            to_do = did_you_mean(city or zone, known).lstrip() or "Say Europe/Berlin, for example"
            problem = SpecError("expected an IANA time zone", "--timezone", zone, to_do)
            if not asks or wishes.timezone is not None:
                raise problem from None
            say(str(problem))
            zone = _own_zone()


def _found_from(wishes: Wishes, source: str) -> str:
    return str(Path(getattr(wishes, source)).expanduser().absolute())


def _columns(
    source: str, samples: Mapping[str, Sample], wishes: Wishes, asks: bool
) -> dict[str, str]:
    sample = samples[source]
    other = samples[CONVERSIONS if source == IMPRESSIONS else IMPRESSIONS]
    found = columns_of(source, sample, other, _given(source, sample, wishes.columns))
    for field in REQUIRED[source]:
        if field in found or field == "kind":
            continue
        left = [column for column in sample.kinds if column not in found.values()]
        if not asks:
            raise SourceError(
                sample.where,
                f"no column that looks like {_WORDS[field]} among {', '.join(sample.kinds)}",
                f"one for {field}",
                f"Say --column {source}.{field}=NAME, or add the column.",
            )
        print(f"{sample.where}: which column is {_WORDS[field]}? There are {', '.join(left)}.")
        answer = ""
        while answer not in left:
            answer = typer.prompt(f"Column of {field}")
        found[field] = answer
    return found


def _given(source: str, sample: Sample, texts: tuple[str, ...]) -> dict[str, str]:
    """What --column says of a source."""
    given = {}
    for text in texts:
        place, _, column = text.partition("=")
        table, _, field = place.partition(".")
        if table not in _SECTIONS or field not in _WORDS or not column:
            raise SpecError(
                f"--column {text}: expected a source, a field and a column, such as "
                "impressions.user_id=NAME"
            )
        if table == source:
            if column not in sample.kinds:
                raise no_such_choice(f"--column {text}", column, list(sample.kinds))
            given[field] = column
    return given


def _advertiser(engine: Engine, files: Files, asks: bool) -> str:
    found = advertisers_of(engine, files)
    if len(found) == 1:
        return found[0]
    column = files.conversion_columns["advertiser_id"]
    shown = ", ".join(found[:10])
    if not asks:
        raise SpecError(
            f"--advertiser: is missing, and column {column!r} of conversions has several: {shown}. "
            "Name one"
        )
    print(f"Column {column!r} of conversions has several advertisers: {shown}.")
    return str(typer.prompt("Advertiser of this campaign", default=found[0]))


def _own_zone() -> str:
    """The zone of this machine by its name, if it has one."""
    local = Path("/etc/localtime")
    _, _, linked = str(local.resolve()).partition("zoneinfo/")
    for name in (os.environ.get("TZ", ""), linked):
        try:
            if name:
                return ZoneInfo(name).key.removeprefix("Etc/")
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return "UTC"


def _confirmed(wishes: Wishes, draft: Draft, asks: bool) -> bool:
    if wishes.publishers or not asks:
        return wishes.publishers_are_public
    say(f"Publishers that were found: {', '.join(draft.publishers)}")
    return wishes.publishers_are_public or typer.confirm(
        "They become public with the first release. Are all of these names public anyway?",
        default=False,
    )


def _text(wishes: Wishes, found: Proposal, publishers: list[str] | str) -> CampaignText:
    files, draft = found.files, found.draft
    first = wishes.first_day or draft.first
    last = max(draft.last, first)
    reading = {} if found.clock.key is None else {found.clock.key: str(found.clock.value)}
    if "kind" not in files.impression_columns:
        reading["impression_kind"] = "view"
    return CampaignText(
        wishes.name or wishes.file.stem,
        found.advertiser,
        first,
        wishes.slots or min(_MOST_SLOTS, (last - first).days + 1),
        publishers,
        found.timezone,
        _written_path(wishes, IMPRESSIONS),
        _written_path(wishes, CONVERSIONS),
        wishes.rho,
        reading,
        {
            "impression_columns": _differing(files.impression_columns),
            "conversion_columns": _differing(files.conversion_columns),
            "csv": _csv(files),
        },
        proposed=True,
    )


def _written_path(wishes: Wishes, source: str) -> str:
    """As the campaign file has it: from its own folder, if the files are below that."""
    path, folder = Path(_found_from(wishes, source)), wishes.file.absolute().parent
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)


def _differing(columns: Mapping[str, str]) -> dict[str, str]:
    return {field: column for field, column in columns.items() if field != column}


def _csv(files: Files) -> dict[str, str]:
    dialects = {each.dialect for each in (files.impressions, files.conversions) if each.dialect}
    if len(dialects) > 1:
        raise SourceError(
            f"{files.impressions.where} and {files.conversions.where}",
            "different delimiters",
            "the same in both",
            "Write the files alike.",
        )
    usual = {} if not dialects else {"delimiter": next(iter(dialects)).delimiter}
    found = {key: sign for key, sign in usual.items() if sign != ","}
    return {**found, "decimal": ","} if files.has_decimal_commas() else found


def _planned(file: Path, names: list[str], draft: Draft) -> Plan:
    content = read_toml(file)
    content["campaign"]["publishers"] = names
    spec = spec_of(content, file.absolute().parent, str(file))
    expected = {"conversions": float(_rounded(draft.conversions))} if draft.conversions else {}
    return plan(spec, expected=expected, targets=[_TARGET] if expected else [])


def _rounded(number: int) -> int:
    """To two digits: nobody expects a month to the last conversion."""
    digits = max(0, len(str(number)) - 2)
    return max(1, round(number, -digits))


def _show(found: Proposal) -> None:
    files, out = found.files, results()
    table = Table("source", "field", "column", title="Which column is what")
    for source, columns in (
        (IMPRESSIONS, files.impression_columns),
        (CONVERSIONS, files.conversion_columns),
    ):
        for field, column in columns.items():
            table.add_row(source, f"{field}, {_WORDS[field]}", column)
        table.add_section()
    out.print(table)
    if "kind" not in files.impression_columns:
        say(
            "Impressions have no column with the words click and view: all of them are taken for "
            'views. If they are clicks, set [events] impression_kind = "click".'
        )
    if found.clock.value is not None:
        say(f"Timestamps are read with {found.clock.key} = {found.clock.value!r}.")
    if found.clock.other is not None:
        say(
            f"WARNING: {found.clock.other!r} fits as well, and means other days. Check "
            "timestamp_format in the file."
        )
    first, last = found.draft.first, found.draft.last
    say(
        f"Advertiser {found.advertiser}, conversions from {first} to {last} in the time zone "
        f"{found.timezone}, {counted(len(found.draft.publishers), 'publisher')}."
    )
    if found.draft.further_publishers:
        say(
            f"The draft has the {MOST_PUBLISHERS} publishers with most impressions, and "
            f'{found.draft.further_publishers} or more are left out: they would be "other".'
        )
    if last - first > timedelta(days=_MOST_SLOTS - 1):
        say(f"A campaign has at most {_MOST_SLOTS:,} slots: give --start and --slots.")


def _show_accuracy(planned: Plan, draft: Draft, rho: float) -> None:
    if not draft.shown:
        say("No conversion is of a person who was shown something: check the columns of users.")
        return
    say(
        f"{draft.conversions:,} of {counted(draft.shown, 'conversion')} of people who were shown "
        "something have a touch: a view at most 1 day before, or a click at most 30 days before. "
        "[attribution] has other lookbacks."
    )
    if not draft.conversions:
        return
    print_accuracy(planned)
    if planned.proposal is not None:
        needed = planned.proposal.rho
        say(
            "For a publisher with a tenth of all conversions to be within 10%, 95 times of 100, rho"
            f" would be {needed:g}; this file has rho = {rho:g}."
        )
        if needed > rho:
            say(
                "Before you raise rho, think of fewer publishers, longer slots or a longer "
                "campaign: a larger rho promises people less."
            )
    say("These figures follow from your files: keep them to yourself.")


def _object(found: Proposal, file: Path, draft: Path | None) -> dict[str, Any]:
    return {
        "file": str(file),
        "draft": None if draft is None else str(draft),
        "columns": {
            IMPRESSIONS: dict(found.files.impression_columns),
            CONVERSIONS: dict(found.files.conversion_columns),
        },
        "advertiser": found.advertiser,
        "timezone": found.timezone,
        "publishers": list(found.draft.publishers),
    }
