MERGE INTO `lakehouse`.`a.b`.`or``der 🙂` AS t
USING (SELECT b.`a``b`, b.`select`, b.`at's`, date_format(timestamp_micros(b.`clock`), 'HH:mm:ss.SSSSSS') AS `clock`, b.`_unsent_1`, b.`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, b.`_delete`, (coalesce((CAST(conv(hex(substring(b.`_unsent`, 1, 1)), 16, 10) AS INT) & 2) <> 0, FALSE)) AS `_unsent_1_` FROM `b` AS b) AS s
ON t.`a``b` = s.`a``b`
  AND (t.`a``b` <= CAST(5 AS BIGINT) AND (t.`a``b` BETWEEN CAST(1 AS BIGINT) AND CAST(5 AS BIGINT)) OR t.`a``b` >= CAST(9 AS BIGINT) AND (t.`a``b` = CAST(9 AS BIGINT)))
WHEN MATCHED AND s.`_delete` THEN DELETE
WHEN MATCHED THEN UPDATE SET `a``b` = s.`a``b`, `select` = CASE WHEN s.`_unsent_1_` THEN t.`select` ELSE s.`select` END, `at's` = s.`at's`, `clock` = s.`clock`, `_unsent_1` = s.`_unsent_1`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` = s.`xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`
WHEN NOT MATCHED AND NOT s.`_delete` THEN INSERT (`a``b`, `select`, `at's`, `clock`, `_unsent_1`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`) VALUES (`a``b`, CASE WHEN s.`_unsent_1_` THEN CAST(raise_error('replicator: row missing') AS STRING) ELSE `select` END, `at's`, `clock`, `_unsent_1`, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`)
