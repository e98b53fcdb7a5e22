"""SQL over good impressions: which publishers there are, what conversions may
have as touches, and what is counted whether or not anybody converts."""

from __future__ import annotations

from adsbpc.engines import Relation, quote_text
from adsbpc.events.moments import Window, slot_end, slot_number
from adsbpc.events.validation import SourceReading
from adsbpc.model.spec import CampaignSpec

_LARGEST_ORDER = 2**63 - 1


def in_reach(spec: CampaignSpec, first: int, last: int) -> str:
    """Impressions that a conversion from one moment to another may have as touches."""
    section = spec.attribution
    clicks, views = first - section.click_lookback, first - section.view_lookback
    earliest = f"CASE WHEN kind = 'click' THEN {clicks} ELSE {views} END"
    return f"time_us < {last} AND time_us >= {clicks if clicks == views else earliest}"


def publishers_sql(spec: CampaignSpec, good: Relation, reading: SourceReading) -> str:
    further = reading.further_columns
    by_place = "".join(f", seen.{name}" for name in reading.dimensions)
    return f"""
WITH seen AS (
  SELECT DISTINCT publisher_id{further} FROM {good} AS impressions
),
listed AS (SELECT * FROM {public_list(spec)})
SELECT
  CAST(row_number() OVER (ORDER BY seen.publisher_id{by_place}) - 1 AS BIGINT)
    AS publisher_number,
  seen.publisher_id{by_place},
  {listed_index(spec, "listed")}
FROM seen LEFT JOIN listed ON listed.publisher_id = seen.publisher_id"""


def public_list(spec: CampaignSpec) -> str:
    """Rows (publisher_id, publisher_index) of a campaign's list."""
    listed = ", ".join(
        f"({quote_text(publisher)}, {index})"
        for index, publisher in enumerate(spec.campaign.publishers)
    )
    return f"(VALUES {listed}) AS public_list(publisher_id, publisher_index)"


def listed_index(spec: CampaignSpec, listed: str) -> str:
    """The place in the list, for rows that were joined with it; who is not in it has the last."""
    unlisted = len(spec.campaign.publishers)
    return f"CAST(coalesce({listed}.publisher_index, {unlisted}) AS INT) AS publisher_index"


def touch_order(window: Window, publisher_count: int) -> str:
    first, last = window
    since = "" if (last - first) * publisher_count <= _LARGEST_ORDER else "wide"
    return f"{since}(checked.time_us - {first}) * {publisher_count} + publishers.publisher_number"


def touches_sql(
    good: Relation, publishers: Relation, reading: SourceReading, order: str, by_arrival: bool
) -> str:
    arrived = ",\n  checked.arrived_us" if by_arrival else ""
    return f"""
SELECT
  checked.user_id,
  checked.time_us,
  checked.kind = 'click' AS is_click,
  publishers.publisher_number,
  {order} AS touch_order{arrived}
FROM {good} AS checked
JOIN {publishers} AS publishers ON {_same_publisher(reading)}"""


def exposures_sql(
    spec: CampaignSpec,
    good: Relation,
    publishers: Relation,
    reading: SourceReading,
    window: Window,
) -> str:
    """Impressions of the slots from one moment to another, each in the slot that it happened in,
    where slots are held back for late ones those that arrived by then."""
    first, last = window
    slot = slot_number("checked.time_us", spec.grid)
    in_time = ""
    if spec.events.settle is not None:
        settled = f"{slot_end(f'({slot})', spec.grid)} + {spec.events.settle}"
        in_time = f"\n  AND checked.arrived_us < {settled}"
    places = "".join(f", publishers.{name}" for name in reading.dimensions)
    return f"""
SELECT
  checked.user_id,
  CAST({slot} AS INT) AS slot,
  checked.time_us,
  checked.kind = 'click' AS is_click,
  publishers.publisher_index{places}
FROM {good} AS checked
JOIN {publishers} AS publishers ON {_same_publisher(reading)}
WHERE checked.time_us >= {first} AND checked.time_us < {last}{in_time}"""


def _same_publisher(reading: SourceReading) -> str:
    """And the same places in the lists of dimensions."""
    in_place = "".join(f" AND publishers.{name} = checked.{name}" for name in reading.dimensions)
    return f"publishers.publisher_id = checked.publisher_id{in_place}"
