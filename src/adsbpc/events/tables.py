"""From a campaign's sources to the rows that attribution reads.

    conversions  conversion_key, user_id, conversion_number, conversion_id, slot, time_us, value
                 (placement.py says in which slot each is)
    impressions  user_id, time_us, is_click, publisher_number, touch_order
    arrivals     the same in the slots in which they arrive, though others may wait for a touch
    history      those of all slots so far, where somebody's past matters
    exposures    user_id, slot, time_us, is_click, publisher_index
    publishers   publisher_number, publisher_id, publisher_index
    quarantine   bad rows, with a reason

Dimensions add a column each, with the place in their list: those of conversions to the first table,
those of impressions to exposures and to publishers, where a publisher then has a number for each
place. Impressions are what conversions may have as touches; exposures are those of the slots
themselves, in the slot of their own time: they have no other moment of arrival.

They hold good rows of the campaign's advertiser only. Of a user with very many conversions in a
slot, the first `max_conversions` are there. `touch_order` sorts a user's impressions by time and,
at one instant, by publisher id: it decides every tie, on every engine, and
`touch_order % publisher_count` is the publisher's number. `publisher_index` is the position in the
public list; publishers outside it share the last one. Where slots are held back for late
impressions, these say when they arrived (`arrived_us`), and conversions by when a touch of theirs
has to (`settled_us`).

One slot reads what it needs: rows of other times are left where they are, and of impressions those
of people who convert in the slot are kept, and where impressions are counted those of the slot. Bad
rows are told with the slots that read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from adsbpc.engines import ColumnKind, Engine, Relation
from adsbpc.errors import SourceError, SpecError
from adsbpc.events.impressions import (
    exposures_sql,
    in_reach,
    publishers_sql,
    touch_order,
    touches_sql,
)
from adsbpc.events.moments import Window
from adsbpc.events.placement import conversions_sql
from adsbpc.events.schema import (
    CONVERSION_FIELDS,
    EARLIEST_US,
    IMPRESSION_FIELDS,
    Field,
    FieldKind,
    MappedField,
    Reason,
    map_fields,
)
from adsbpc.events.sources import Source, dialect_of, resolve_source
from adsbpc.events.validation import (
    SourceReading,
    conversions_checked,
    impressions_checked,
    repeated_marks,
    without_repeats,
)
from adsbpc.model.clock_format import ClockFormat
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.model.slots import ZoneOffset, zone_offsets
from adsbpc.model.spec import CampaignSpec

_IMPRESSION_COLUMNS = (
    "user_id, publisher_id, advertiser_id, kind, event_id, timestamp_text, time_us"
)
_CONVERSION_COLUMNS = (
    "user_id, advertiser_id, kind, value, event_id, timestamp_text, time_us, arrived_us"
)
_DIMENSION = Field("column", FieldKind.IDENTIFIER)

# Before every moment that a row may have, in any zone, and still one that nanoseconds can tell.
_EVER = EARLIEST_US - 2 * MICROSECONDS_PER_DAY


# The shape of a text that is no timestamp, without what it says.
_SHAPE = (
    "translate(substr(timestamp_text, 1, 40), '0123456789abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ', '9999999999aaaaaaaaaaaaaaaaaaaaaaaaaa"
    "AAAAAAAAAAAAAAAAAAAAAAAAAA')"
)


@dataclass(frozen=True)
class SourceCounts:
    """Usable rows of a source, bad ones by reason, and what a timestamp that does not parse looks
    like, with 9 for every digit and a for every letter. `late` ones are usable, and arrived when
    conversions right after them had waited in vain."""

    usable: int
    bad: Mapping[str, int]
    unreadable_timestamp: str | None
    late: int = 0

    @property
    def broken(self) -> int:
        """Bad rows that are nobody else's."""
        return sum(self.bad.values()) - self.bad.get(Reason.OTHER_ADVERTISER, 0)


@dataclass(frozen=True)
class EventTables:
    """The rows that stand in the engine's session, and what is known about them."""

    engine: Engine
    conversions: Relation
    impressions: Relation
    exposures: Relation
    publishers: Relation
    quarantine: Relation
    checked: Mapping[str, Relation]
    publisher_count: int
    text_users: bool
    arrivals: Relation
    conversion_dimensions: tuple[str, ...] = ()
    impression_dimensions: tuple[str, ...] = ()
    # How late a touch of a slot that is held back may arrive; None if arrivals do not matter.
    late_after_us: int | None = None
    # None where nobody's past matters.
    history: Relation | None = None

    @property
    def by_arrival(self) -> bool:
        return self.late_after_us is not None

    def quarantined(self) -> dict[tuple[str, str], int]:
        """Rows in quarantine by (source, reason): for the operator, never for a report."""
        found = self.engine.rows(
            "count quarantine",
            f"SELECT source, reason, count(*) FROM {self.quarantine}"
            " GROUP BY source, reason ORDER BY source, reason",
        )
        return {(source, reason): count for source, reason, count in found}

    def conversion_count(self) -> int:
        """Good conversions in the slots that were read: for the operator, never for a report."""
        ((count,),) = self.engine.rows(
            "count conversions", f"SELECT count(*) FROM {self.conversions}"
        )
        return int(count)

    def source_counts(self) -> dict[str, SourceCounts]:
        """What was found in each source: one more look at impressions. For the operator, never for
        a report."""
        return {name: self._counts_of(name, rows) for name, rows in self.checked.items()}

    def _counts_of(self, source: str, rows: Relation) -> SourceCounts:
        is_late = "FALSE"
        if self.late_after_us is not None and source == "impressions":
            is_late = f"arrived_us - time_us > {self.late_after_us}"
        found = self.engine.rows(
            "count rows",
            f"SELECT reason, count(*), max({_SHAPE}), count(CASE WHEN {is_late} THEN 1 END)"
            f" FROM {rows} GROUP BY reason ORDER BY reason",
        )
        return SourceCounts(
            sum(count for reason, count, *_ in found if reason is None),
            {reason: count for reason, count, *_ in found if reason is not None},
            next((shape for reason, _, shape, _ in found if reason == Reason.BAD_TIMESTAMP), None),
            sum(late for reason, *_, late in found if reason is None),
        )

    def write_quarantine(self, path: Path) -> None:
        self.engine.write_parquet("write quarantine", f"SELECT * FROM {self.quarantine}", path)


def read_events(
    spec: CampaignSpec, engine: Engine, slot: int | None = None, through: int | None = None
) -> EventTables:
    """Open, check and lay out a campaign's events: those of all slots, of one, or of all up to
    one."""
    impressions, conversions = _open_sources(spec, engine)
    last_slot = through or spec.campaign.slots
    if slot is not None and not 1 <= slot <= last_slot:
        raise SpecError(f"slot = {slot}: expected a number from 1 to {last_slot}")
    slots = range(1, last_slot + 1) if slot is None else range(slot, slot + 1)
    lateness = spec.events.max_lateness if "arrived_at" in conversions.fields else 0
    grid, lookback = spec.grid, spec.attribution.longest_lookback
    begins_at, ends_at = grid.boundaries[slots.start - 1], grid.boundaries[slots.stop - 1]
    # Conversions that have waited for a touch may be in the slot, too.
    starts_at = max(begins_at - spec.events.wait, grid.starts_at)
    # And where the past of its people matters, all conversions are read that they may have had.
    reads_from = grid.starts_at if spec.looks_back else starts_at
    by_arrival = spec.events.settle is not None
    first_moment = starts_at - lateness - lookback

    def window(reading: SourceReading, first: int) -> Window | None:
        if slot is None:
            return None
        # The first of several rows with one id may be older than what is asked for.
        return (_EVER if "event_id" in reading.fields else first), ends_at

    # The rows of one slot are few, and are kept; those of all slots stay where they are. So are
    # conversions with ids, which are gone through twice, and are few beside impressions.
    parsed = _rows(
        engine, "conversions_parsed",
        conversions_checked(conversions, spec, window(conversions, reads_from)),
        kept=slot is not None and "event_id" in conversions.fields,
    )  # fmt: skip
    # The first to arrive is kept, so that a repeat can never displace what was released.
    further = conversions.further_columns
    checked = _without_repeats(
        engine, conversions, parsed, _CONVERSION_COLUMNS + further, "",
        f"arrived_us, time_us, coalesce(kind, ''), coalesce(value, -1){further}",
    )  # fmt: skip
    read_conversions = _rows(
        engine, "conversions_read",
        _good_or_bad(checked, f"arrived_us >= {reads_from} AND arrived_us < {ends_at}"),
        kept=slot is not None,
    )  # fmt: skip

    parsed = Relation.of(impressions_checked(impressions, spec, window(impressions, first_moment)))
    checked = _without_repeats(
        engine, impressions, parsed,
        _IMPRESSION_COLUMNS + (", arrived_us" * by_arrival) + impressions.further_columns,
        # As with conversions: a repeat must not put off what was released.
        "publisher_id", "arrived_us, " * by_arrival + f"time_us, kind{impressions.further_columns}",
    )  # fmt: skip
    wanted = in_reach(spec, starts_at - lateness, ends_at)
    if by_arrival:
        wanted += f" AND arrived_us < {ends_at + spec.events.held_back}"
    reachable = Relation.of(_good_or_bad(checked, wanted))
    if slot is not None:
        kept = (
            f"user_id IN (SELECT user_id FROM {read_conversions}"
            f" WHERE reason IS NULL AND arrived_us >= {starts_at})"
        )
        if spec.counts_impressions:
            # What the slot itself has counts, whoever sees it.
            kept = f"({kept} OR time_us >= {begins_at})"
        wanted += f" AND {kept}"
    read_impressions = _rows(
        engine, "impressions_read", _good_or_bad(checked, wanted), kept=slot is not None
    )

    publishers = engine.table("publishers", publishers_sql(spec, read_impressions, impressions))
    ((publisher_count,),) = engine.rows("count publishers", f"SELECT count(*) FROM {publishers}")
    order = touch_order((first_moment, ends_at), publisher_count)
    placed = engine.table(
        "conversions",
        conversions_sql(spec, slots, read_conversions, read_impressions, further),
        row_key="conversion_key",
    )

    def arriving(some: range) -> Relation:
        return Relation.of(
            conversions_sql(spec, some, read_conversions, read_impressions, further, waits=False)
        )

    return EventTables(
        engine,
        placed,
        Relation.of(touches_sql(read_impressions, publishers, impressions, order, by_arrival)),
        Relation.of(
            exposures_sql(spec, read_impressions, publishers, impressions, (begins_at, ends_at))
        ),
        publishers,
        Relation.of(_quarantine(read_impressions, read_conversions)),
        {"impressions": reachable, "conversions": read_conversions},
        publisher_count,
        conversions.text_users,
        arriving(slots) if spec.events.wait else placed,
        tuple(conversions.dimensions),
        tuple(impressions.dimensions),
        spec.events.held_back + spec.events.wait if by_arrival else None,
        arriving(range(1, slots.stop)) if spec.looks_back else None,
    )


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


def _open_sources(spec: CampaignSpec, engine: Engine) -> tuple[SourceReading, SourceReading]:
    events = spec.events
    counts_value = spec.counts_value
    left_out = {"kind"} if events.impression_kind else set()
    left_out |= {"arrived_at"} if events.settle is None else set()
    impression_fields = tuple(f for f in IMPRESSION_FIELDS if f.name not in left_out)
    # What stands in a column that nothing is counted of does not matter.
    conversion_fields = tuple(f for f in CONVERSION_FIELDS if f.name != "value" or counts_value)
    opened: list[tuple[Relation, Source, dict[str, MappedField], dict[str, tuple[str, ...]]]] = []
    for name, location, fields, columns in (
        ("impressions", events.impressions, impression_fields, events.impression_columns),
        ("conversions", events.conversions, conversion_fields, events.conversion_columns),
    ):
        source = resolve_source(location, spec.directory, f"[events] {name}", dialect_of(spec))
        schemas = source.describe(engine)
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
        columns_read = list(dict.fromkeys(field.column for field in mapped.values()))
        opened.append((source.open(engine, f"{name}_source", columns_read), source, mapped, lists))
    # Users keep integer ids only if both sides have them; otherwise both are compared as text.
    text_users = any(mapped["user_id"].kind is ColumnKind.TEXT for _, _, mapped, _ in opened)
    readings = []
    for rows, source, mapped, lists in opened:
        reading = SourceReading(
            rows, mapped, text_users, events.csv if source.is_csv else None, events.timestamps,
            ClockFormat(events.timestamp_format) if events.timestamp_format else None,
            _offsets(spec), lists,
        )  # fmt: skip
        for field in ("timestamp", "arrived_at"):
            if field in mapped:
                _check_moments(spec, reading, field, source.where)
        readings.append(reading)
    return readings[0], readings[1]


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


def _without_repeats(
    engine: Engine, reading: SourceReading, parsed: Relation, columns: str, sender: str, order: str
) -> Relation:
    """The parsed rows, with repeated event ids among the reasons."""
    if "event_id" not in reading.fields:
        return parsed
    marks = engine.table("repeated", repeated_marks(parsed))
    ((repeated,),) = engine.rows("count repeated", f"SELECT count(*) FROM {marks}")
    if not repeated:
        return parsed
    return Relation.of(without_repeats(parsed, marks, columns, sender, order))


def _rows(engine: Engine, what: str, sql: str, kept: bool) -> Relation:
    return engine.table(what, sql) if kept else Relation.of(sql)


def _good_or_bad(checked: Relation, wanted: str) -> str:
    """Good rows that are wanted, and all bad ones."""
    return f"SELECT * FROM {checked} WHERE reason IS NOT NULL OR ({wanted})"


def _quarantine(impressions: Relation, conversions: Relation) -> str:
    moment = "coalesce(timestamp_text, moment_text(time_us)) AS timestamp"
    return f"""
SELECT 'impressions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  publisher_id, {moment}, kind, CAST(NULL AS DOUBLE) AS value, event_id
FROM {impressions} WHERE reason IS NOT NULL
UNION ALL
SELECT 'conversions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  CAST(NULL AS STRING) AS publisher_id, {moment}, kind, value, event_id
FROM {conversions} WHERE reason IS NOT NULL"""
