SELECT
  user_id,
  slot,
  time_us,
  conversion_number,
  cell_index,
  CAST(FLOOR(units * (
    LEAST(value, CAST(50.0 AS FLOAT64)) / CAST(50.0 AS FLOAT64)
  )) AS INT64) AS weight
FROM (
  SELECT
    user_id,
    slot,
    time_us,
    conversion_number,
    publisher_index AS cell_index,
    value,
    CAST(SUM(credit_units) AS INT64) AS units
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
  CAST(FLOOR(units * (
    LEAST(value, CAST(50.0 AS FLOAT64)) / CAST(50.0 AS FLOAT64)
  )) AS INT64) > 0
