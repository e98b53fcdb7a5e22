
SELECT user_id, slot, time_us, conversion_number, cell_index, units AS weight
FROM (
  SELECT user_id, slot, time_us, conversion_number, publisher_index AS cell_index, value,
    CAST(sum(credit_units) AS BIGINT) AS units
  FROM credits
  GROUP BY user_id, slot, time_us, conversion_number, publisher_index, value
) AS by_cell
WHERE units > 0
