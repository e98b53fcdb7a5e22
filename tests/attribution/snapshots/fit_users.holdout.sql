WITH fit_converted AS (
  SELECT user_id, min(time_us) AS converted_us FROM clean_conversions AS conversions
  GROUP BY user_id
),
fit_touched AS (
  SELECT user_id, max(time_us) AS touched_us, count(*) AS touches
  FROM clean_impressions AS impressions GROUP BY user_id
),
fit_ends AS (
  SELECT coalesce(fit_touched.user_id, fit_converted.user_id) AS user_id,
    coalesce(converted_us, touched_us + 1) AS end_us,
    CASE WHEN converted_us IS NULL THEN 0 ELSE 1 END AS converted,
    coalesce(touches, 0) > 50 AS is_busy
  FROM fit_touched FULL JOIN fit_converted ON fit_converted.user_id = fit_touched.user_id
),
fit_everybody AS (
  SELECT coalesce(fit_ends.user_id, held.user_id) AS user_id, end_us, coalesce(converted, 0) AS converted, is_busy,
    held.user_id IS NOT NULL AS is_held_out
  FROM fit_ends FULL JOIN holdout_users AS held ON held.user_id = fit_ends.user_id
)
SELECT * FROM fit_everybody
WHERE is_held_out OR converted = 1 OR end_us > 1774566000000000
