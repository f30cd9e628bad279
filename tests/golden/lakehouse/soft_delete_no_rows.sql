MERGE INTO `lakehouse`.`a.b`.`or``der 🙂` AS t
USING (SELECT `a``b` FROM `lakehouse`.`a.b`.`or``der 🙂` WHERE FALSE) AS s
ON t.`a``b` = s.`a``b`
WHEN NOT MATCHED BY SOURCE AND NOT t.`_is_deleted` THEN UPDATE SET `_is_deleted` = TRUE, `_deleted_at` = TIMESTAMP '2024-01-01 00:00:00.000000Z'
