fit_members AS (
  SELECT DISTINCT user_key, converted, publisher_index FROM fit_touches
),
fit_cells AS (
  SELECT one.user_key,
    2 * (1 + CAST(one.publisher_index AS BIGINT) * 4 + other.publisher_index)
      + one.converted AS cell,
    1 AS amount
  FROM fit_members AS one
  JOIN fit_members AS other
    ON other.user_key = one.user_key AND other.publisher_index >= one.publisher_index
  UNION ALL
  SELECT DISTINCT user_key, CAST(converted AS BIGINT) AS cell, 1 AS amount FROM fit_touches
)
