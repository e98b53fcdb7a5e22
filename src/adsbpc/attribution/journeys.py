"""SQL for journeys: which touches a conversion has.

A touch is an impression of the same user, strictly earlier than the conversion, and not older
than the lookback of its kind. The journey is the latest `max_touches` of them in touch order.

Most users have few events, and a join on the user finds their touches fastest. For users with many
conversions (or, where the model looks at whole journeys, many impressions) that join would grow
with the product of both. They take another road to the same rows: impressions are ranked within
user and kind and cut into blocks of `max_touches`; a conversion meets only the two blocks that end
at its own position. Which road a user takes depends on that user's events alone.

On the first road busy users are left out by taking the user id off their conversions: a plain
filter is something that an optimiser may move behind the join.
"""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.events import EventTables

# Past this many conversions a user takes the road with blocks. Where the number of impressions does
# not matter, each conversion meets all of them on the other road: fewer are too many.
BUSY_CONVERSIONS = 64
_BUSY_WITHOUT_LIMIT = 16


@dataclass(frozen=True)
class Journeys:
    """Lookbacks in microseconds, and the most touches that a journey has."""

    click_lookback: int
    view_lookback: int
    max_touches: int

    def lookback(self, is_click: bool) -> int:
        return self.click_lookback if is_click else self.view_lookback

    def touches_sql(self, events: EventTables, *, whole_journey: bool) -> str:
        """The named steps that end in `touches` (conversion_key, time_us, publisher_number,
        touch_order).

        `whole_journey` is False for a model that only asks for the last touch: the latest touch
        is never cut off, so the number of impressions does not matter.
        """
        many_impressions = (
            f"""
  UNION
  SELECT user_id FROM {events.impressions} AS impressions
  GROUP BY user_id HAVING count(*) > {self.max_touches}"""
            if whole_journey
            else ""
        )
        most = BUSY_CONVERSIONS if whole_journey else _BUSY_WITHOUT_LIMIT
        arrived = "\n    AND impressions.arrived_us < light_conversions.settled_us"
        settled = ", conversions.settled_us" if events.by_arrival else ""
        slot = ", slot" if events.by_arrival else ""
        same_slot = (
            "\n    AND busy_impressions.slot = busy_blocks.slot" if events.by_arrival else ""
        )
        return f"""busy_users AS (
  SELECT user_id FROM {events.conversions} AS conversions
  GROUP BY user_id HAVING count(*) > {most}{many_impressions}
),
light_conversions AS (
  SELECT conversions.conversion_key, conversions.time_us{settled},
    CASE WHEN busy_users.user_id IS NULL THEN conversions.user_id END AS user_id
  FROM {events.conversions} AS conversions
  LEFT JOIN busy_users ON busy_users.user_id = conversions.user_id
),
light_touches AS (
  SELECT light_conversions.conversion_key, impressions.time_us, impressions.publisher_number,
    impressions.touch_order
  FROM light_conversions
  JOIN {events.impressions} AS impressions
    ON impressions.user_id = light_conversions.user_id
    AND impressions.time_us < light_conversions.time_us
    AND impressions.time_us >= light_conversions.time_us
      - CASE WHEN impressions.is_click THEN {self.click_lookback} ELSE {self.view_lookback} END\
{arrived if events.by_arrival else ""}
),
{self._busy_impressions(events)},
busy_timeline AS (
  SELECT user_id{slot}, time_us, 1 AS is_touch, CASE WHEN is_click THEN 1 ELSE 0 END AS clicks,
    CASE WHEN is_click THEN 0 ELSE 1 END AS views, CAST(NULL AS BIGINT) AS conversion_key
  FROM busy_impressions
  UNION ALL
  SELECT conversions.user_id{slot}, conversions.time_us, 0, 0, 0, conversions.conversion_key
  FROM {events.conversions} AS conversions
  JOIN busy_users ON busy_users.user_id = conversions.user_id
),
busy_counts AS (
  SELECT conversion_key, user_id{slot}, time_us,
    CAST(sum(clicks) OVER (
      PARTITION BY user_id{slot} ORDER BY time_us, is_touch
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS earlier_clicks,
    CAST(sum(views) OVER (
      PARTITION BY user_id{slot} ORDER BY time_us, is_touch
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS earlier_views
  FROM busy_timeline
),
busy_reach AS (
  SELECT conversion_key, user_id{slot}, TRUE AS is_click, earlier_clicks AS earlier,
    time_us - {self.click_lookback} AS not_before
  FROM busy_counts WHERE conversion_key IS NOT NULL AND earlier_clicks > 0
  UNION ALL
  SELECT conversion_key, user_id{slot}, FALSE AS is_click, earlier_views AS earlier,
    time_us - {self.view_lookback} AS not_before
  FROM busy_counts WHERE conversion_key IS NOT NULL AND earlier_views > 0
),
busy_blocks AS (
  SELECT busy_reach.*, whole_div(earlier - 1, {self.max_touches}) AS block FROM busy_reach
  UNION ALL
  SELECT busy_reach.*, whole_div(earlier - 1, {self.max_touches}) - 1 AS block
  FROM busy_reach WHERE earlier > {self.max_touches}
),
busy_candidates AS (
  SELECT busy_blocks.conversion_key, busy_impressions.time_us,
    busy_impressions.publisher_number, busy_impressions.touch_order,
    row_number() OVER (
      PARTITION BY busy_blocks.conversion_key ORDER BY busy_impressions.touch_order DESC
    ) AS recency
  FROM busy_blocks
  JOIN busy_impressions
    ON busy_impressions.user_id = busy_blocks.user_id{same_slot}
    AND busy_impressions.is_click = busy_blocks.is_click
    AND whole_div(busy_impressions.place - 1, {self.max_touches}) = busy_blocks.block
  WHERE busy_impressions.place <= busy_blocks.earlier
    AND busy_impressions.place > busy_blocks.earlier - {self.max_touches}
    AND busy_impressions.time_us >= busy_blocks.not_before
),
touches AS (
  SELECT conversion_key, time_us, publisher_number, touch_order FROM light_touches
  UNION ALL
  SELECT conversion_key, time_us, publisher_number, touch_order FROM busy_candidates
  WHERE recency <= (SELECT max(most) FROM (VALUES ({self.max_touches})) AS limits(most))
)"""

    def _busy_impressions(self, events: EventTables) -> str:
        """Impressions of busy users, with their places. Where a slot has those that arrived in
        time, a user's impressions are placed anew in each slot with conversions."""
        if not events.by_arrival:
            return f"""busy_impressions AS (
  SELECT impressions.user_id, impressions.is_click, impressions.time_us,
    impressions.publisher_number, impressions.touch_order,
    row_number() OVER (
      PARTITION BY impressions.user_id, impressions.is_click ORDER BY impressions.touch_order
    ) AS place
  FROM {events.impressions} AS impressions
  JOIN busy_users ON busy_users.user_id = impressions.user_id
)"""
        longest = max(self.click_lookback, self.view_lookback)
        return f"""busy_slots AS (
  SELECT conversions.user_id, slot, max(settled_us) AS settled_us,
    min(time_us) - {longest} AS not_before, max(time_us) AS before_us
  FROM {events.conversions} AS conversions
  JOIN busy_users ON busy_users.user_id = conversions.user_id
  GROUP BY conversions.user_id, slot
),
busy_impressions AS (
  SELECT impressions.user_id, slot, impressions.is_click, impressions.time_us,
    impressions.publisher_number, impressions.touch_order,
    row_number() OVER (
      PARTITION BY impressions.user_id, slot, impressions.is_click
      ORDER BY impressions.touch_order
    ) AS place
  FROM {events.impressions} AS impressions
  JOIN busy_slots ON busy_slots.user_id = impressions.user_id
    AND impressions.arrived_us < settled_us
    AND impressions.time_us >= not_before AND impressions.time_us < before_us
)"""
