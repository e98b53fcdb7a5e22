"""SQL for time: every kind of timestamp column to UTC microseconds, and instants to slots."""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.engines import ColumnKind
from adsbpc.events.schema import EARLIEST_US, LATEST_US
from adsbpc.model.clock_format import ClockFormat
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.model.slots import SlotGrid, ZoneOffset

# Groups: 1 day, 2 clock to the second, 3 fraction to the microsecond, 4 zone. A day alone is its
# first moment. No backslashes, so that the text means the same in every SQL dialect.
ISO_8601 = (
    "^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    "(?:([.][0-9]{1,6})[0-9]*)? ?(Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?)?$"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WHOLE_NUMBER = "^[+-]?[0-9]{1,18}$"

_EPOCH_FACTORS = {
    "epoch_seconds": MICROSECONDS_PER_SECOND,
    "epoch_milliseconds": 1_000,
    "epoch_microseconds": 1,
}


# Zones, as texts say them.
NO_ZONE, UTC = "''", "'Z'"

# From one moment, up to and without another, in microseconds.
Window = tuple[int, int]


@dataclass(frozen=True)
class Moment:
    """SQL expressions for one timestamp column.

    `wall` is what the clock showed, in microseconds, NULL where the value does not parse. `zone`
    is the text of its zone, empty where there is none: of texts each row says it for itself, of
    other columns the type does.
    """

    wall: str
    zone: str


def is_exactly(column: str, pattern: str) -> str:
    """Whether a text is one match of a pattern, whole. Engines differ on what `$` lets pass."""
    return f"regexp_extract({column}, '{pattern}', 0) = {column}"


def moment(column: str, kind: ColumnKind, form: str, clock: ClockFormat | None) -> Moment:
    """How to read one column; `form` is the campaign's `[events] timestamps`, `clock` its
    `timestamp_format`, which texts and integers are read by."""
    if kind is ColumnKind.ZONED_TIMESTAMP:
        return Moment(f"micros(TRY_CAST({column} AS TIMESTAMP))", UTC)
    if kind is ColumnKind.TIMESTAMP:
        return Moment(f"micros(TRY_CAST({column} AS TIMESTAMP))", NO_ZONE)
    if clock is not None:
        return _declared(f"CAST({column} AS STRING)", clock)
    if form in _EPOCH_FACTORS:
        return Moment(_epoch(column, kind, _EPOCH_FACTORS[form]), UTC)
    day, time, fraction, zone = (
        f"regexp_extract({column}, '{ISO_8601}', {group})" for group in (1, 2, 3, 4)
    )
    time = f"coalesce(nullif({time}, ''), '00:00:00')"
    return Moment(_wall(column, ISO_8601, f"{day} || ' ' || {time} || {fraction}"), zone)


def _wall(column: str, pattern: str, written: str) -> str:
    return (
        f"CASE WHEN {is_exactly(column, pattern)} THEN micros(TRY_CAST({written} AS TIMESTAMP)) END"
    )


def _declared(column: str, clock: ClockFormat) -> Moment:
    """Parts of a text, put together as every engine reads them."""
    found = {
        part: f"regexp_extract({column}, '{clock.pattern}', {group})"
        for group, part in enumerate(clock.parts, start=1)
    }

    def two(part: str, absent: str = "'00'") -> str:
        return f"lpad({found[part]}, 2, '0')" if part in found else absent

    year = (
        found.get("Y") or f"(CASE WHEN {found['y']} < '69' THEN '20' ELSE '19' END || {found['y']})"
    )
    month, hour = two("m"), two("H")
    if "b" in found:
        names = " ".join(f"WHEN '{name}' THEN '{k:02d}'" for k, name in enumerate(_MONTHS, 1))
        month = f"CASE lower({found['b']}) {names} ELSE '' END"
    if "I" in found:
        late = f"CASE WHEN lower({found['p']}) = 'pm' THEN 12 ELSE 0 END"
        clock_hour = f"TRY_CAST({found['I']} AS INT) % 12 + {late}"
        hour = f"lpad(CAST({clock_hour} AS STRING), 2, '0')"
    fraction = f" || '.' || substr({found['f']}, 1, 6)" if "f" in found else ""
    written = (
        f"{year} || '-' || {month} || '-' || {two('d')} || ' ' || {hour}"
        f" || ':' || {two('M')} || ':' || {two('S')}{fraction}"
    )
    return Moment(_wall(column, clock.pattern, written), found.get("z", NO_ZONE))


def may_lie_in(
    column: str, kind: ColumnKind, form: str, window: Window, offsets: tuple[ZoneOffset, ...]
) -> str:
    """Whether a value as it stands in a file may be an instant of a window, or is none at all: what
    an engine can tell before it reads anything else. True of every text."""
    low, high = window
    if kind is ColumnKind.INTEGER and form in _EPOCH_FACTORS:
        factor = _EPOCH_FACTORS[form]
        ends = [-(-end // factor) for end in (EARLIEST_US, low, high, LATEST_US)]
        shown = [str(end) for end in ends]
    elif kind in (ColumnKind.TIMESTAMP, ColumnKind.ZONED_TIMESTAMP):
        if kind is ColumnKind.TIMESTAMP:
            # A wall clock may be ahead of UTC or behind it.
            low += min(change.offset for change in offsets)
            high += max(change.offset for change in offsets)
        shown = [f"timestamp_of({end})" for end in (EARLIEST_US, low, high, LATEST_US)]
    else:
        return "TRUE"
    earliest, first, last, latest = shown
    return (
        f"({column} >= {first} AND {column} < {last}"
        f" OR {column} IS NULL OR {column} < {earliest} OR {column} >= {latest})"
    )


def _epoch(column: str, kind: ColumnKind, factor: int) -> str:
    count = f"TRY_CAST({column} AS BIGINT)"
    inside = f"{count} BETWEEN {EARLIEST_US // factor} AND {LATEST_US // factor}"
    if kind is ColumnKind.TEXT:
        inside = f"{is_exactly(column, _WHOLE_NUMBER)} AND {inside}"
    return f"CASE WHEN {inside} THEN {count} * {factor} END"


def utc_microseconds(wall: str, zone: str, offsets: tuple[ZoneOffset, ...]) -> str:
    """UTC from a wall clock column and its zone, a column or one of NO_ZONE and UTC for all rows;
    no zone means the zone of `offsets`."""
    by_zone = {
        NO_ZONE: f" ELSE {_to_utc(wall, offsets)}",
        UTC: f" ELSE {wall}",
    }.get(
        zone,
        f" WHEN {zone} = {NO_ZONE} THEN {_to_utc(wall, offsets)}"
        f" WHEN {zone} = {UTC} THEN {wall} ELSE {wall} - {_offset_of(zone)}",
    )
    return f"CASE WHEN {wall} < {EARLIEST_US} OR {wall} >= {LATEST_US} THEN NULL{by_zone} END"


def _offset_of(zone: str) -> str:
    digits = f"replace({zone}, ':', '')"
    sign = f"CASE WHEN substr({zone}, 1, 1) = '-' THEN -1 ELSE 1 END"
    hours = f"TRY_CAST(substr({digits}, 2, 2) AS BIGINT) * 3600"
    minutes = f"coalesce(TRY_CAST(substr({digits}, 4, 2) AS BIGINT), 0) * 60"
    return f"({sign}) * ({hours} + {minutes}) * {MICROSECONDS_PER_SECOND}"


def _to_utc(wall: str, offsets: tuple[ZoneOffset, ...]) -> str:
    """A wall clock reading minus the offset that the zone had then."""
    later = "".join(
        f" WHEN {wall} >= {change.wall_from} THEN {wall} - ({change.offset})"
        for change in reversed(offsets[1:])
    )
    first = f"{wall} - ({offsets[0].offset})"
    return f"CASE{later} ELSE {first} END" if later else f"({first})"


def slot_number(moment_column: str, grid: SlotGrid) -> str:
    """The slot of an instant; NULL outside the campaign. One branch a run of equal slots."""
    branches = "".join(
        f" WHEN {moment_column} < {run.starts_at + run.count * run.length}"
        f" THEN {run.first_slot} + whole_div({moment_column} - {run.starts_at}, {run.length})"
        for run in grid.runs
    )
    return (
        f"CASE WHEN {moment_column} < {grid.starts_at} OR {moment_column} >= {grid.ends_at}"
        f" THEN NULL{branches} END"
    )


def slot_end(slot_column: str, grid: SlotGrid) -> str:
    """The instant at which a slot of the campaign ends."""
    branches = "".join(
        f" WHEN {slot_column} < {run.first_slot + run.count}"
        f" THEN {run.starts_at} + ({slot_column} - {run.first_slot - 1}) * {run.length}"
        for run in grid.runs
    )
    return f"CASE{branches} END"
