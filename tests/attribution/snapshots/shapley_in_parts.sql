parted AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_parts.part
  FROM placed
  JOIN model_parts_table AS model_parts ON model_parts.part < CASE WHEN journey_members > 6 THEN journey_members ELSE 1 END
  WHERE (placed.place - model_parts.part + placed.journey_members) % placed.journey_members
    < 6
),
coalitions AS (
  SELECT conversion_key, part, CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) AS mask
  FROM parted GROUP BY conversion_key, part
),
divided AS (
  SELECT members.conversion_key, members.publisher_index, max(members.names) AS names,
    whole_div(CAST(sum(model_units.units) AS BIGINT), max(CASE WHEN journey_members > 6 THEN journey_members ELSE 1 END)) AS units
  FROM parted AS members
  JOIN coalitions ON coalitions.conversion_key = members.conversion_key
    AND coalitions.part = members.part
  JOIN model_units_table AS model_units ON model_units.mask = coalitions.mask
    AND model_units.publisher_index = members.publisher_index
  GROUP BY members.conversion_key, members.publisher_index
)
