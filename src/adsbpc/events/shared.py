"""One scan of a source for several campaigns: their advertisers' rows are kept, by advertiser, and
all others are counted.

A campaign reads its own advertiser's rows from there, raw as they stood, and goes on as it would
alone: what its rows are worth is decided by its own file and them. What it is told of other rows,
of other advertisers or of nobody, is how many there are for each reason, with its own rules and in
its own window. Must never: keep or change a row of one advertiser by what another's rows say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from adsbpc.engines import UNREADABLE, Engine, Relation, Schema, quote_name, quote_text
from adsbpc.errors import AdsbpcError
from adsbpc.events.moments import Window
from adsbpc.events.opening import (
    DeclaredSource,
    OpenedSources,
    OtherRows,
    Reach,
    declared_sources,
    opened_sources,
)
from adsbpc.events.schema import TIMESTAMP_SHAPE, Reason
from adsbpc.events.sources import Source
from adsbpc.events.validation import (
    SourceReading,
    conversions_arrive,
    conversions_checked,
    impressions_checked,
)
from adsbpc.model.spec import CampaignSpec

# Beside the columns of a source; a file can hardly have one of the name.
_OWNER = quote_name("adsbpc: owner")
_ADVERTISER = quote_name("adsbpc: advertiser")
# Before it is known which rows there are.
_NO_ROWS = Relation("")
# Sources are compared by what they were found to be.
_NOT_OF_JOURNEYS: Any = {
    **dict.fromkeys(("privacy", "workload", "measure", "lift", "spend", "expected"), True),
    **dict.fromkeys(("checks", "ledger", "engine"), True),
    "campaign": {"name", "scope", "publishers", "metric", "value_cap"},
    "events": {"impressions", "conversions"},
}


@dataclass(frozen=True)
class SlotNeed:
    """What a slot of a campaign reads: its sources, as its file declares them."""

    spec: CampaignSpec
    slot: int
    declared: Mapping[str, DeclaredSource]

    def scan_key(self, source: str) -> tuple[Any, ...]:
        """Needs of which this is equal can be read in one scan. The columns are all that decide
        whether a row can be read at all."""
        each = self.declared[source]
        where = each.source.files or each.source.outer or each.source.where
        file_format, base = each.source.file_format, each.source.base
        return source, where, file_format, base, each.columns, each.fields["advertiser_id"]

    @cached_property
    def _readings(self) -> dict[str, SourceReading]:
        opened = opened_sources(self.spec, self.declared, dict.fromkeys(self.declared, _NO_ROWS))
        return {"impressions": opened.impressions, "conversions": opened.conversions}

    def reading(self, source: str, rows: Relation = _NO_ROWS) -> SourceReading:
        return replace(self._readings[source], rows=rows)

    def window(self, source: str) -> Window:
        slots = range(self.slot, self.slot + 1)
        reach = Reach.of(self.spec, slots, self._readings["conversions"])
        return reach.window(source, self._readings[source])

    def journey_key(self) -> tuple[Any, ...]:
        """Needs of which this is equal have the same events and the same credits by publisher: all
        of the campaign file is in it, but for what counts nothing before measures are counted."""
        spec = self.spec
        told = spec.model_dump_json(exclude=_NOT_OF_JOURNEYS)
        asked = spec.counts_value, spec.looks_back, spec.counts_impressions
        # Impressions that are counted have a place in the list, and no publisher any more.
        listed = spec.campaign.publishers if spec.counts_impressions else ()
        scans = tuple(self.scan_key(source) for source in self.declared)
        return self.slot, told, asked, listed, scans


class SharedSources:
    """The sources of several slots, of several campaigns. What cannot be shared is left to each
    campaign, which opens its sources alone and says what is wrong with them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._schemas: dict[Source, list[Schema]] = {}
        self._scans: dict[tuple[Any, ...], SourceScan] = {}

    def need(self, spec: CampaignSpec, slot: int) -> SlotNeed:
        """What a slot will read; refused as its campaign alone would refuse it."""
        return SlotNeed(spec, slot, declared_sources(spec, self._described))

    def _described(self, source: Source) -> list[Schema]:
        if source not in self._schemas:
            self._schemas[source] = source.describe(self._engine)
        return self._schemas[source]

    def scan(self, needs: Sequence[SlotNeed]) -> None:
        """Read what two or more of these have in common."""
        for source in ("impressions", "conversions"):
            together: dict[tuple[Any, ...], list[SlotNeed]] = {}
            for need in needs:
                together.setdefault(need.scan_key(source), []).append(need)
            for key, found in together.items():
                if len(found) > 1:
                    try:
                        self._scans[key] = SourceScan.made(self._engine, source, found)
                    except AdsbpcError:
                        # Who cannot read it alone either says so.
                        continue

    def opened(self, need: SlotNeed) -> OpenedSources | None:
        """A campaign's sources, from scans where there are some; None if there is none."""
        scans = {source: self._scans.get(need.scan_key(source)) for source in need.declared}
        if not any(scans.values()):
            return None
        rows: dict[str, Relation] = {}
        others: dict[str, OtherRows] = {}
        for source, scan in scans.items():
            if scan is None:
                each = need.declared[source]
                rows[source] = each.source.open(self._engine, f"{source}_source", each.columns)
            else:
                rows[source], others[source] = scan.rows_of(need), scan.others_of(need)
        impressions, conversions = (need.reading(source, rows[source]) for source in rows)
        return OpenedSources(impressions, conversions, others)


class SourceScan:
    """Rows of some advertisers, in a table sorted by them."""

    def __init__(
        self, engine: Engine, source: str, view: Relation, kept: Relation, owners: Mapping[str, int]
    ) -> None:
        self._engine, self._source, self._view, self._kept = engine, source, view, kept
        self._owners = owners
        # Counts by owner and reason, by the text that asks for them: most campaigns ask the same.
        self._counts: dict[str, list[tuple[Any, ...]]] = {}

    @classmethod
    def made(cls, engine: Engine, source: str, needs: Sequence[SlotNeed]) -> SourceScan:
        declared = needs[0].declared[source]
        advertisers = sorted({need.spec.campaign.advertiser for need in needs})
        owners = {advertiser: number for number, advertiser in enumerate(advertisers)}
        view = declared.source.open(engine, f"{source}_shared", declared.columns)
        columns = ", ".join(quote_name(name) for name in (*declared.columns, UNREADABLE))
        kept = engine.table(
            f"{source}_by_advertiser",
            f"""
SELECT {_OWNER}, {columns}
FROM (SELECT * FROM {view} WHERE {_in_any_window(source, needs)}) AS scanned
JOIN {_listed(owners)}
  ON {_ADVERTISER} = {needs[0].reading(source).text("advertiser_id")}
ORDER BY {_OWNER}""",
        )
        return cls(engine, source, view, kept, owners)

    def rows_of(self, need: SlotNeed) -> Relation:
        """The rows of a campaign's advertiser, in at least its window."""
        columns = ", ".join(
            quote_name(name) for name in (*need.declared[self._source].columns, UNREADABLE)
        )
        owner = self._owners[need.spec.campaign.advertiser]
        return Relation.of(f"SELECT {columns} FROM {self._kept} WHERE {_OWNER} = {owner}")

    def others_of(self, need: SlotNeed) -> OtherRows:
        """All other rows of its window, which its own rules find bad."""
        check = {"impressions": impressions_checked, "conversions": conversions_checked}
        # Places in lists of dimensions are no reason for anything.
        reading = replace(need.reading(self._source, self._view), dimensions={})
        window = need.window(self._source)
        checked = check[self._source](reading, need.spec, window, of_others=True)
        text = f"""
SELECT {_OWNER}, reason, count(*), max({TIMESTAMP_SHAPE})
FROM (
{checked}
) AS checked
LEFT JOIN {_listed(self._owners)} ON {_ADVERTISER} = advertiser_id
GROUP BY {_OWNER}, reason"""
        if text not in self._counts:
            self._counts[text] = self._engine.rows("count rows of others", text)
        own = self._owners[need.spec.campaign.advertiser]
        counts, shapes = Counter[str](), []
        for owner, reason, count, shape in self._counts[text]:
            if owner != own:
                counts[reason] += count
                if reason == Reason.BAD_TIMESTAMP and shape is not None:
                    shapes.append(shape)
        return OtherRows(counts, max(shapes, default=None))


def _listed(owners: Mapping[str, int]) -> str:
    values = ", ".join(f"({quote_text(name)}, {number})" for name, number in owners.items())
    return f"(VALUES {values}) AS owners({_ADVERTISER}, {_OWNER})"


def _in_any_window(source: str, needs: Sequence[SlotNeed]) -> str:
    """Whether a row may lie in the window of one of these; those that are written alike have one
    window from the first moment to the last, which an engine can look up."""
    alike: dict[tuple[Any, ...], tuple[str, SourceReading, list[Window]]] = {}
    for need in needs:
        reading = need.reading(source)
        field = conversions_arrive(reading) if source == "conversions" else "timestamp"
        key = reading.fields[field], reading.form, reading.clock, reading.offsets
        alike.setdefault(key, (field, reading, []))[2].append(need.window(source))
    return " OR ".join(
        reading.may_lie_in(
            field, (min(first for first, _ in windows), max(last for _, last in windows))
        )
        for field, reading, windows in alike.values()
    )
