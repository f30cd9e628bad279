MERGE INTO `lakehouse`.`a.b`.`or``der 🙂` AS t
USING (SELECT `a``b` FROM `lakehouse`.`a.b`.`or``der 🙂` WHERE FALSE) AS s
ON t.`a``b` = s.`a``b`
WHEN NOT MATCHED BY SOURCE AND t.`_is_current` THEN UPDATE SET `_valid_to` = greatest(TIMESTAMP '2024-01-01 00:00:00.000000Z', t.`_valid_from`), `_is_current` = FALSE
