CREATE TABLE `delta`.`/w/x` (`a``b` BIGINT, `select` STRING, `at's` TIMESTAMP, `clock` STRING, `_unsent_1` ARRAY<STRING>, `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` DECIMAL(12,2))
USING delta
TBLPROPERTIES ('delta.x' = 'true')
