coalitions AS (
  SELECT conversion_key, CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) AS mask
  FROM placed GROUP BY conversion_key
),
divided AS (
  SELECT members.conversion_key, members.publisher_index, max(members.names) AS names,
    whole_div(CAST(sum(model_units.units) AS BIGINT), max(1)) AS units
  FROM placed AS members
  JOIN coalitions ON coalitions.conversion_key = members.conversion_key
    
  JOIN model_units_table AS model_units ON model_units.mask = coalitions.mask
    AND model_units.publisher_index = members.publisher_index
  GROUP BY members.conversion_key, members.publisher_index
)
