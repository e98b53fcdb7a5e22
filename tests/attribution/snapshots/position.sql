placed AS (
  SELECT conversion_key, publisher_number,
    row_number() OVER (PARTITION BY conversion_key ORDER BY touch_order) AS place,
    count(*) OVER (PARTITION BY conversion_key) AS journey_touches
  FROM touches
),
counted AS (
  SELECT conversion_key, publisher_number, max(journey_touches) AS journey_touches,
    count(CASE WHEN place = 1 THEN 1 END) AS firsts,
    count(CASE WHEN place = journey_touches THEN 1 END) AS lasts,
    count(*) AS touches
  FROM placed GROUP BY conversion_key, publisher_number
),
shares AS (
  SELECT conversion_key, publisher_number,
    CASE
      WHEN journey_touches = 1 THEN 720720
      WHEN journey_touches = 2 THEN firsts * 360360 + lasts * 360360
      ELSE firsts * 288288 + lasts * 288288
        + whole_div(144144 * (touches - firsts - lasts), journey_touches - 2)
    END AS credit_units
  FROM counted
)
