WITH fit_found AS (
  SELECT fit_users.user_key, fit_users.converted, fit_users.is_busy,
    publishers.publisher_index, impressions.touch_order
  FROM clean_impressions AS impressions
  JOIN fit_users AS fit_users ON fit_users.user_id = impressions.user_id
    AND impressions.time_us < fit_users.end_us
    AND impressions.time_us >= fit_users.end_us
      - CASE WHEN impressions.is_click THEN 2592000000000
        ELSE 86400000000 END
  JOIN publisher_names AS publishers
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
  WHERE recency <= (SELECT max(most) FROM (VALUES (50)) AS limits(most))
),
fit_members AS (
  SELECT user_key, converted, publisher_index, row_number() OVER (
      PARTITION BY user_key ORDER BY max(touch_order) DESC) AS recency
  FROM fit_touches GROUP BY user_key, converted, publisher_index
),
fit_cells AS (
  SELECT user_key,
    2 * CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) + converted AS cell, 1 AS amount
  FROM fit_members 
  GROUP BY user_key, converted
),
all_cells AS (
  SELECT user_key, cell, amount FROM fit_cells
  UNION ALL
  SELECT user_key, -2 + converted AS cell, 1 AS amount FROM fit_users WHERE is_held_out
)
SELECT * FROM all_cells
