"""The section [events] of a campaign file: where events are, what their columns are called, and how
moments and CSV files are written."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from adsbpc.model.clock_format import ClockFormat
from adsbpc.model.durations import parse_duration
from adsbpc.model.section import DEFAULTS, Duration, Name, Section, Zone
from adsbpc.model.toml import MisfitError

EngineName = Literal["duckdb", "spark"]
TimestampForm = Literal[
    "auto", "zoned", "local", "epoch_seconds", "epoch_milliseconds", "epoch_microseconds"
]
# A sign that neither names nor numbers nor lines are made of.
_SIGN = re.compile(r"[!-/:-@\[-`{-~\t]")


class ImpressionColumns(Section):
    user_id: Name = "user_id"
    publisher_id: Name = "publisher_id"
    advertiser_id: Name = "advertiser_id"
    timestamp: Name = "timestamp"
    kind: Name = "kind"
    event_id: Name = "event_id"
    arrived_at: Name = "arrived_at"


class ConversionColumns(Section):
    user_id: Name = "user_id"
    advertiser_id: Name = "advertiser_id"
    timestamp: Name = "timestamp"
    kind: Name = "kind"
    value: Name = "value"
    event_id: Name = "event_id"
    arrived_at: Name = "arrived_at"


class CsvSection(Section):
    """How CSV files are written. Nothing of it is guessed from a file: one person's row could
    decide how everybody's are read. An empty `quote` makes quotes plain characters."""

    delimiter: str = ","
    quote: str = '"'
    decimal: Literal[".", ","] = "."

    @model_validator(mode="after")
    def _two_signs(self) -> Self:
        for key, sign in (("delimiter", self.delimiter), ("quote", self.quote or '"')):
            if not _SIGN.fullmatch(sign):
                raise MisfitError(
                    "expected one sign, neither letter nor digit, or a tab", key, value=repr(sign)
                )
        if self.delimiter == self.quote:
            raise ValueError(f"delimiter and quote are both {self.quote!r}: change one of them")
        if "decimal" in self.model_fields_set and self.delimiter == self.decimal:
            raise ValueError(
                f"delimiter and decimal are both {self.decimal!r}: declare the delimiter that the "
                "files have"
            )
        return self


def _clock(text: str) -> str:
    return ClockFormat(text).text


class EventsSection(Section):
    impressions: Name
    conversions: Name
    engine: EngineName = "duckdb"
    timestamps: TimestampForm = "auto"
    timestamp_format: Annotated[Name, AfterValidator(_clock)] | None = None
    timezone: Zone | None = None
    impression_kind: Literal["click", "view"] | None = None
    max_lateness: Duration = parse_duration("30d")
    settle: Duration | None = None
    wait: Duration = 0
    impression_columns: ImpressionColumns = DEFAULTS
    conversion_columns: ConversionColumns = DEFAULTS
    csv: CsvSection = DEFAULTS

    @model_validator(mode="after")
    def _one_way_to_read_moments(self) -> Self:
        if self.timestamp_format is not None and self.timestamps != "auto":
            raise MisfitError(
                f"timestamp_format says how timestamps are written, and so does timestamps = "
                f"{self.timestamps!r}: remove one of them",
                "timestamp_format",
            )
        return self

    @model_validator(mode="after")
    def _arrivals_are_looked_at(self) -> Self:
        mapped = "arrived_at" in self.impression_columns.model_fields_set
        if self.settle is None and (self.wait or mapped):
            key = "wait" if self.wait else "impression_columns.arrived_at"
            raise MisfitError(
                "needs settle, which says how long after its end a slot is released: set "
                'settle = "1h", for example, or remove it',
                key,
            )
        return self

    @property
    def held_back(self) -> int:
        """How long after its end a slot waits for touches of its conversions."""
        return self.settle or 0
