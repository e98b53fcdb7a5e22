joining AS (
  SELECT conversion_key, publisher_index, names, place, journey_members,
    CAST(1 AS BIGINT) << publisher_index AS own,
    CAST(sum(CAST(1 AS BIGINT) << publisher_index) OVER (
      PARTITION BY conversion_key ORDER BY place
      ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS BIGINT) AS mask
  FROM placed
),
weighed AS (
  SELECT joining.conversion_key, joining.publisher_index, joining.names, joining.journey_members,
    greatest(0, after.rate - before.rate) AS weight,
    CASE WHEN joining.place = joining.journey_members - 1 THEN after.rate ELSE 0 END AS reached
  FROM joining
  JOIN model_coalition_rates_table AS after ON after.mask = joining.mask
  JOIN model_coalition_rates_table AS before ON before.mask = joining.mask - joining.own
),
summed AS (
  SELECT conversion_key, publisher_index, names, weight, journey_members,
    greatest(sum(weight) OVER (PARTITION BY conversion_key),
      max(reached) OVER (PARTITION BY conversion_key)) AS whole
  FROM weighed
),
divided AS (
  SELECT conversion_key, publisher_index, names,
    CASE WHEN whole = 0 THEN whole_div(720720, journey_members)
      ELSE whole_div(720720 * weight, whole) END AS units
  FROM summed
)
