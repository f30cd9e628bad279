CREATE TABLE `lakehouse`.`a.b`.`or``der 🙂` (`a``b` BIGINT, `select` STRING, `at's` TIMESTAMP, `clock` STRING, `_unsent_1` ARRAY<STRING>, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` DECIMAL(12,2))
USING iceberg
LOCATION '/w/it\'s'
TBLPROPERTIES ('a' = 'b\\c', 'format-version' = '3')
