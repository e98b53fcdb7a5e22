fit_runs AS (
  SELECT user_key, converted, publisher_index, touch_order,
    lag(publisher_index) OVER (PARTITION BY user_key ORDER BY touch_order) AS before
  FROM fit_touches
),
fit_stages AS (
  SELECT user_key, converted, publisher_index, touch_order FROM fit_runs
  WHERE before IS NULL OR before <> publisher_index
),
fit_states AS (
  SELECT user_key, converted,
    lead(touch_order) OVER (PARTITION BY user_key ORDER BY touch_order) IS NULL AS is_last,
    CAST(publisher_index + 1 AS BIGINT) * 1 AS state,
    CAST(coalesce(lag(publisher_index, 1) OVER (PARTITION BY user_key ORDER BY touch_order) + 1, 0) AS BIGINT) * 1 AS state_before
  FROM fit_stages
),
fit_steps AS (
  SELECT user_key, 2 * (state_before * 5 + state) AS cell FROM fit_states
  UNION ALL
  SELECT user_key, 2 * state * 5 + converted AS cell FROM fit_states WHERE is_last
),
fit_cells AS (
  SELECT user_key, cell, count(*) AS amount FROM fit_steps GROUP BY user_key, cell
)
