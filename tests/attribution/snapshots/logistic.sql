effective AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_effects.effect,
    -131072 + CAST(sum(model_effects.effect) OVER (
      PARTITION BY placed.conversion_key) AS BIGINT) AS log_odds
  FROM placed
  JOIN model_effects_table AS model_effects
    ON model_effects.publisher_index = placed.publisher_index
),
compared AS (
  SELECT conversion_key, publisher_index, names, journey_members,
    least(greatest(log_odds, -1048576), 1048575) + 1048576 AS with_it, least(greatest(log_odds - effect, -1048576), 1048575) + 1048576 AS without_it
  FROM effective
),
chances AS (
  SELECT compared.conversion_key, compared.publisher_index, compared.names,
    compared.journey_members, (upper.low + whole_div(upper.rise * (with_it % 4096), 4096)) AS chance,
    greatest(0, (upper.low + whole_div(upper.rise * (with_it % 4096), 4096)) - (lower.low + whole_div(lower.rise * (without_it % 4096), 4096))) AS lost
  FROM compared
  JOIN model_curve_table AS upper
    ON upper.step = whole_div(compared.with_it, 4096)
  JOIN model_curve_table AS lower
    ON lower.step = whole_div(compared.without_it, 4096)
),
weighed AS (
  SELECT conversion_key, publisher_index, names, journey_members,
    lost * journey_members
      + greatest(0, chance - sum(lost) OVER (PARTITION BY conversion_key)) AS weight
  FROM chances
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
