"""SQL that places each conversion in a slot: where it counts, if it has touches.

That is the slot in which it arrives. Where slots are held back for late impressions (`settle`), a
conversion has the touches that arrived up to that long after the end of its slot; and one that had
none by then waits for one (`wait`), and is placed in the first slot that can have it. So a
conversion is in one slot, by the rows of its own user alone, and what arrives after a release moves
nothing that was released: a further touch can only make a conversion's place earlier. Where
conversions count whether or not anybody touched them, none waits.
"""

from __future__ import annotations

from adsbpc.engines import Relation
from adsbpc.events.moments import slot_end, slot_number
from adsbpc.model.spec import CampaignSpec

# Decides which of a user's conversions come first, and has no ties that matter.
_ORDER = "time_us, coalesce(event_id, ''), coalesce(kind, ''), coalesce(value, -1)"


def conversions_sql(
    spec: CampaignSpec,
    slots: range,
    good: Relation,
    impressions: Relation,
    further: str,
    *,
    waits: bool = True,
) -> str:
    """The good conversions of some slots, numbered within user and slot, the first ones of many.
    Those without a touch wait for one, if the campaign says so and it `waits`."""
    is_waiting = waits and bool(spec.events.wait)
    placed = _waiting(spec, good, impressions, further) if is_waiting else _arriving(spec, good)
    settled = ""
    if spec.events.settle is not None:
        ends_at = slot_end("slot", spec.grid)
        settled = f",\n  {ends_at} + {spec.events.settle} AS settled_us"
    return f"""
WITH {placed},
numbered AS (
  SELECT placed.*, row_number() OVER (
      PARTITION BY user_id, slot
      ORDER BY {_ORDER}{further}
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
  value{further}{settled}
FROM numbered
WHERE conversion_number
  <= (SELECT max(most) FROM (VALUES ({spec.attribution.max_conversions})) AS limits(most))"""


def _arriving(spec: CampaignSpec, good: Relation) -> str:
    """The step `placed`: good conversions with the slot in which they arrive."""
    return f"""placed AS (
  SELECT checked.*, {slot_number("arrived_us", spec.grid)} AS slot
  FROM {good} AS checked
)"""


def _waiting(spec: CampaignSpec, good: Relation, impressions: Relation, further: str) -> str:
    """Named steps that end in `placed`, where conversions wait for a touch."""
    grid, section = spec.grid, spec.attribution
    columns = f"kind, value, event_id{further}"
    absent = "".join(f", CAST(NULL AS INT) AS {name}" for name in further.split(", ")[1:])
    # The first moment at which a slot that ends after it has a touch.
    ready = f"least({_first('clicks')}, {_first('views')}) - {spec.events.settle}"
    return f"""timeline AS (
  SELECT user_id, time_us, arrived_us, 1 AS converts, CAST(NULL AS BIGINT) AS clicks,
    CAST(NULL AS BIGINT) AS views, {columns}
  FROM {good} AS checked
  WHERE arrived_us >= {grid.starts_at} AND arrived_us < {grid.ends_at}
  UNION ALL
  SELECT user_id, time_us, arrived_us, 0, CASE WHEN kind = 'click' THEN arrived_us END,
    CASE WHEN kind = 'view' THEN arrived_us END, CAST(NULL AS STRING) AS kind,
    CAST(NULL AS DOUBLE) AS value, CAST(NULL AS STRING) AS event_id{absent}
  FROM {impressions} AS touched
),
touched AS (
  SELECT timeline.*,
    {_earliest("clicks", section.click_lookback)},
    {_earliest("views", section.view_lookback)}
  FROM timeline
),
ready AS (
  SELECT user_id, time_us, arrived_us, {columns}, {ready} AS ready_us
  FROM touched WHERE converts = 1
),
moved AS (
  SELECT ready.*, CASE
      WHEN ready_us > arrived_us AND ready_us <= arrived_us + {spec.events.wait} THEN ready_us
      ELSE arrived_us
    END AS placed_us
  FROM ready
),
placed AS (
  SELECT moved.*, {slot_number("placed_us", grid)} AS slot FROM moved
)"""


def _earliest(kind: str, lookback: int) -> str:
    """When the first touch of a kind arrived that somebody has who converts at the row's time."""
    if not lookback:
        return f"CAST(NULL AS BIGINT) AS first_{kind}"
    return f"""min({kind}) OVER (
      PARTITION BY user_id ORDER BY time_us
      RANGE BETWEEN {lookback} PRECEDING AND 1 PRECEDING) AS first_{kind}"""


def _first(kind: str) -> str:
    other = {"clicks": "views", "views": "clicks"}[kind]
    return f"coalesce(first_{kind}, first_{other})"
