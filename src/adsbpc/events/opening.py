"""A campaign's two sources, opened: which columns hold which fields, how rows are written, and
which moments some slots need of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from adsbpc.engines import ColumnKind, Engine, Relation, Schema
from adsbpc.errors import SourceError
from adsbpc.events.moments import Window
from adsbpc.events.schema import (
    CONVERSION_FIELDS,
    EARLIEST_US,
    IMPRESSION_FIELDS,
    Field,
    FieldKind,
    MappedField,
    map_fields,
)
from adsbpc.events.sources import Source, dialect_of, resolve_source
from adsbpc.events.validation import SourceReading
from adsbpc.model.clock_format import ClockFormat
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.model.slots import ZoneOffset, zone_offsets
from adsbpc.model.spec import CampaignSpec

_DIMENSION = Field("column", FieldKind.IDENTIFIER)

# Before every moment that a row may have, in any zone, and still one that nanoseconds can tell.
_EVER = EARLIEST_US - 2 * MICROSECONDS_PER_DAY


@dataclass(frozen=True)
class DeclaredSource:
    """Where rows are, which column holds which field, and the lists of dimensions by field."""

    source: Source
    fields: dict[str, MappedField]
    lists: dict[str, tuple[str, ...]]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.column for each in self.fields.values()))


@dataclass(frozen=True)
class OtherRows:
    """Rows that cannot be the campaign's, whatever else they say: how many there are for each
    reason, and what a timestamp that does not parse looks like."""

    counts: Mapping[str, int]
    unreadable_timestamp: str | None


@dataclass(frozen=True)
class OpenedSources:
    """Rows as they stand in the sources. Those in `others`, by source, are not among them."""

    impressions: SourceReading
    conversions: SourceReading
    others: Mapping[str, OtherRows] = field(default_factory=dict)


def open_sources(spec: CampaignSpec, engine: Engine) -> OpenedSources:
    """For one campaign alone."""
    declared = declared_sources(spec, lambda source: source.describe(engine))
    rows = {
        name: each.source.open(engine, f"{name}_source", each.columns)
        for name, each in declared.items()
    }
    return opened_sources(spec, declared, rows)


def count_rows(spec: CampaignSpec, engine: Engine) -> dict[str, int]:
    """All rows of each source, whatever they are: for the operator, never for a report."""
    opened = open_sources(spec, engine)
    found = {}
    for name, reading in (
        ("impressions", opened.impressions),
        ("conversions", opened.conversions),
    ):
        ((rows,),) = engine.rows("count all rows", f"SELECT count(*) FROM {reading.rows}")
        found[name] = int(rows)
    return found


def declared_sources(
    spec: CampaignSpec, described: Callable[[Source], list[Schema]]
) -> dict[str, DeclaredSource]:
    """Impressions and conversions, found where the campaign file says, with every column."""
    events = spec.events
    counts_value = spec.counts_value
    left_out = {"kind"} if events.impression_kind else set()
    left_out |= {"arrived_at"} if events.settle is None else set()
    impression_fields = tuple(f for f in IMPRESSION_FIELDS if f.name not in left_out)
    # What stands in a column that nothing is counted of does not matter.
    conversion_fields = tuple(f for f in CONVERSION_FIELDS if f.name != "value" or counts_value)
    declared: dict[str, DeclaredSource] = {}
    for name, location, fields, columns in (
        ("impressions", events.impressions, impression_fields, events.impression_columns),
        ("conversions", events.conversions, conversion_fields, events.conversion_columns),
    ):
        source = resolve_source(location, spec.directory, f"[events] {name}", dialect_of(spec))
        schemas = described(source)
        asked_for = columns.model_fields_set | ({"value"} if counts_value else set())
        mapped = map_fields(
            fields, columns.model_dump(), frozenset(asked_for), schemas,
            f"events.{name.removesuffix('s')}_columns", all_text=source.is_csv,
        )  # fmt: skip
        lists: dict[str, tuple[str, ...]] = {}
        for dimension, section in spec.dimensions.items():
            if f"{section.of}s" == name:
                index = spec.index_columns[dimension]
                mapped[index] = map_fields(
                    (_DIMENSION,), {"column": section.column}, frozenset(), schemas,
                    f"dimensions.{dimension}", all_text=source.is_csv,
                )["column"]  # fmt: skip
                lists[index] = section.values
        declared[name] = DeclaredSource(source, mapped, lists)
    return declared


def opened_sources(
    spec: CampaignSpec,
    declared: Mapping[str, DeclaredSource],
    rows: Mapping[str, Relation],
) -> OpenedSources:
    """Rows, with how the campaign file says that they are written."""
    events = spec.events
    # Users keep integer ids only if both sides have them; otherwise both are compared as text.
    text_users = any(each.fields["user_id"].kind is ColumnKind.TEXT for each in declared.values())
    readings = {}
    for name, each in declared.items():
        reading = SourceReading(
            rows[name], each.fields, text_users, events.csv if each.source.is_csv else None,
            events.timestamps,
            ClockFormat(events.timestamp_format) if events.timestamp_format else None,
            _offsets(spec), each.lists,
        )  # fmt: skip
        for moment in ("timestamp", "arrived_at"):
            if moment in each.fields:
                _check_moments(spec, reading, moment, each.source.where)
        readings[name] = reading
    return OpenedSources(readings["impressions"], readings["conversions"])


@dataclass(frozen=True)
class Reach:
    """Which moments some slots need, in microseconds: the slots themselves begin and end; a
    conversion that counts in them arrives from `starts_at` on, and those from `reads_from` on are
    read; the first touch of one is not before `first_moment`."""

    begins_at: int
    ends_at: int
    starts_at: int
    reads_from: int
    lateness: int
    first_moment: int

    @classmethod
    def of(cls, spec: CampaignSpec, slots: range, conversions: SourceReading) -> Reach:
        lateness = spec.events.max_lateness if "arrived_at" in conversions.fields else 0
        grid, lookback = spec.grid, spec.attribution.longest_lookback
        begins_at, ends_at = grid.boundaries[slots.start - 1], grid.boundaries[slots.stop - 1]
        # Conversions that have waited for a touch may be in the slot, too.
        starts_at = max(begins_at - spec.events.wait, grid.starts_at)
        # And where the past of its people matters, all conversions are read that they may have had.
        reads_from = grid.starts_at if spec.looks_back else starts_at
        first_moment = starts_at - lateness - lookback
        return cls(begins_at, ends_at, starts_at, reads_from, lateness, first_moment)

    def window(self, source: str, reading: SourceReading) -> Window:
        """The moments of a source's rows that matter."""
        first = self.reads_from if source == "conversions" else self.first_moment
        # The first of several rows with one id may be older than what is asked for.
        return (_EVER if "event_id" in reading.fields else first), self.ends_at


def source_files(spec: CampaignSpec) -> set[Path]:
    """The local files that a campaign reads."""
    sources = [
        resolve_source(location, spec.directory, f"[events] {key}", dialect_of(spec))
        for key, location in (
            ("impressions", spec.events.impressions),
            ("conversions", spec.events.conversions),
        )
    ]
    return {Path(file).resolve() for source in sources for file in source.files}


def _offsets(spec: CampaignSpec) -> tuple[ZoneOffset, ...]:
    """Of the whole campaign, whichever slot is read."""
    events = spec.events
    lookback = events.max_lateness + events.wait + spec.attribution.longest_lookback
    zone = events.timezone or spec.campaign.timezone
    return zone_offsets(zone, spec.grid.starts_at - lookback, spec.grid.ends_at + events.held_back)


def _check_moments(spec: CampaignSpec, reading: SourceReading, field: str, where: str) -> None:
    """Refuse integers of which nobody said what they count. Nothing is read off the rows."""
    form, mapped = spec.events.timestamps, reading.fields[field]
    place = f"{where}, column {mapped.column!r}"
    declared = form.startswith("epoch") or reading.clock is not None
    if mapped.kind is ColumnKind.INTEGER and not declared:
        raise SourceError(
            place, "integers", "timestamps, or to be told what the integers count",
            'Set [events] timestamps = "epoch_seconds", "epoch_milliseconds" or'
            ' "epoch_microseconds", or timestamp_format = "%Y%m%d".',
        )  # fmt: skip
