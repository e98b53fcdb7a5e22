"""What a row of a batch may be, and the verdict of each row that may not.

Must never: let it depend on other rows whether a row is good, or quote a value in a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from adsbpc.events.schema import (
    CONVERSION_FIELDS,
    EARLIEST_US,
    IMPRESSION_FIELDS,
    IMPRESSION_KINDS,
    LARGEST_VALUE,
    LATEST_US,
    LONGEST_TEXT,
    Field,
    FieldKind,
    Reason,
)
from adsbpc.model.events_spec import EventsSection
from adsbpc.model.slots import to_microseconds

Source = Literal["impressions", "conversions"]

# What breakdowns may be by: texts that a row may have, and that campaigns list the values of.
DIMENSION_COLUMNS: Final = ("country", "region", "device", "category")
_DIMENSION_FIELDS = tuple(Field(name, FieldKind.WORD, required=False) for name in DIMENSION_COLUMNS)
_EVENT_FIELDS: Final[dict[Source, tuple[Field, ...]]] = {
    "impressions": IMPRESSION_FIELDS,
    "conversions": CONVERSION_FIELDS,
}
FIELDS: Final[dict[Source, tuple[Field, ...]]] = {
    # When it arrived is added last.
    source: (*fields[:-1], *_DIMENSION_FIELDS, fields[-1])
    for source, fields in _EVENT_FIELDS.items()
}
# When a row arrived is the server's to say.
ARRIVED_AT: Final = "arrived_at"
MOMENT: Final = pa.timestamp("us", "UTC")
_ARROW_TYPES: Final = {FieldKind.MOMENT: MOMENT, FieldKind.AMOUNT: pa.float64()}
STORED: Final[dict[Source, pa.Schema]] = {
    source: pa.schema([(each.name, _ARROW_TYPES.get(each.kind, pa.string())) for each in fields])
    for source, fields in FIELDS.items()
}
SCHEMAS: Final[dict[Source, pa.Schema]] = {
    source: pa.schema([each for each in schema if each.name != ARRIVED_AT])
    for source, schema in STORED.items()
}

# The field that a sender's key speaks for, and the reason of a row of somebody else.
OWNED: Final[dict[Source, tuple[str, str]]] = {
    "impressions": ("publisher_id", Reason.OTHER_PUBLISHERS_KEY),
    "conversions": ("advertiser_id", Reason.OTHER_ADVERTISERS_KEY),
}

# A line of a batch that no parser could read.
UNREADABLE: Final = object()

_AHEAD_US = 5 * 60 * 1_000_000
_MOST_LATE_US: Final[int] = EventsSection.model_fields["max_lateness"].default
_SHOWN_NAME = 40

# RFC 3339, and a space for the T as everywhere else in adsbpc. Longer texts than `_WHOLE_MOMENT`
# have digits beyond the microsecond.
_CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]+)?"
_ZONE = r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK_PATTERN = re.compile(_CLOCK)
_ZONED_PATTERN = re.compile(_CLOCK + _ZONE)
_WHOLE_MOMENT = len("2026-03-01T12:00:00.123456Z")

_ABSENT: Final[dict[str, str]] = {"user_id": Reason.NO_USER, "advertiser_id": Reason.NO_ADVERTISER}


@dataclass(frozen=True)
class Checked:
    """A batch after the checks: `table` holds the good rows in their order, `quarantined` the
    reasons of the others by their number in the batch, which starts at 0."""

    source: Source
    rows: int
    table: pa.Table
    quarantined: dict[int, str]


def counted_reason(reason: str) -> str:
    """What a reason is counted under: without the part that a sender made up."""
    return reason.partition(":")[0]


Columns = dict[str, pa.Array]


def columns_of(rows: list[Any], source: Source) -> tuple[Columns, dict[int, str]]:
    """Parsed JSON as columns with a row for each; one of the wrong shape gets a reason, and
    nulls."""
    reasons: dict[int, str] = {}
    shaped: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        reason = _misshapen(row, source)
        if reason is not None:
            reasons[number] = reason
            row = {}
        elif isinstance(row.get("value"), int):
            # An integer may be too large for a column, and is too large for an amount long before.
            row = {**row, "value": max(-1, min(row["value"], 2 * LARGEST_VALUE))}
        shaped.append(row)
    texts = pa.struct([(name, pa.string()) for name in SCHEMAS[source].names if name != "value"])
    columns = dict(zip(texts.names, pa.array(shaped, texts).flatten(), strict=True))
    if source == "conversions":
        columns["value"] = pa.array([row.get("value") for row in shaped], pa.float64())
    return columns, reasons


def _misshapen(row: Any, source: Source) -> str | None:
    if row is UNREADABLE:
        return str(Reason.NOT_JSON)
    if not isinstance(row, dict):
        return str(Reason.NO_OBJECT)
    fields = SCHEMAS[source].names
    for name, value in row.items():
        if name not in fields:
            return f"{Reason.UNKNOWN_FIELD}: {name[:_SHOWN_NAME]}"
        if value is None:
            continue
        if name == "value":
            # A truth value is an integer to Python, and no amount.
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return str(Reason.NO_NUMBER)
        elif not isinstance(value, str):
            return str(Reason.BAD_TIMESTAMP) if name == "timestamp" else f"{name} is not text"
    return None


class _Verdicts:
    """Reasons by row; the first rule that finds a row bad gives it its reason."""

    def __init__(self, reasons: dict[int, str]) -> None:
        self.reasons = reasons

    def rule(self, bad: pa.Array, reason: str) -> None:
        """Rows where `bad` holds; a null there holds nothing."""
        if bad.true_count:
            for number in pc.indices_nonzero(bad.fill_null(False)).to_pylist():
                self.reasons.setdefault(number, reason)

    def text(self, name: str, column: pa.Array) -> None:
        """A text of 1 to LONGEST_TEXT characters; absent only where the field is optional."""
        absent = _ABSENT.get(name)
        if absent:
            self.rule(column.is_null(), absent)
        self.rule(pc.equal(pc.binary_length(column), 0), absent or f"{name} is empty")
        longer = pc.greater(pc.utf8_length(column), LONGEST_TEXT)
        self.rule(longer, f"{name} is longer than {LONGEST_TEXT} characters")
        self.rule(pc.match_substring(column, "\0"), f"{name} holds a NUL character")


def check_columns(
    columns: Columns, reasons: dict[int, str], source: Source, subject: str, now_us: int
) -> Checked:
    """Check columns of the right types; text timestamps are parsed here. `reasons` are those of
    rows that are known to be bad; `subject` is the publisher or advertiser that sends them."""
    verdicts, count = _Verdicts(reasons), len(columns["user_id"])
    verdicts.text("user_id", columns["user_id"])
    columns["timestamp"] = _moments(columns["timestamp"], now_us, verdicts)
    if source == "conversions":
        # It would be set aside at every release: better told now.
        earliest = now_us - _MOST_LATE_US + _AHEAD_US
        late = pc.less(columns["timestamp"].cast(pa.int64()), earliest)
        verdicts.rule(late, str(Reason.LATE_ARRIVAL))
    owned, foreign = OWNED[source]
    columns[owned] = columns[owned].fill_null(subject)
    verdicts.rule(pc.not_equal(columns[owned], subject), foreign)
    if source == "impressions":
        verdicts.text("advertiser_id", columns["advertiser_id"])
        known = pc.is_in(columns["kind"], value_set=pa.array(IMPRESSION_KINDS))
        verdicts.rule(pc.invert(known), str(Reason.UNKNOWN_KIND))
    else:
        verdicts.text("kind", columns["kind"])
        # Not a number compares as false with everything.
        allowed = pc.and_(
            pc.greater_equal(columns["value"], 0), pc.less_equal(columns["value"], LARGEST_VALUE)
        )
        verdicts.rule(pc.invert(allowed), str(Reason.BAD_VALUE))
    for name in ("event_id", *DIMENSION_COLUMNS):
        verdicts.text(name, columns[name])

    schema = SCHEMAS[source]
    table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    if reasons:
        good = [number for number in range(count) if number not in reasons]
        table = table.take(pa.array(good, pa.int64()))
    return Checked(source, count, table, dict(sorted(reasons.items())))


def _moments(column: pa.Array, now_us: int, verdicts: _Verdicts) -> pa.Array:
    """A column of texts or of moments as moments; null where there is none."""
    moments = column if pa.types.is_timestamp(column.type) else _parsed(column, verdicts)
    counts = moments.cast(pa.int64())
    outside = pc.or_(pc.less(counts, EARLIEST_US), pc.greater_equal(counts, LATEST_US))
    verdicts.rule(moments.is_null(), str(Reason.BAD_TIMESTAMP))
    verdicts.rule(outside, str(Reason.BAD_TIMESTAMP))
    verdicts.rule(pc.greater(counts, now_us + _AHEAD_US), str(Reason.FUTURE))
    return moments


def _parsed(texts: pa.Array, verdicts: _Verdicts) -> pa.Array:
    zoned = pc.match_substring_regex(texts, f"^{_CLOCK}{_ZONE}$")
    if zoned.true_count == len(texts):
        cut = texts
        if (pc.max(pc.utf8_length(texts)).as_py() or 0) > _WHOLE_MOMENT:
            cut = pc.replace_substring_regex(texts, r"(\.[0-9]{6})[0-9]+", r"\1")
        try:
            return cut.cast(MOMENT)
        except pa.ArrowInvalid:
            pass
    moments = []
    for number, text in enumerate(texts.to_pylist()):
        moments.append(None if text is None else _moment(text))
        if text is not None and _CLOCK_PATTERN.fullmatch(text):
            verdicts.reasons.setdefault(number, str(Reason.NO_ZONE))
    return pa.array(moments, pa.int64()).cast(MOMENT)


def _moment(text: str) -> int | None:
    if not _ZONED_PATTERN.fullmatch(text):
        return None
    try:
        return to_microseconds(datetime.fromisoformat(text))
    except ValueError:
        return None
