"""SQL for the journeys that a fit counts: one for each user.

A journey ends with the user's first conversion, or, without one, with the last touch. It has the
touches before its end, not older than the lookback of their kind, the latest `max_touches` of them:
what a conversion at that moment would be attributed to. Journeys that end before the fit's slots
are nobody's. Users of a declared holdout group are counted apart, whatever they saw.
"""

from __future__ import annotations

from adsbpc.attribution.counts import HOLDOUT, CountSet
from adsbpc.attribution.journeys import Journeys


def fit_cells_sql(counts: CountSet, journeys: Journeys, starts_at: int) -> str:
    """Named steps from the event tables to `all_cells` (user_id, cell, amount): what each user adds
    to a set of counts, before it is weighed."""
    held_out, everybody = "", "SELECT user_id, cell, amount FROM fit_cells"
    if counts.holdout:
        held_out = "WHERE user_id NOT IN (SELECT user_id FROM holdout_users)"
        everybody += f"""
  UNION ALL
  SELECT holdout_users.user_id,
    {2 * HOLDOUT} + CASE WHEN fit_ends.converted = 1 THEN 1 ELSE 0 END AS cell, 1 AS amount
  FROM holdout_users LEFT JOIN fit_ends ON fit_ends.user_id = holdout_users.user_id"""
    return f"""fit_moments AS (
  SELECT user_id, time_us AS converted_us, CAST(NULL AS BIGINT) AS touched_us
  FROM clean_conversions AS conversions
  UNION ALL
  SELECT user_id, CAST(NULL AS BIGINT), time_us FROM clean_impressions AS impressions
),
fit_ends AS (
  SELECT user_id, coalesce(min(converted_us), max(touched_us) + 1) AS end_us,
    CASE WHEN min(converted_us) IS NULL THEN 0 ELSE 1 END AS converted, count(*) AS events
  FROM fit_moments GROUP BY user_id
),
fit_users AS (
  SELECT user_id, end_us, converted, events > {journeys.max_touches} AS is_busy
  FROM fit_ends {held_out or "WHERE TRUE"} AND (converted = 1 OR end_us > {starts_at})
),
fit_found AS (
  SELECT impressions.user_id, fit_users.converted, fit_users.is_busy,
    publishers.publisher_index, impressions.touch_order
  FROM clean_impressions AS impressions
  JOIN fit_users ON fit_users.user_id = impressions.user_id
    AND impressions.time_us < fit_users.end_us
    AND impressions.time_us >= fit_users.end_us
      - CASE WHEN impressions.is_click THEN {journeys.click_lookback}
        ELSE {journeys.view_lookback} END
  JOIN publishers ON publishers.publisher_number = impressions.publisher_number
),
fit_ranked AS (
  SELECT user_id, converted, publisher_index, touch_order,
    row_number() OVER (PARTITION BY user_id ORDER BY touch_order DESC) AS recency
  FROM fit_found WHERE is_busy
),
fit_touches AS (
  SELECT user_id, converted, publisher_index, touch_order FROM fit_found WHERE NOT is_busy
  UNION ALL
  SELECT user_id, converted, publisher_index, touch_order FROM fit_ranked
  WHERE recency <= (SELECT max(most) FROM (VALUES ({journeys.max_touches})) AS limits(most))
),
{counts.steps_sql()},
all_cells AS (
  {everybody}
)"""
