"""SQL that reads the rows of a source, gives every bad one its reason and keeps the others.

A row's reason depends on that row and on other rows of the same user, never on another user.
"""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.engines import UNREADABLE, ColumnKind, Relation, quote_name, quote_text
from adsbpc.events.moments import (
    NO_ZONE,
    UTC,
    Moment,
    Window,
    is_exactly,
    may_lie_in,
    moment,
    utc_microseconds,
)
from adsbpc.events.schema import (
    CONVERSION_FIELDS,
    IMPRESSION_FIELDS,
    IMPRESSION_KINDS,
    LARGEST_VALUE,
    Field,
    MappedField,
    Reason,
)
from adsbpc.model.slots import ZoneOffset
from adsbpc.model.spec import CampaignSpec

_DECIMAL_NUMBER = "^[+-]?[0-9]{1,15}(?:[.][0-9]{0,30})?(?:[eE][+-]?[0-9]{1,2})?$"
_IMPRESSION_KINDS = ", ".join(map(quote_text, IMPRESSION_KINDS))
_LARGEST_VALUE = f"{LARGEST_VALUE:g}".replace("+", "")


@dataclass(frozen=True)
class SourceReading:
    """What the texts need to know about one opened source."""

    rows: Relation
    fields: dict[str, MappedField]
    text_users: bool
    from_csv: bool


def _text(reading: SourceReading, field: str) -> str:
    """A field as text with empty texts as NULL, or NULL where the source has no such column."""
    if field not in reading.fields:
        return "CAST(NULL AS STRING)"
    return f"nullif(CAST({quote_name(reading.fields[field].column)} AS STRING), '')"


def _user(reading: SourceReading) -> str:
    if reading.text_users:
        return _text(reading, "user_id")
    return f"CAST({quote_name(reading.fields['user_id'].column)} AS BIGINT)"


def _broken_text(fields: tuple[Field, ...]) -> str:
    """Whether one of these holds bytes that are no text."""
    return " OR ".join(f"NOT is_text({field.name})" for field in fields if field.is_text)


def _value(reading: SourceReading) -> str:
    """The value as a number; one that cannot be read is NaN, to be told apart from one absent."""
    if "value" not in reading.fields:
        return "CAST(NULL AS DOUBLE)"
    column, text = quote_name(reading.fields["value"].column), _text(reading, "value")
    readable = is_exactly(text, _DECIMAL_NUMBER) if reading.from_csv else "TRUE"
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {readable} THEN TRY_CAST({column} AS DOUBLE)"
        " ELSE CAST('NaN' AS DOUBLE) END"
    )


def _moment_columns(reading: SourceReading, field: str, form: str) -> str:
    read = _moment(reading, field, form)
    return f"{read.wall} AS {field}_wall, {read.zone} AS {field}_zone"


def _utc(reading: SourceReading, field: str, form: str, offsets: tuple[ZoneOffset, ...]) -> str:
    """UTC microseconds from those columns."""
    zone = _moment(reading, field, form).zone
    one_for_all = zone in (NO_ZONE, UTC)
    return utc_microseconds(f"{field}_wall", zone if one_for_all else f"{field}_zone", offsets)


def _moment(reading: SourceReading, field: str, form: str) -> Moment:
    mapped = reading.fields[field]
    return moment(quote_name(mapped.column), mapped.kind, form)


def _moment_text(reading: SourceReading, field: str) -> str:
    """What stood there, for people. Engines stop at a moment that is out of range for a text."""
    if reading.fields[field].kind in (ColumnKind.TIMESTAMP, ColumnKind.ZONED_TIMESTAMP):
        return "CAST(NULL AS STRING)"
    return _text(reading, field)


def _wrong_zone_form(reading: SourceReading, field: str, form: str) -> str:
    mapped = reading.fields[field]
    if mapped.kind is not ColumnKind.TEXT or form not in ("zoned", "local"):
        return "FALSE"
    return f"{field}_zone {'=' if form == 'zoned' else '<>'} ''"


def _reasons(rules: list[tuple[str, Reason]]) -> str:
    branches = "\n    ".join(
        f"WHEN {rule} THEN {quote_text(reason)}" for rule, reason in rules if rule != "FALSE"
    )
    return f"CASE\n    WHEN unreadable IS NOT NULL THEN unreadable\n    {branches}\n  END AS reason"


def _rows(
    reading: SourceReading, field: str, form: str, window: Window | None,
    offsets: tuple[ZoneOffset, ...],
) -> str:  # fmt: skip
    """The source, without what cannot lie in a window if there is one."""
    if window is None:
        return str(reading.rows)
    mapped = reading.fields[field]
    inside = may_lie_in(quote_name(mapped.column), mapped.kind, form, window, offsets)
    return f"{reading.rows} WHERE {inside}"


def impressions_checked(
    reading: SourceReading,
    spec: CampaignSpec,
    offsets: tuple[ZoneOffset, ...],
    window: Window | None,
) -> str:
    form = spec.events.timestamps
    kind = spec.events.impression_kind
    kind_column = quote_text(kind) if kind else f"lower({_text(reading, 'kind')})"
    reasons = _reasons(
        [
            (_broken_text(IMPRESSION_FIELDS), Reason.BAD_TEXT),
            ("user_id IS NULL", Reason.NO_USER),
            ("time_us IS NULL", Reason.BAD_TIMESTAMP),
            (_wrong_zone_form(reading, "timestamp", form), Reason.MIXED_ZONES),
            (_another_advertiser(spec), Reason.OTHER_ADVERTISER),
            ("publisher_id IS NULL", Reason.NO_PUBLISHER),
            (f"kind IS NULL OR kind NOT IN ({_IMPRESSION_KINDS})", Reason.UNKNOWN_KIND),
        ]
    )
    return f"""
SELECT
  user_id, publisher_id, advertiser_id, kind, event_id,
  timestamp_text, time_us,
  {reasons}
FROM (
  SELECT
    parsed.*,
    {_utc(reading, "timestamp", form, offsets)} AS time_us
  FROM (
    SELECT
      {_user(reading)} AS user_id,
      {_text(reading, "publisher_id")} AS publisher_id,
      {_text(reading, "advertiser_id")} AS advertiser_id,
      {kind_column} AS kind,
      {_text(reading, "event_id")} AS event_id,
      {_moment_text(reading, "timestamp")} AS timestamp_text,
      {quote_name(UNREADABLE)} AS unreadable,
      {_moment_columns(reading, "timestamp", form)}
    FROM {_rows(reading, "timestamp", form, window, offsets)}
  ) AS parsed
) AS timed"""


def conversions_checked(
    reading: SourceReading,
    spec: CampaignSpec,
    offsets: tuple[ZoneOffset, ...],
    window: Window | None,
) -> str:
    form = spec.events.timestamps
    arrives = "arrived_at" if "arrived_at" in reading.fields else "timestamp"
    late = f"arrived_us - time_us > {spec.events.max_lateness}"
    needs_value = spec.campaign.metric == "value"
    reasons = _reasons(
        [
            (_broken_text(CONVERSION_FIELDS), Reason.BAD_TEXT),
            ("user_id IS NULL", Reason.NO_USER),
            ("time_us IS NULL", Reason.BAD_TIMESTAMP),
            (_wrong_zone_form(reading, "timestamp", form), Reason.MIXED_ZONES),
            ("arrived_us IS NULL", Reason.BAD_ARRIVAL),
            (_wrong_zone_form(reading, arrives, form), Reason.MIXED_ZONES),
            ("arrived_us < time_us", Reason.EARLY_ARRIVAL),
            (late, Reason.LATE_ARRIVAL),
            (_another_advertiser(spec), Reason.OTHER_ADVERTISER),
            ("value IS NULL" if needs_value else "FALSE", Reason.NO_VALUE),
            (f"value < 0 OR value > {_LARGEST_VALUE}", Reason.BAD_VALUE),
        ]
    )
    arrival_columns = (
        f"\n      {_moment_columns(reading, 'arrived_at', form)},"
        if arrives == "arrived_at"
        else ""
    )
    return f"""
SELECT
  user_id, advertiser_id, kind, value, event_id,
  timestamp_text, time_us, arrived_us,
  {reasons}
FROM (
  SELECT
    parsed.*,
    {_utc(reading, "timestamp", form, offsets)} AS time_us,
    {_utc(reading, arrives, form, offsets)} AS arrived_us
  FROM (
    SELECT
      {_user(reading)} AS user_id,
      {_text(reading, "advertiser_id")} AS advertiser_id,
      {_text(reading, "kind")} AS kind,
      {_value(reading)} AS value,
      {_text(reading, "event_id")} AS event_id,
      {_moment_text(reading, "timestamp")} AS timestamp_text,
      {quote_name(UNREADABLE)} AS unreadable,{arrival_columns}
      {_moment_columns(reading, "timestamp", form)}
    FROM {_rows(reading, arrives, form, window, offsets)}
  ) AS parsed
) AS timed"""


def _another_advertiser(spec: CampaignSpec) -> str:
    return f"advertiser_id IS NULL OR advertiser_id <> {quote_text(spec.campaign.advertiser)}"


# Only good rows with an event id can repeat one another; the others have no mark.
_MARK = (
    "CASE WHEN reason IS NULL AND event_id IS NOT NULL"
    " THEN fingerprint(CAST(user_id AS STRING), event_id) END"
)


def repeated_marks(checked: Relation) -> str:
    """Marks that more than one good row has: repeats and, very rarely, collisions."""
    return f"""
SELECT mark FROM (SELECT {_MARK} AS mark FROM {checked}) AS marked
WHERE mark IS NOT NULL GROUP BY mark HAVING count(*) > 1"""


def without_repeats(
    checked: Relation, marks: Relation, columns: str, sender: str, order: str
) -> str:
    """Of several good rows of a user and sender with one event id, all but the first get a reason.
    Senders number their events each for themselves; `sender` is empty where there is one."""
    key = ", ".join(filter(None, ("user_id", sender, "event_id")))
    return f"""
WITH marked AS (SELECT {columns}, reason, {_MARK} AS mark FROM {checked}),
suspected AS (
  SELECT {columns}, reason, marked.mark, repeats.mark AS repeated
  FROM marked LEFT JOIN {marks} AS repeats ON repeats.mark = marked.mark
)
SELECT {columns}, reason FROM suspected WHERE repeated IS NULL
UNION ALL
SELECT {columns},
  CASE WHEN row_number() OVER (PARTITION BY {key} ORDER BY {order}) > 1
    THEN {quote_text(Reason.REPEATED_ID)} END AS reason
FROM suspected WHERE repeated IS NOT NULL"""
