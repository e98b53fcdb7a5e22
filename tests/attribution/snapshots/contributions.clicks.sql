
SELECT user_id, slot, time_us, CAST(1 AS BIGINT) AS conversion_number, publisher_index AS cell_index,
  CAST(count(*) * 720720 AS BIGINT) AS weight
FROM credits AS exposures WHERE is_click
GROUP BY user_id, slot, time_us, publisher_index
