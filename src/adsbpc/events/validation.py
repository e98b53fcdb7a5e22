"""SQL that reads the rows of a source, gives every bad one its reason and keeps the others.

A row's reason depends on that row and on other rows of the same user, never on another user.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from adsbpc.model.clock_format import ClockFormat
from adsbpc.model.events_spec import CsvSection
from adsbpc.model.slots import ZoneOffset
from adsbpc.model.spec import CampaignSpec

_EXPONENT = "(?:[eE][+-]?[0-9]{1,2})?"
_IMPRESSION_KINDS = ", ".join(map(quote_text, IMPRESSION_KINDS))
_LARGEST_VALUE = f"{LARGEST_VALUE:g}".replace("+", "")


@dataclass(frozen=True)
class SourceReading:
    """One opened source, and how the campaign file says that it is written: `csv` of CSV files,
    `form` and `clock` of moments, `offsets` of the zone that those without one are of, `dimensions`
    the lists of values by the field that has them."""

    rows: Relation
    fields: dict[str, MappedField]
    text_users: bool
    csv: CsvSection | None
    form: str
    clock: ClockFormat | None
    offsets: tuple[ZoneOffset, ...]
    dimensions: Mapping[str, tuple[str, ...]]

    @property
    def further_columns(self) -> str:
        """Of dimensions, after the others."""
        return "".join(f", {name}" for name in self.dimensions)

    def column(self, field: str) -> str:
        return quote_name(self.fields[field].column)

    def text(self, field: str) -> str:
        """A field as text with empty texts as NULL, or NULL where there is no such column."""
        if field not in self.fields:
            return "CAST(NULL AS STRING)"
        return f"nullif({self.as_written(field)}, '')"

    def as_written(self, field: str) -> str:
        """A field as text, empty ones too."""
        return f"CAST({self.column(field)} AS STRING)"

    def user(self) -> str:
        if self.text_users:
            return self.text("user_id")
        return f"CAST({self.column('user_id')} AS BIGINT)"

    def value(self) -> str:
        """As a number; one that cannot be read is NaN, to be told apart from one absent."""
        if "value" not in self.fields:
            return "CAST(NULL AS DOUBLE)"
        text, number, readable = self.text("value"), self.column("value"), "TRUE"
        if self.csv is not None:
            pattern = f"^[+-]?[0-9]{{1,15}}(?:[{self.csv.decimal}][0-9]{{0,30}})?{_EXPONENT}$"
            readable = is_exactly(text, pattern)
            number = f"replace({text}, '{self.csv.decimal}', '.')"
        return (
            f"CASE WHEN {text} IS NULL THEN NULL WHEN {readable} THEN TRY_CAST({number} AS DOUBLE)"
            " ELSE CAST('NaN' AS DOUBLE) END"
        )

    def places(self) -> str:
        """Columns with the place of a row in the list of each dimension, the last one for all that
        is not listed."""
        return "".join(
            f"\n      CASE {self.text(name)} {_branches(values)} ELSE {len(values)} END AS {name},"
            for name, values in self.dimensions.items()
        )

    def moment_columns(self, field: str) -> str:
        read = self._moment(field)
        absent = self.text(field) if self._is_text(field) else self.column(field)
        return (
            f"{read.wall} AS {field}_wall, {read.zone} AS {field}_zone,"
            f" {absent} IS NULL AS {field}_absent"
        )

    def utc(self, field: str) -> str:
        """UTC microseconds from those columns."""
        zone = self._moment(field).zone
        of_column = zone if zone in (NO_ZONE, UTC) else f"{field}_zone"
        return utc_microseconds(f"{field}_wall", of_column, self.offsets)

    def moment_text(self, field: str) -> str:
        """What stood there, for people. Engines stop at a moment that is out of range for one."""
        if self.fields[field].kind in (ColumnKind.TIMESTAMP, ColumnKind.ZONED_TIMESTAMP):
            return "CAST(NULL AS STRING)"
        return self.text(field)

    def has_wrong_zone(self, field: str) -> str:
        if not self._is_text(field) or self.form not in ("zoned", "local"):
            return "FALSE"
        return f"{field}_zone {'=' if self.form == 'zoned' else '<>'} ''"

    def rows_in(self, field: str, window: Window | None) -> str:
        """The source, without what cannot lie in a window if there is one."""
        if window is None:
            return str(self.rows)
        return f"{self.rows} WHERE {self.may_lie_in(field, window)}"

    def may_lie_in(self, field: str, window: Window) -> str:
        """Whether a row may be of a window, from its column alone."""
        if self.clock is not None:
            return "TRUE"
        kind = self.fields[field].kind
        return may_lie_in(self.column(field), kind, self.form, window, self.offsets)

    def _moment(self, field: str) -> Moment:
        return moment(self.column(field), self.fields[field].kind, self.form, self.clock)

    def _is_text(self, field: str) -> bool:
        return self.fields[field].kind is ColumnKind.TEXT


def _branches(values: tuple[str, ...]) -> str:
    return " ".join(f"WHEN {quote_text(value)} THEN {k}" for k, value in enumerate(values))


def _broken_text(fields: tuple[Field, ...]) -> str:
    """Whether one of these holds bytes that are no text."""
    return " OR ".join(f"NOT is_text({field.name})" for field in fields if field.is_text)


def _reasons(rules: list[tuple[str, Reason]]) -> str:
    branches = "\n    ".join(
        f"WHEN {rule} THEN {quote_text(reason)}" for rule, reason in rules if rule != "FALSE"
    )
    return f"CASE\n    WHEN unreadable IS NOT NULL THEN unreadable\n    {branches}\n  END AS reason"


def impressions_checked(
    reading: SourceReading, spec: CampaignSpec, window: Window | None, *, of_others: bool = False
) -> str:
    """Rows of a window, each with its reason if it is bad; as rows `of_others`, all of them are.
    Texts are judged as they are written, which takes less time: most rows are good, and of those
    none is empty."""
    kind = spec.events.impression_kind
    arrives = "arrived_at" in reading.fields
    kind_column = quote_text(kind) if kind else f"lower({reading.as_written('kind')})"
    reasons = _reasons(
        [
            (_broken_text(IMPRESSION_FIELDS), Reason.BAD_TEXT),
            ("user_id IS NULL", Reason.NO_USER),
            ("timestamp_absent", Reason.NO_TIMESTAMP),
            ("time_us IS NULL", Reason.BAD_TIMESTAMP),
            (reading.has_wrong_zone("timestamp"), Reason.MIXED_ZONES),
            (_another_advertiser(spec, of_others), Reason.OTHER_ADVERTISER),
            ("publisher_id IS NULL OR publisher_id = ''", Reason.NO_PUBLISHER),
            (f"kind IS NULL OR kind NOT IN ({_IMPRESSION_KINDS})", Reason.UNKNOWN_KIND),
            ("arrived_us IS NULL" if arrives else "FALSE", Reason.BAD_ARRIVAL),
            (reading.has_wrong_zone("arrived_at") if arrives else "FALSE", Reason.MIXED_ZONES),
            ("arrived_us < time_us" if arrives else "FALSE", Reason.EARLY_ARRIVAL),
        ]
    )
    arrived_us = happened_us = reading.utc("timestamp")
    arrival, arrived, arrival_columns = "", "", ""
    if arrives:
        # One that does not say when it arrived did when it happened.
        told = reading.utc("arrived_at")
        arrived_us = f"CASE WHEN arrived_at_absent THEN {happened_us} ELSE {told} END"
        arrival_columns = f"\n      {reading.moment_columns('arrived_at')},"
    if spec.events.settle is not None:
        arrival, arrived = f",\n    {arrived_us} AS arrived_us", ", arrived_us"
    return f"""
SELECT
  user_id, nullif(publisher_id, '') AS publisher_id, nullif(advertiser_id, '') AS advertiser_id,
  nullif(kind, '') AS kind, event_id, timestamp_text, time_us{arrived}{reading.further_columns},
  {reasons}
FROM (
  SELECT
    parsed.*,
    {happened_us} AS time_us{arrival}
  FROM (
    SELECT
      {reading.user()} AS user_id,
      {reading.as_written("publisher_id")} AS publisher_id,
      {reading.as_written("advertiser_id")} AS advertiser_id,
      {kind_column} AS kind,
      {reading.text("event_id")} AS event_id,{reading.places()}
      {reading.moment_text("timestamp")} AS timestamp_text,
      {quote_name(UNREADABLE)} AS unreadable,{arrival_columns}
      {reading.moment_columns("timestamp")}
    FROM {reading.rows_in("timestamp", window)}
  ) AS parsed
) AS timed"""


def conversions_checked(
    reading: SourceReading, spec: CampaignSpec, window: Window | None, *, of_others: bool = False
) -> str:
    """The same for conversions, whose moment is that of their arrival."""
    arrives = conversions_arrive(reading)
    late = f"arrived_us - time_us > {spec.events.max_lateness}"
    needs_value = "value" in reading.fields
    reasons = _reasons(
        [
            (_broken_text(CONVERSION_FIELDS), Reason.BAD_TEXT),
            ("user_id IS NULL", Reason.NO_USER),
            ("timestamp_absent", Reason.NO_TIMESTAMP),
            ("time_us IS NULL", Reason.BAD_TIMESTAMP),
            (reading.has_wrong_zone("timestamp"), Reason.MIXED_ZONES),
            (f"{arrives}_absent", Reason.NO_ARRIVAL),
            ("arrived_us IS NULL", Reason.BAD_ARRIVAL),
            (reading.has_wrong_zone(arrives), Reason.MIXED_ZONES),
            ("arrived_us < time_us", Reason.EARLY_ARRIVAL),
            (late, Reason.LATE_ARRIVAL),
            (_another_advertiser(spec, of_others), Reason.OTHER_ADVERTISER),
            ("value IS NULL" if needs_value else "FALSE", Reason.NO_VALUE),
            ("isnan(value)" if needs_value else "FALSE", Reason.NO_NUMBER),
            (
                f"value < 0 OR value > {_LARGEST_VALUE}" if needs_value else "FALSE",
                Reason.BAD_VALUE,
            ),
        ]
    )
    arrival_columns = (
        f"\n      {reading.moment_columns('arrived_at')}," if arrives == "arrived_at" else ""
    )
    return f"""
SELECT
  user_id, advertiser_id, kind, value, event_id, timestamp_text, time_us,
  arrived_us{reading.further_columns},
  {reasons}
FROM (
  SELECT
    parsed.*,
    {reading.utc("timestamp")} AS time_us,
    {reading.utc(arrives)} AS arrived_us
  FROM (
    SELECT
      {reading.user()} AS user_id,
      {reading.text("advertiser_id")} AS advertiser_id,
      {reading.text("kind")} AS kind,
      {reading.value()} AS value,
      {reading.text("event_id")} AS event_id,{reading.places()}
      {reading.moment_text("timestamp")} AS timestamp_text,
      {quote_name(UNREADABLE)} AS unreadable,{arrival_columns}
      {reading.moment_columns("timestamp")}
    FROM {reading.rows_in(arrives, window)}
  ) AS parsed
) AS timed"""


def conversions_arrive(reading: SourceReading) -> str:
    """The field that says when conversions arrive."""
    return "arrived_at" if "arrived_at" in reading.fields else "timestamp"


def _another_advertiser(spec: CampaignSpec, of_others: bool) -> str:
    if of_others:
        return "TRUE"
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
