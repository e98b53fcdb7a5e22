fit_members AS (
  SELECT user_key, converted, publisher_index, row_number() OVER (
      PARTITION BY user_key ORDER BY max(touch_order) DESC) AS recency
  FROM fit_touches GROUP BY user_key, converted, publisher_index
),
fit_cells AS (
  SELECT user_key,
    2 * CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) + converted AS cell, 1 AS amount
  FROM fit_members WHERE recency <= 6
  GROUP BY user_key, converted
)
