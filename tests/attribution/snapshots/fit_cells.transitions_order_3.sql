WITH fit_found AS (
  SELECT fit_users.user_key, fit_users.converted, fit_users.is_busy,
    publishers.publisher_index, impressions.touch_order
  FROM clean_impressions AS impressions
  JOIN fit_users ON fit_users.user_id = impressions.user_id
    AND impressions.time_us < fit_users.end_us
    AND impressions.time_us >= fit_users.end_us
      - CASE WHEN impressions.is_click THEN 2592000000000
        ELSE 86400000000 END
  JOIN publishers ON publishers.publisher_number = impressions.publisher_number
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
  WHERE recency <= (SELECT max(most) FROM (VALUES (50)) AS limits(most))
),
fit_runs AS (
  SELECT user_key, converted, publisher_index, touch_order,
    lag(publisher_index) OVER (PARTITION BY user_key ORDER BY touch_order) AS before
  FROM fit_touches
),
fit_stages AS (
  SELECT user_key, converted, publisher_index, touch_order FROM fit_runs
  WHERE before IS NULL OR before <> publisher_index
),
fit_states AS (
  SELECT user_key, converted,
    lead(touch_order) OVER (PARTITION BY user_key ORDER BY touch_order) IS NULL AS is_last,
    CAST(publisher_index + 1 AS BIGINT) * 1
      + CAST(coalesce(lag(publisher_index, 1) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 5
      + CAST(coalesce(lag(publisher_index, 2) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 25 AS state,
    CAST(coalesce(lag(publisher_index, 1) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 1
      + CAST(coalesce(lag(publisher_index, 2) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 5
      + CAST(coalesce(lag(publisher_index, 3) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 25 AS state_before
  FROM fit_stages
),
fit_steps AS (
  SELECT user_key, 2 * (state_before * 125 + state) AS cell FROM fit_states
  UNION ALL
  SELECT user_key, 2 * state * 125 + converted AS cell FROM fit_states WHERE is_last
),
fit_cells AS (
  SELECT user_key, cell, count(*) AS amount FROM fit_steps GROUP BY user_key, cell
),
all_cells AS (
  SELECT user_key, cell, amount FROM fit_cells
  UNION ALL
  SELECT user_key, -2 + converted AS cell, 1 AS amount FROM fit_users WHERE is_held_out
)
SELECT * FROM all_cells
