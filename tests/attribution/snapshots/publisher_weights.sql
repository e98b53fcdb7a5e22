named AS (
  SELECT touches.conversion_key, touches.publisher_number, publishers.publisher_index,
    min(touches.touch_order) AS first_touch
  FROM touches
  JOIN publisher_names AS publishers ON publishers.publisher_number = touches.publisher_number
  GROUP BY touches.conversion_key, touches.publisher_number, publishers.publisher_index
),
members AS (
  SELECT conversion_key, publisher_index, min(first_touch) AS first_touch, count(*) AS names
  FROM named GROUP BY conversion_key, publisher_index
),
placed AS (
  SELECT conversion_key, publisher_index, names,
    row_number() OVER (PARTITION BY conversion_key ORDER BY first_touch) - 1 AS place,
    count(*) OVER (PARTITION BY conversion_key) AS journey_members
  FROM members
),
weighed AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_weights.weight
  FROM placed
  JOIN model_weights_table AS model_weights
    ON model_weights.publisher_index = placed.publisher_index
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
),
shares AS (
  SELECT named.conversion_key, named.publisher_number,
    whole_div(divided.units, divided.names) AS credit_units
  FROM divided
  JOIN named ON named.conversion_key = divided.conversion_key
    AND named.publisher_index = divided.publisher_index
)
