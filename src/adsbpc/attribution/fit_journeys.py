"""SQL for the journeys that a fit counts: one for each user.

A journey ends with the user's first conversion, or, without one, with the last touch. It has the
touches before its end, not older than the lookback of their kind, the latest `max_touches` of them:
what a conversion at that moment would be attributed to. Journeys that end before the fit's slots
are nobody's. Users of a declared holdout group are counted apart, whatever they saw.
"""

from __future__ import annotations

from adsbpc.attribution.counts import HOLDOUT, CountSet
from adsbpc.attribution.journeys import Journeys
from adsbpc.engines import Relation
from adsbpc.events import EventTables


def fit_users_sql(
    journeys: Journeys, starts_at: int, events: EventTables, holdout: Relation | None
) -> str:
    """Users with a journey, for a table that gets a column user_key: windows and sums over a number
    cost half of those over ids."""
    everybody, held_out, user = "fit_ends", "FALSE", "user_id"
    if holdout is not None:
        everybody = f"fit_ends FULL JOIN {holdout} AS held ON held.user_id = fit_ends.user_id"
        held_out = "held.user_id IS NOT NULL"
        user = "coalesce(fit_ends.user_id, held.user_id)"
    return f"""WITH fit_converted AS (
  SELECT user_id, min(time_us) AS converted_us FROM {events.conversions} AS conversions
  GROUP BY user_id
),
fit_touched AS (
  SELECT user_id, max(time_us) AS touched_us, count(*) AS touches
  FROM {events.impressions} AS impressions GROUP BY user_id
),
fit_ends AS (
  SELECT coalesce(fit_touched.user_id, fit_converted.user_id) AS user_id,
    coalesce(converted_us, touched_us + 1) AS end_us,
    CASE WHEN converted_us IS NULL THEN 0 ELSE 1 END AS converted,
    coalesce(touches, 0) > {journeys.max_touches} AS is_busy
  FROM fit_touched FULL JOIN fit_converted ON fit_converted.user_id = fit_touched.user_id
),
fit_everybody AS (
  SELECT {user} AS user_id, end_us, coalesce(converted, 0) AS converted, is_busy,
    {held_out} AS is_held_out
  FROM {everybody}
)
SELECT * FROM fit_everybody
WHERE is_held_out OR converted = 1 OR end_us > {starts_at}"""


def fit_cells_sql(
    counts: CountSet, journeys: Journeys, events: EventTables, users: Relation
) -> str:
    """Named steps from events and the table of `fit_users_sql` to `all_cells` (user_key, cell,
    amount): what each user adds to a set of counts, before it is weighed."""
    return f"""fit_found AS (
  SELECT fit_users.user_key, fit_users.converted, fit_users.is_busy,
    publishers.publisher_index, impressions.touch_order
  FROM {events.impressions} AS impressions
  JOIN {users} AS fit_users ON fit_users.user_id = impressions.user_id
    AND impressions.time_us < fit_users.end_us
    AND impressions.time_us >= fit_users.end_us
      - CASE WHEN impressions.is_click THEN {journeys.click_lookback}
        ELSE {journeys.view_lookback} END
  JOIN {events.publishers} AS publishers
    ON publishers.publisher_number = impressions.publisher_number
  WHERE NOT fit_users.is_held_out
),
fit_ranked AS (
  SELECT user_key, converted, publisher_index, touch_order,
    row_number() OVER (PARTITION BY user_key ORDER BY touch_order DESC) AS recency
  FROM fit_found WHERE is_busy
),
fit_touches AS (
  SELECT user_key, converted, publisher_index, touch_order FROM fit_found WHERE NOT is_busy
  UNION ALL
  SELECT user_key, converted, publisher_index, touch_order FROM fit_ranked
  WHERE recency <= (SELECT max(most) FROM (VALUES ({journeys.max_touches})) AS limits(most))
),
{counts.steps_sql()},
all_cells AS (
  SELECT user_key, cell, amount FROM fit_cells
  UNION ALL
  SELECT user_key, {2 * HOLDOUT} + converted AS cell, 1 AS amount FROM {users} WHERE is_held_out
)"""
