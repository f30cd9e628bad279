MERGE INTO `lakehouse`.`a.b`.`or``der 🙂` AS t
USING (SELECT b.`a``b` AS `a``b`, b.`select` AS `select`, b.`at's` AS `at's`, date_format(timestamp_micros(b.`clock`), 'HH:mm:ss.SSSSSS') AS `clock`, b.`_unsent_1` AS `_unsent_1`, b.`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` AS `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, (coalesce((CAST(conv(hex(substring(b.`_unsent`, 1, 1)), 16, 10) AS INT) & 2) <> 0, FALSE)) AS `_unsent_1_`, b.`_delete` AS `_delete` FROM `b` AS b) AS s
ON t.`a``b` = s.`a``b`
  AND (t.`a``b` <= CAST(5 AS BIGINT) AND (t.`a``b` BETWEEN CAST(1 AS BIGINT) AND CAST(5 AS BIGINT)) OR t.`a``b` >= CAST(9 AS BIGINT) AND (t.`a``b` = CAST(9 AS BIGINT)))
WHEN MATCHED AND s.`_delete` THEN DELETE
WHEN MATCHED THEN UPDATE SET t.`a``b` = s.`a``b`, t.`select` = CASE WHEN s.`_unsent_1_` THEN t.`select` ELSE s.`select` END, t.`at's` = s.`at's`, t.`clock` = s.`clock`, t.`_unsent_1` = s.`_unsent_1`, t.`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` = s.`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`
