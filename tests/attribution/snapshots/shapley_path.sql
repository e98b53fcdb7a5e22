touched AS (
  SELECT DISTINCT conversion_key, publisher_number, 1 AS met FROM touches
),
journeys AS (
  SELECT conversion_key, publisher_number, met,
    sum(met) OVER (PARTITION BY conversion_key) AS journey_met
  FROM touched
),
shares AS (
  SELECT conversion_key, publisher_number,
    whole_div(720720 * met, journey_met) AS credit_units
  FROM journeys
)
