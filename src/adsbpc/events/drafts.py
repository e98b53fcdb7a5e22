"""What a campaign about somebody's files could say: days, publishers, how much there is.

All of it follows from events, so that it is a draft: whoever writes the campaign file decides what
of it may be public. Must never: be published, or written down, without that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from adsbpc.engines import Engine, quote_name, quote_text
from adsbpc.errors import SourceError
from adsbpc.events.clock_proposals import Clock
from adsbpc.events.moments import moment, utc_microseconds
from adsbpc.events.samples import Sample
from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.model.grid import ALL_PUBLISHERS, OTHER_PUBLISHER
from adsbpc.model.slots import to_microseconds, to_moment, zone_offsets

MOST_PUBLISHERS = 200
# Rows this rare, at either end, are mistakes rather than days of a campaign.
_RARE = 0.001
_LONGEST_NAME = 200
# Wide enough for any data that people have.
_AROUND = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Files:
    """Both sources, and the column of each field in them."""

    impressions: Sample
    conversions: Sample
    impression_columns: Mapping[str, str]
    conversion_columns: Mapping[str, str]

    def clock(self) -> Clock:
        """One way to read moments, for both sources."""
        found = [
            sample.clock(column)
            for sample, column in (
                (self.impressions, self.impression_columns["timestamp"]),
                (self.conversions, self.conversion_columns["timestamp"]),
            )
        ]
        forms = {(each.key, each.value) for each in found if each is not None}
        if None in found or len(forms) > 1:
            raise SourceError(
                f"{self.impressions.where} and {self.conversions.where}",
                "timestamps of which no one form holds for both",
                "one form, such as 2026-03-01T10:15:00Z",
                "Write them alike, or adsbpc init without files and [events] by hand.",
            )
        first, second = (each for each in found if each is not None)
        # A day beyond the twelfth in either of them shows which is the month.
        return first if first.other is None else second

    def has_decimal_commas(self) -> bool:
        column = self.conversion_columns.get("value")
        dialect = self.conversions.dialect
        if column is None or dialect is None or dialect.delimiter == ",":
            return False
        return any("," in each for each in self.conversions.texts[column])


@dataclass(frozen=True)
class Draft:
    """`publishers` are in the order of the alphabet: an order by size would tell. `conversions` are
    those with a touch within the usual lookbacks, of `shown` ones of people who were shown
    something at any time."""

    first: date
    last: date
    publishers: tuple[str, ...]
    further_publishers: int
    conversions: int
    shown: int


def advertisers_of(engine: Engine, files: Files) -> tuple[str, ...]:
    """Those of conversions, the most frequent first."""
    return tuple(_values(engine, files.conversions, files.conversion_columns["advertiser_id"], 50))


def draft_of(engine: Engine, files: Files, advertiser: str, zone: str) -> Draft:
    days = _days(engine, files, advertiser, zone)
    found = _values(
        engine,
        files.impressions,
        files.impression_columns["publisher_id"],
        MOST_PUBLISHERS + 1_000,
        _of(files.impression_columns, advertiser),
    )
    kept = (OTHER_PUBLISHER, ALL_PUBLISHERS)
    names = [
        each
        for each in found
        if each not in kept and each.isprintable() and len(each) <= _LONGEST_NAME
    ]
    if not names:
        raise SourceError(
            files.impressions.where,
            f"no impression of advertiser {advertiser!r} with a publisher",
            f"it in column {files.impression_columns['advertiser_id']!r}, as in conversions",
            "Check --advertiser and --column impressions.advertiser_id=NAME.",
        )
    conversions, shown = _touched(engine, files, advertiser, zone)
    return Draft(
        days[0],
        days[-1],
        tuple(sorted(names[:MOST_PUBLISHERS])),
        len(names) - len(names[:MOST_PUBLISHERS]),
        conversions,
        shown,
    )


def _touched(engine: Engine, files: Files, advertiser: str, zone: str) -> tuple[int, int]:
    """Conversions with a touch within the usual lookbacks, and conversions of people who were shown
    something at any time. Sorted once, so that nobody's rows are multiplied with each other."""
    usual, seen = AttributionSection(model="last_touch"), files.impression_columns
    touch = f"""SELECT person, instant, 0 AS converts,
    CASE WHEN kind = 'click' THEN instant END AS clicked,
    CASE WHEN kind <> 'click' THEN instant END AS viewed
  FROM ({_moments(files, files.impressions, seen, _of(seen, advertiser), zone)}) AS touches"""
    columns = files.conversion_columns
    conversion = f"""SELECT person, instant, 1, NULL, NULL
  FROM ({_moments(files, files.conversions, columns, _of(columns, advertiser), zone)}) AS made"""
    before = (
        "(PARTITION BY person ORDER BY instant, converts DESC"
        " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )
    ((touched, shown),) = engine.rows(
        "conversions with a touch",
        f"""SELECT
  count(CASE WHEN since_click <= {usual.click_lookback} OR since_view <= {usual.view_lookback}
    THEN 1 END),
  count(CASE WHEN ever < 1 THEN 1 END)
FROM (SELECT converts,
    instant - max(clicked) OVER {before} AS since_click,
    instant - max(viewed) OVER {before} AS since_view,
    min(converts) OVER (PARTITION BY person) AS ever
  FROM ({touch}
  UNION ALL {conversion}) AS events WHERE instant IS NOT NULL) AS looked_back
WHERE converts = 1""",
    )
    return int(touched), int(shown)


def _moments(
    files: Files, sample: Sample, columns: Mapping[str, str], where: str, zone: str
) -> str:
    """The person, the kind and the moment in UTC of rows."""
    clock, column = files.clock(), columns["timestamp"]
    read = moment(quote_name(column), sample.kinds[column], clock.form, clock.format)
    first, last = (to_microseconds(each) for each in _AROUND)
    kind = f"CAST({quote_name(columns['kind'])} AS STRING)" if "kind" in columns else "'view'"
    return (
        f"SELECT person, kind, {utc_microseconds('wall', 'zone', zone_offsets(zone, first, last))}"
        f" AS instant FROM (SELECT CAST({quote_name(columns['user_id'])} AS STRING) AS person,"
        f" {kind} AS kind, {read.wall} AS wall, {read.zone} AS zone FROM {sample.rows}"
        f" WHERE {where}) AS read_moments"
    )


def _of(columns: Mapping[str, str], advertiser: str) -> str:
    return f"CAST({quote_name(columns['advertiser_id'])} AS STRING) = {quote_text(advertiser)}"


def _values(
    engine: Engine, sample: Sample, column: str, most: int, where: str = "TRUE"
) -> list[str]:
    name = f"CAST({quote_name(column)} AS STRING)"
    found = engine.rows(
        "values of a column",
        f"SELECT {name}, count(*) FROM {sample.rows} WHERE {where} AND {name} <> ''"
        f" GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT {most}",
    )
    return [value for value, _ in found]


def _days(engine: Engine, files: Files, advertiser: str, zone: str) -> list[date]:
    """Days with conversions, but for rare ones at either end."""
    sample, column = files.conversions, files.conversion_columns["timestamp"]
    columns = files.conversion_columns
    moments = _moments(files, sample, columns, _of(columns, advertiser), zone)
    first, last = (to_microseconds(each) for each in _AROUND)
    hours = engine.rows(
        "conversions by hour",
        f"SELECT whole_div(instant, {MICROSECONDS_PER_HOUR}), count(*) FROM ({moments}) AS instants"
        f" WHERE instant >= {first} AND instant < {last} GROUP BY 1",
    )
    by_day: Counter[date] = Counter()
    for hour, count in hours:
        there = to_moment(int(hour) * MICROSECONDS_PER_HOUR).astimezone(ZoneInfo(zone))
        by_day[there.date()] += int(count)
    days, whole = sorted(by_day), by_day.total()
    if not days:
        raise SourceError(
            f"{sample.where}, column {column!r}",
            f"no conversion of advertiser {advertiser!r} with a moment that can be read",
            "at least one",
            "Check --advertiser and the column.",
        )
    while by_day[days[0]] < _RARE * whole:
        days.pop(0)
    while by_day[days[-1]] < _RARE * whole:
        days.pop()
    return days
