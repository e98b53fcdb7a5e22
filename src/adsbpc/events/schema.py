"""The one schema of events: fields, the columns that carry them, limits, and what makes a row bad.

Sources are checked by it in SQL (`validation`), rows that are pushed to the service as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

from adsbpc.engines import Column, ColumnKind, Schema
from adsbpc.errors import SourceError, did_you_mean

IMPRESSION_KINDS = ("click", "view")
# Beyond this an amount is no amount; it also keeps infinities and NaN out, which sort above it.
LARGEST_VALUE = 1e15
# Moments before 1900, and from 2200 on, do not parse: no sum or difference of others can overflow.
EARLIEST_US = -2_208_988_800_000_000
LATEST_US = 7_258_118_400_000_000
# The shape of a text `timestamp_text` that is no timestamp, without what it says.
TIMESTAMP_SHAPE = (
    "translate(substr(timestamp_text, 1, 40), '0123456789abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ', '9999999999aaaaaaaaaaaaaaaaaaaaaaaaaa"
    "AAAAAAAAAAAAAAAAAAAAAAAAAA')"
)
# Of ids and kinds that are pushed to the service, which stores them for others to read.
LONGEST_TEXT = 200


class Reason(StrEnum):
    """Why a row is in quarantine. A row has one reason: the first that its table's rules find.
    Rows that could not be read at all have the reader's."""

    BAD_TEXT = "a text is not valid UTF-8"
    NO_USER = "no user"
    NO_TIMESTAMP = "no timestamp"
    BAD_TIMESTAMP = "timestamp does not parse"
    MIXED_ZONES = "timestamp with another kind of zone than [events] timestamps says"
    OTHER_ADVERTISER = "advertiser of another campaign"
    NO_PUBLISHER = "no publisher"
    UNKNOWN_KIND = "kind is neither click nor view"
    NO_ARRIVAL = "no arrival time"
    BAD_ARRIVAL = "arrival time does not parse"
    EARLY_ARRIVAL = "arrives before it happens"
    LATE_ARRIVAL = "arrives later than max_lateness"
    NO_VALUE = "no value, which the metric needs"
    NO_NUMBER = "value is not a number"
    BAD_VALUE = "value is negative or not finite"
    REPEATED_ID = "event id seen before for this user"
    # Of the service alone: who pushes can be asked for more than who wrote a file long ago.
    NOT_JSON = "not valid JSON"
    NO_OBJECT = "not a JSON object"
    UNKNOWN_FIELD = "unknown field"
    NO_ADVERTISER = "no advertiser"
    NO_ZONE = "timestamp without a zone"
    FUTURE = "timestamp is in the future"
    OTHER_PUBLISHERS_KEY = "publisher of another key"
    OTHER_ADVERTISERS_KEY = "advertiser of another key"


class FieldKind(Enum):
    """What a field holds, by the kinds of column that can carry it."""

    IDENTIFIER = (ColumnKind.TEXT, ColumnKind.INTEGER)
    WORD = (ColumnKind.TEXT,)
    MOMENT = (
        ColumnKind.TIMESTAMP, ColumnKind.ZONED_TIMESTAMP, ColumnKind.TEXT, ColumnKind.INTEGER,
    )  # fmt: skip
    AMOUNT = (ColumnKind.NUMBER, ColumnKind.INTEGER)


@dataclass(frozen=True)
class Field:
    """One field of an event table."""

    name: str
    kind: FieldKind
    required: bool = True
    # Whether Parquet files of an earlier time may lack it.
    is_later: bool = False

    @property
    def is_text(self) -> bool:
        return self.kind in (FieldKind.IDENTIFIER, FieldKind.WORD)


IMPRESSION_FIELDS = (
    Field("user_id", FieldKind.IDENTIFIER),
    Field("publisher_id", FieldKind.IDENTIFIER),
    Field("advertiser_id", FieldKind.IDENTIFIER),
    Field("timestamp", FieldKind.MOMENT),
    Field("kind", FieldKind.WORD),
    Field("event_id", FieldKind.IDENTIFIER, required=False),
    Field("arrived_at", FieldKind.MOMENT, required=False, is_later=True),
)

CONVERSION_FIELDS = (
    Field("user_id", FieldKind.IDENTIFIER),
    Field("advertiser_id", FieldKind.IDENTIFIER),
    Field("timestamp", FieldKind.MOMENT),
    Field("kind", FieldKind.WORD, required=False),
    Field("value", FieldKind.AMOUNT, required=False),
    Field("event_id", FieldKind.IDENTIFIER, required=False),
    Field("arrived_at", FieldKind.MOMENT, required=False),
)


@dataclass(frozen=True)
class MappedField:
    """A field that was found: the source's column for it and that column's kind."""

    column: str
    kind: ColumnKind


def map_fields(
    fields: tuple[Field, ...],
    columns: Mapping[str, str],
    asked_for: frozenset[str],
    schemas: list[Schema],
    section: str,
    *,
    all_text: bool,
) -> dict[str, MappedField]:
    """Find every field in every file, or say which file lacks which column.

    `asked_for` names the optional fields that the campaign file maps, so that a misspelt mapping
    is an error and not a field that quietly is not there. CSV columns are `all_text`.
    """
    found: dict[str, MappedField] = {}
    for field in fields:
        name = columns[field.name]
        absent = [schema for schema in schemas if name not in schema.columns]
        if absent and (field.required or field.name in asked_for):
            raise _missing(absent[0], name, field, section, set(columns.values()))
        present = [schema for schema in schemas if name in schema.columns]
        if absent and present and (all_text or not field.is_later):
            raise SourceError(
                f"{absent[0].where}, column {name!r}",
                "no such column",
                f"it in every file or in none, and {_holder(schemas, name)} has it",
                "Write the column to all files, nulls are allowed.",
            )
        if not present:
            continue
        kinds = (ColumnKind.TEXT,) if all_text else field.kind.value
        first = present[0].columns[name]
        for schema in present:
            _check_kind(schema, name, schema.columns[name], kinds, first)
        found[field.name] = MappedField(name, first.kind)
    return found


def _holder(schemas: list[Schema], name: str) -> str:
    return next(schema.where for schema in schemas if name in schema.columns)


def _missing(schema: Schema, name: str, field: Field, section: str, taken: set[str]) -> SourceError:
    # A column that holds another field is not meant.
    to_do = (
        f"Add the column, or map it in the campaign file: [{section}] {field.name} = ..."
        f".{did_you_mean(name, schema.columns.keys() - taken)}"
    )
    if field.name == "kind" and section == "events.impression_columns":
        to_do += ' If all impressions are of one kind, set [events] impression_kind = "click".'
    return SourceError(
        f"{schema.where}, column {name!r}",
        f"only the columns {', '.join(sorted(schema.columns)) or 'of an empty file'}",
        f"a column {name!r} for the field {field.name}",
        to_do,
    )


def _check_kind(
    schema: Schema, name: str, column: Column, kinds: tuple[ColumnKind, ...], first: Column
) -> None:
    if column.kind not in kinds:
        raise SourceError(
            f"{schema.where}, column {name!r}",
            f"type {column.declared}",
            " or ".join(kind.value for kind in kinds),
            "Convert the column, or map another one in the campaign file.",
        )
    if column.kind is not first.kind:
        raise SourceError(
            f"{schema.where}, column {name!r}",
            f"type {column.declared}",
            f"{first.declared}, as in the first file",
            "Write all files with one schema.",
        )
