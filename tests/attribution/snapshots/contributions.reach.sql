
SELECT user_id, slot, min(time_us) AS time_us, CAST(1 AS BIGINT) AS conversion_number,
  first_sum + whole_div(finest, summed) AS cell_index, CAST(720720 AS BIGINT) AS weight
FROM (
  SELECT user_id, slot, publisher_index AS finest, min(time_us) AS time_us
  FROM credits AS met GROUP BY user_id, slot, publisher_index
) AS met CROSS JOIN (VALUES (0, 2), (1, 1)) AS sums (first_sum, summed)
GROUP BY user_id, slot, first_sum + whole_div(finest, summed)
