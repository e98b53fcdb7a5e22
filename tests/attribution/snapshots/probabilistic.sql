paired AS (
  SELECT one.conversion_key, one.publisher_index, CAST(sum(model_added.added) AS BIGINT) AS added
  FROM placed AS one
  JOIN placed AS other ON other.conversion_key = one.conversion_key
    AND other.publisher_index <> one.publisher_index
  JOIN model_added_table AS model_added ON model_added.publisher_index = one.publisher_index
    AND model_added.other_index = other.publisher_index
  GROUP BY one.conversion_key, one.publisher_index
),
weighed AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    greatest(0, 2 * (placed.journey_members - 1) * model_rates.rate + coalesce(paired.added, 0))
      AS weight
  FROM placed
  JOIN model_rates_table AS model_rates
    ON model_rates.publisher_index = placed.publisher_index
  LEFT JOIN paired ON paired.conversion_key = placed.conversion_key
    AND paired.publisher_index = placed.publisher_index
),
summed AS (
  SELECT conversion_key, publisher_index, names, weight, journey_members,
    greatest(sum(weight) OVER (PARTITION BY conversion_key),
      max(0) OVER (PARTITION BY conversion_key)) AS whole
  FROM weighed
),
divided AS (
  SELECT conversion_key, publisher_index, names,
    CASE WHEN whole = 0 THEN whole_div(720720, journey_members)
      ELSE whole_div(720720 * weight, whole) END AS units
  FROM summed
)
