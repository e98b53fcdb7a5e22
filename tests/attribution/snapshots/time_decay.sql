decay AS (
  SELECT * FROM (VALUES (0, 1048576), (1, 1037281), (2, 1026107), (3, 1015054), (4, 1004120), (5, 993303), (6, 982604), (7, 972019), (8, 961548), (9, 951191), (10, 940944), (11, 930809), (12, 920782), (13, 910863), (14, 901051), (15, 891345), (16, 881744), (17, 872246), (18, 862850), (19, 853555), (20, 844361), (21, 835265), (22, 826268), (23, 817367), (24, 808563), (25, 799853), (26, 791237), (27, 782714), (28, 774282), (29, 765942), (30, 757691), (31, 749529), (32, 741455), (33, 733468), (34, 725567), (35, 717752), (36, 710020), (37, 702372), (38, 694806), (39, 687321), (40, 679917), (41, 672593), (42, 665348), (43, 658181), (44, 651091), (45, 644078), (46, 637140), (47, 630276), (48, 623487), (49, 616771), (50, 610127), (51, 603555), (52, 597053), (53, 590622), (54, 584260), (55, 577966), (56, 571740), (57, 565581), (58, 559489), (59, 553462), (60, 547500), (61, 541603), (62, 535768), (63, 529997)) AS decay_table(step, weight)
),
aged AS (
  SELECT conversion_key, publisher_number,
    max(time_us) OVER (PARTITION BY conversion_key) - time_us AS age
  FROM touches
),
stepped AS (
  SELECT conversion_key, publisher_number,
    whole_div(age, 604800000000) AS halvings,
    whole_div(age % 604800000000 * 64, 604800000000) AS step
  FROM aged
),
weighed AS (
  SELECT stepped.conversion_key, stepped.publisher_number,
    CAST(sum(CAST(decay.weight AS BIGINT) >> CAST(least(halvings, 21) AS INT))
      AS BIGINT) AS weight
  FROM stepped JOIN decay ON decay.step = stepped.step
  GROUP BY stepped.conversion_key, stepped.publisher_number
),
journeys AS (
  SELECT conversion_key, publisher_number, weight,
    sum(weight) OVER (PARTITION BY conversion_key) AS journey_weight
  FROM weighed
),
shares AS (
  SELECT conversion_key, publisher_number,
    whole_div(720720 * weight, journey_weight) AS credit_units
  FROM journeys
)
