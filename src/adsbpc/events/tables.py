"""From a campaign's sources to the three tables that attribution reads.

    clean_conversions  conversion_key, user_id, conversion_number, conversion_id, slot, time_us,
                       value
    clean_impressions  user_id, time_us, is_click, publisher_number, touch_order
    publishers         publisher_number, publisher_id, publisher_index

They hold good rows of the campaign's advertiser only; bad rows are in `quarantine` with a reason.
Of a user with very many conversions in a slot, the first `max_conversions` are there.
`touch_order` sorts a user's impressions by time and, at one instant, by publisher id: it decides
every tie, on every engine, and `touch_order % publisher_count` is the publisher's number.
`publisher_index` is the position in the public list; publishers outside it share the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adsbpc.engines import ColumnKind, Engine, quote_text
from adsbpc.errors import SourceError, SpecError
from adsbpc.events.moments import slot_number
from adsbpc.events.schema import CONVERSION_FIELDS, IMPRESSION_FIELDS, MappedField, map_fields
from adsbpc.events.sources import Source, dialect_of, resolve_source
from adsbpc.events.validation import (
    SourceReading,
    conversions_checked,
    impressions_checked,
    repeated_marks,
    without_repeats,
)
from adsbpc.model.slots import zone_offsets
from adsbpc.model.spec import CampaignSpec

_IMPRESSION_COLUMNS = (
    "user_id, publisher_id, advertiser_id, kind, event_id, timestamp_text, time_us"
)
_CONVERSION_COLUMNS = (
    "user_id, advertiser_id, kind, value, event_id, timestamp_text, time_us, arrived_us"
)
_LARGEST_ORDER = 2**63 - 1


@dataclass(frozen=True)
class EventTables:
    """The tables stand in the engine's session; this says what is known about them."""

    engine: Engine
    publisher_count: int
    text_users: bool

    def quarantined(self) -> dict[tuple[str, str], int]:
        """Rows in quarantine by (source, reason): for the operator, never for a report."""
        found = self.engine.rows(
            "count quarantine",
            "SELECT source, reason, count(*) FROM quarantine"
            " GROUP BY source, reason ORDER BY source, reason",
        )
        return {(source, reason): count for source, reason, count in found}

    def conversions(self) -> int:
        """Good conversions in the slots that were read: for the operator, never for a report."""
        ((count,),) = self.engine.rows(
            "count conversions", "SELECT count(*) FROM clean_conversions"
        )
        return int(count)

    def write_quarantine(self, path: Path) -> None:
        self.engine.write_parquet("write quarantine", "SELECT * FROM quarantine", path)


def read_events(
    spec: CampaignSpec, engine: Engine, slot: int | None = None, through: int | None = None
) -> EventTables:
    """Open, check and lay out a campaign's events: those of all slots, of one, or of all up to
    one."""
    impressions, conversions = _open_sources(spec, engine)
    lateness = spec.events.max_lateness if "arrived_at" in conversions.fields else 0
    last_slot = through or spec.campaign.slots
    if slot is not None and not 1 <= slot <= last_slot:
        raise SpecError(f"slot = {slot}: expected a number from 1 to {last_slot}")
    slots = range(1, last_slot + 1) if slot is None else range(slot, slot + 1)
    grid = spec.grid
    first_moment = grid.boundaries[slots.start - 1] - lateness - spec.attribution.longest_lookback
    last_moment = grid.boundaries[slots.stop - 1]
    # Read with the zone rules of the whole campaign, whichever slot is asked for.
    offsets = zone_offsets(
        spec.events.timezone or spec.campaign.timezone,
        grid.starts_at - lateness - spec.attribution.longest_lookback,
        grid.ends_at,
    )

    in_reach = f"time_us >= {first_moment} AND time_us < {last_moment}"
    in_slots = f"arrived_us >= {grid.boundaries[slots.start - 1]} AND arrived_us < {last_moment}"
    engine.view("impressions_parsed", impressions_checked(impressions, spec, offsets))
    # The rows of one slot are few, and are kept; those of all slots stay where they are. So are all
    # conversions with ids, which are gone through twice, and are few beside impressions.
    has_ids = "event_id" in conversions.fields
    _view(
        engine, "conversions_parsed", conversions_checked(conversions, spec, offsets),
        kept=slot is not None and has_ids,
    )  # fmt: skip
    _mark_repeats(
        engine, impressions, "impressions", _IMPRESSION_COLUMNS, "publisher_id", "time_us, kind"
    )
    # The first to arrive is kept, so that a repeat can never displace what was released.
    _mark_repeats(
        engine, conversions, "conversions", _CONVERSION_COLUMNS, "",
        "arrived_us, time_us, coalesce(kind, ''), coalesce(value, -1)",
    )  # fmt: skip
    for name, wanted in (("impressions", in_reach), ("conversions", in_slots)):
        _view(engine, f"{name}_read", _read(f"{name}_checked", wanted), kept=slot is not None)
    engine.view("quarantine", _quarantine())

    engine.table("publishers", _publishers(spec))
    ((publisher_count,),) = engine.rows("count publishers", "SELECT count(*) FROM publishers")
    engine.view("clean_impressions", _impressions(first_moment, last_moment, publisher_count))
    engine.table("clean_conversions", _conversions(spec, slots), row_key="conversion_key")
    return EventTables(engine, publisher_count, conversions.text_users)


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
    impression_fields = tuple(
        f for f in IMPRESSION_FIELDS if not (f.name == "kind" and events.impression_kind)
    )
    opened: list[tuple[str, Source, dict[str, MappedField]]] = []
    for name, location, fields, columns in (
        ("impressions", events.impressions, impression_fields, events.impression_columns),
        ("conversions", events.conversions, CONVERSION_FIELDS, events.conversion_columns),
    ):
        source = resolve_source(location, spec.directory, f"[events] {name}", dialect_of(spec))
        schemas = source.describe(engine)
        asked_for = columns.model_fields_set | (
            {"value"} if name == "conversions" and spec.campaign.metric == "value" else set()
        )
        mapped = map_fields(
            fields, columns.model_dump(), frozenset(asked_for), schemas,
            f"{name.removesuffix('s')}_columns", all_text=source.is_csv,
        )  # fmt: skip
        source.open(engine, f"{name}_source", [field.column for field in mapped.values()])
        opened.append((name, source, mapped))
    # Users keep integer ids only if both sides have them; otherwise both are compared as text.
    text_users = any(mapped["user_id"].kind is ColumnKind.TEXT for *_, mapped in opened)
    readings = []
    for name, source, mapped in opened:
        reading = SourceReading(f"{name}_source", mapped, text_users, source.is_csv)
        for field in ("timestamp", "arrived_at"):
            if field in mapped:
                _check_moments(spec, reading, field, source.where)
        readings.append(reading)
    return readings[0], readings[1]


def _check_moments(spec: CampaignSpec, reading: SourceReading, field: str, where: str) -> None:
    """Refuse integers of which nobody said what they count. Nothing is read off the rows."""
    form, mapped = spec.events.timestamps, reading.fields[field]
    place = f"{where}, column {mapped.column!r}"
    if mapped.kind is ColumnKind.INTEGER and not form.startswith("epoch"):
        raise SourceError(
            place, "integers", "timestamps, or to be told what the integers count",
            'Set [events] timestamps = "epoch_seconds", "epoch_milliseconds" or'
            ' "epoch_microseconds".',
        )  # fmt: skip


def _mark_repeats(
    engine: Engine, reading: SourceReading, name: str, columns: str, sender: str, order: str
) -> None:
    """Define `{name}_checked`: the parsed rows, with repeated event ids among the reasons."""
    parsed, marks = f"{name}_parsed", f"{name}_repeated"
    if "event_id" in reading.fields:
        engine.table(marks, repeated_marks(parsed))
        ((repeated,),) = engine.rows(f"count {marks}", f"SELECT count(*) FROM {marks}")
        if repeated:
            engine.view(f"{name}_checked", without_repeats(parsed, marks, columns, sender, order))
            return
    engine.view(f"{name}_checked", f"SELECT * FROM {parsed}")


def _view(engine: Engine, name: str, sql: str, kept: bool) -> None:
    """Define a view, over a table if its rows are to be kept."""
    if kept:
        engine.table(f"{name}_kept", sql)
        sql = f"SELECT * FROM {name}_kept"
    engine.view(name, sql)


def _read(checked: str, wanted: str) -> str:
    """Good rows that are wanted, and bad ones wherever they belong."""
    return f"SELECT * FROM {checked} WHERE reason IS NOT NULL OR ({wanted})"


def _quarantine() -> str:
    return """
SELECT 'impressions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  publisher_id, timestamp_text AS timestamp, kind, CAST(NULL AS DOUBLE) AS value, event_id
FROM impressions_read WHERE reason IS NOT NULL
UNION ALL
SELECT 'conversions' AS source, reason, CAST(user_id AS STRING) AS user_id, advertiser_id,
  CAST(NULL AS STRING) AS publisher_id, timestamp_text AS timestamp, kind, value, event_id
FROM conversions_read WHERE reason IS NOT NULL"""


def _publishers(spec: CampaignSpec) -> str:
    listed = ", ".join(
        f"({quote_text(publisher)}, {index})"
        for index, publisher in enumerate(spec.campaign.publishers)
    )
    return f"""
WITH seen AS (
  SELECT DISTINCT publisher_id FROM impressions_read WHERE reason IS NULL
),
listed AS (SELECT * FROM (VALUES {listed}) AS public_list(publisher_id, publisher_index))
SELECT
  CAST(row_number() OVER (ORDER BY seen.publisher_id) - 1 AS BIGINT) AS publisher_number,
  seen.publisher_id,
  CAST(coalesce(listed.publisher_index, {len(spec.campaign.publishers)}) AS INT)
    AS publisher_index
FROM seen LEFT JOIN listed ON listed.publisher_id = seen.publisher_id"""


def _impressions(first_moment: int, last_moment: int, publisher_count: int) -> str:
    order = f"(checked.time_us - {first_moment}) * {publisher_count} + publishers.publisher_number"
    if (last_moment - first_moment) * publisher_count > _LARGEST_ORDER:
        order = order.replace("(checked.time_us", "wide(checked.time_us", 1)
    return f"""
SELECT
  checked.user_id,
  checked.time_us,
  checked.kind = 'click' AS is_click,
  publishers.publisher_number,
  {order} AS touch_order
FROM impressions_read AS checked
JOIN publishers ON publishers.publisher_id = checked.publisher_id
WHERE checked.reason IS NULL"""


def _conversions(spec: CampaignSpec, slots: range) -> str:
    return f"""
WITH placed AS (
  SELECT checked.*, {slot_number("arrived_us", spec.grid)} AS slot
  FROM conversions_read AS checked WHERE reason IS NULL
),
numbered AS (
  SELECT placed.*, row_number() OVER (
      PARTITION BY user_id, slot
      ORDER BY time_us, coalesce(event_id, ''), coalesce(kind, ''), coalesce(value, -1)
    ) AS conversion_number
  FROM placed WHERE slot >= {slots.start} AND slot < {slots.stop}
)
SELECT
  user_id,
  CAST(conversion_number AS BIGINT) AS conversion_number,
  coalesce(event_id, CAST(slot AS STRING) || '#' || CAST(conversion_number AS STRING))
    AS conversion_id,
  CAST(slot AS INT) AS slot,
  time_us,
  value
FROM numbered
WHERE conversion_number
  <= (SELECT max(most) FROM (VALUES ({spec.attribution.max_conversions})) AS limits(most))"""
