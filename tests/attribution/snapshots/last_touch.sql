WITH busy_users AS (
  SELECT user_id FROM clean_conversions AS conversions
  GROUP BY user_id HAVING count(*) > 16
),
light_conversions AS (
  SELECT conversions.conversion_key, conversions.time_us,
    CASE WHEN busy_users.user_id IS NULL THEN conversions.user_id END AS user_id
  FROM clean_conversions AS conversions
  LEFT JOIN busy_users ON busy_users.user_id = conversions.user_id
),
light_touches AS (
  SELECT light_conversions.conversion_key, impressions.time_us, impressions.publisher_number,
    impressions.touch_order
  FROM light_conversions
  JOIN clean_impressions AS impressions
    ON impressions.user_id = light_conversions.user_id
    AND impressions.time_us < light_conversions.time_us
    AND impressions.time_us >= light_conversions.time_us
      - CASE WHEN impressions.is_click THEN 2592000000000 ELSE 86400000000 END
),
busy_impressions AS (
  SELECT impressions.user_id, impressions.is_click, impressions.time_us,
    impressions.publisher_number, impressions.touch_order,
    row_number() OVER (
      PARTITION BY impressions.user_id, impressions.is_click ORDER BY impressions.touch_order
    ) AS place
  FROM clean_impressions AS impressions
  JOIN busy_users ON busy_users.user_id = impressions.user_id
),
busy_timeline AS (
  SELECT user_id, time_us, 1 AS is_touch, CASE WHEN is_click THEN 1 ELSE 0 END AS clicks,
    CASE WHEN is_click THEN 0 ELSE 1 END AS views, CAST(NULL AS BIGINT) AS conversion_key
  FROM busy_impressions
  UNION ALL
  SELECT conversions.user_id, conversions.time_us, 0, 0, 0, conversions.conversion_key
  FROM clean_conversions AS conversions
  JOIN busy_users ON busy_users.user_id = conversions.user_id
),
busy_counts AS (
  SELECT conversion_key, user_id, time_us,
    CAST(sum(clicks) OVER (
      PARTITION BY user_id ORDER BY time_us, is_touch
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS earlier_clicks,
    CAST(sum(views) OVER (
      PARTITION BY user_id ORDER BY time_us, is_touch
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS earlier_views
  FROM busy_timeline
),
busy_reach AS (
  SELECT conversion_key, user_id, TRUE AS is_click, earlier_clicks AS earlier,
    time_us - 2592000000000 AS not_before
  FROM busy_counts WHERE conversion_key IS NOT NULL AND earlier_clicks > 0
  UNION ALL
  SELECT conversion_key, user_id, FALSE AS is_click, earlier_views AS earlier,
    time_us - 86400000000 AS not_before
  FROM busy_counts WHERE conversion_key IS NOT NULL AND earlier_views > 0
),
busy_blocks AS (
  SELECT busy_reach.*, whole_div(earlier - 1, 50) AS block FROM busy_reach
  UNION ALL
  SELECT busy_reach.*, whole_div(earlier - 1, 50) - 1 AS block
  FROM busy_reach WHERE earlier > 50
),
busy_candidates AS (
  SELECT busy_blocks.conversion_key, busy_impressions.time_us,
    busy_impressions.publisher_number, busy_impressions.touch_order,
    row_number() OVER (
      PARTITION BY busy_blocks.conversion_key ORDER BY busy_impressions.touch_order DESC
    ) AS recency
  FROM busy_blocks
  JOIN busy_impressions
    ON busy_impressions.user_id = busy_blocks.user_id
    AND busy_impressions.is_click = busy_blocks.is_click
    AND whole_div(busy_impressions.place - 1, 50) = busy_blocks.block
  WHERE busy_impressions.place <= busy_blocks.earlier
    AND busy_impressions.place > busy_blocks.earlier - 50
    AND busy_impressions.time_us >= busy_blocks.not_before
),
touches AS (
  SELECT conversion_key, time_us, publisher_number, touch_order FROM light_touches
  UNION ALL
  SELECT conversion_key, time_us, publisher_number, touch_order FROM busy_candidates
  WHERE recency <= (SELECT max(most) FROM (VALUES (50)) AS limits(most))
),
shares AS (
  SELECT conversion_key,
    CAST(max(touch_order) % 20 AS BIGINT) AS publisher_number,
    720720 AS credit_units
  FROM touches GROUP BY conversion_key
)
SELECT conversions.user_id, conversions.conversion_number, conversions.conversion_id,
  conversions.slot, conversions.time_us, conversions.value,
  publishers.publisher_id, publishers.publisher_index,
  CAST(shares.credit_units AS BIGINT) AS credit_units
FROM shares
JOIN clean_conversions AS conversions ON conversions.conversion_key = shares.conversion_key
JOIN publisher_names AS publishers
  ON publishers.publisher_number = shares.publisher_number
WHERE shares.credit_units > 0
