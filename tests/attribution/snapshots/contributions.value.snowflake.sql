SELECT
  user_id,
  slot,
  time_us,
  conversion_number,
  cell_index,
  CAST(FLOOR(
    units * (
      LEAST_IGNORE_NULLS(value, CAST(50.0 AS DOUBLE)) / CAST(50.0 AS DOUBLE)
    )
  ) AS BIGINT) AS weight
FROM (
  SELECT
    user_id,
    slot,
    time_us,
    conversion_number,
    publisher_index AS cell_index,
    value,
    CAST(SUM(credit_units) AS BIGINT) AS units
  FROM credits
  GROUP BY
    user_id,
    slot,
    time_us,
    conversion_number,
    publisher_index,
    value
) AS by_cell
WHERE
  CAST(FLOOR(
    units * (
      LEAST_IGNORE_NULLS(value, CAST(50.0 AS DOUBLE)) / CAST(50.0 AS DOUBLE)
    )
  ) AS BIGINT) > 0
