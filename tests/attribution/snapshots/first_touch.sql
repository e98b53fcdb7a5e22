shares AS (
  SELECT conversion_key,
    CAST(min(touch_order) % 20 AS BIGINT) AS publisher_number,
    720720 AS credit_units
  FROM touches GROUP BY conversion_key
)
