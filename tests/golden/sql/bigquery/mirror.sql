-- all sent
MERGE INTO `a-b`.`or\`der"] 🙂` AS `t` USING `a-b`.`b` AS `s` ON `t`.`a\`"]` = `s`.`a\`"]` AND (`t`.`at's` = `s`.`at's` OR `t`.`at's` IS NULL AND `s`.`at's` IS NULL) AND (`t`.`a\`"]` <= CAST(5 AS INT64) AND (`t`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `t`.`a\`"]` >= CAST(9 AS INT64) AND (`t`.`a\`"]` = CAST(9 AS INT64))) WHEN MATCHED AND `s`.`_delete` THEN DELETE WHEN MATCHED THEN UPDATE SET `a\`"]` = `s`.`a\`"]`, `select` = `s`.`select`, `at's` = `s`.`at's`, `clock` = `s`.`clock`, `_unsent_1` = `s`.`_unsent_1` WHEN NOT MATCHED AND NOT `s`.`_delete` THEN INSERT (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) VALUES (`s`.`a\`"]`, `s`.`select`, `s`.`at's`, `s`.`clock`, `s`.`_unsent_1`)

-- unsent
-- target:row-missing if there is a row
SELECT `b`.`a\`"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or\`der"] 🙂` AS `r` WHERE `b`.`a\`"]` = `r`.`a\`"]` AND (`b`.`at's` = `r`.`at's` OR `b`.`at's` IS NULL AND `r`.`at's` IS NULL) AND (`r`.`a\`"]` <= CAST(5 AS INT64) AND (`r`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `r`.`a\`"]` >= CAST(9 AS INT64) AND (`r`.`a\`"]` = CAST(9 AS INT64)))) LIMIT 1
MERGE INTO `a-b`.`or\`der"] 🙂` AS `t` USING `a-b`.`b` AS `s` ON `t`.`a\`"]` = `s`.`a\`"]` AND (`t`.`at's` = `s`.`at's` OR `t`.`at's` IS NULL AND `s`.`at's` IS NULL) AND (`t`.`a\`"]` <= CAST(5 AS INT64) AND (`t`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `t`.`a\`"]` >= CAST(9 AS INT64) AND (`t`.`a\`"]` = CAST(9 AS INT64))) WHEN MATCHED AND `s`.`_delete` THEN DELETE WHEN MATCHED THEN UPDATE SET `a\`"]` = `s`.`a\`"]`, `select` = CASE WHEN `s`.`_unsent_1_` THEN `t`.`select` ELSE `s`.`select` END, `at's` = `s`.`at's`, `clock` = CASE WHEN `s`.`_unsent_3` THEN `t`.`clock` ELSE `s`.`clock` END, `_unsent_1` = `s`.`_unsent_1` WHEN NOT MATCHED AND NOT `s`.`_delete` THEN INSERT (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) VALUES (`s`.`a\`"]`, `s`.`select`, `s`.`at's`, `s`.`clock`, `s`.`_unsent_1`)

-- from other keys
-- target:row-missing if there is a row
SELECT `b`.`a\`"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or\`der"] 🙂` AS `r` WHERE CASE WHEN `b`.`_is_moved` THEN `b`.`_origin_0` ELSE `b`.`a\`"]` END = `r`.`a\`"]` AND (CASE WHEN `b`.`_is_moved` THEN `b`.`_origin_1` ELSE `b`.`at's` END = `r`.`at's` OR CASE WHEN `b`.`_is_moved` THEN `b`.`_origin_1` ELSE `b`.`at's` END IS NULL AND `r`.`at's` IS NULL) AND (`r`.`a\`"]` <= CAST(5 AS INT64) AND (`r`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `r`.`a\`"]` >= CAST(9 AS INT64) AND (`r`.`a\`"]` = CAST(9 AS INT64)))) LIMIT 1
MERGE INTO `a-b`.`or\`der"] 🙂` AS `t` USING (SELECT `b`.`a\`"]`, CASE WHEN `b`.`_is_moved` AND `b`.`_unsent_1_` THEN `o`.`select` ELSE `b`.`select` END AS `select`, `b`.`at's`, CASE WHEN `b`.`_is_moved` AND `b`.`_unsent_3` THEN `o`.`clock` ELSE `b`.`clock` END AS `clock`, `b`.`_unsent_1`, `b`.`_delete`, `b`.`_unsent_1_` AND NOT `b`.`_is_moved` AS `_unsent_1_`, `b`.`_unsent_3` AND NOT `b`.`_is_moved` AS `_unsent_3` FROM `a-b`.`b` AS `b` LEFT JOIN (SELECT `a\`"]`, `at's`, `select`, `clock`, TRUE AS `_found` FROM `a-b`.`or\`der"] 🙂` AS `r` WHERE (`r`.`a\`"]` <= CAST(5 AS INT64) AND (`r`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `r`.`a\`"]` >= CAST(9 AS INT64) AND (`r`.`a\`"]` = CAST(9 AS INT64)))) AS `o` ON `b`.`_is_moved` AND `b`.`_origin_0` = `o`.`a\`"]` AND (`b`.`_origin_1` = `o`.`at's` OR `b`.`_origin_1` IS NULL AND `o`.`at's` IS NULL)) AS `s` ON `t`.`a\`"]` = `s`.`a\`"]` AND (`t`.`at's` = `s`.`at's` OR `t`.`at's` IS NULL AND `s`.`at's` IS NULL) AND (`t`.`a\`"]` <= CAST(5 AS INT64) AND (`t`.`a\`"]` BETWEEN CAST(1 AS INT64) AND CAST(5 AS INT64)) OR `t`.`a\`"]` >= CAST(9 AS INT64) AND (`t`.`a\`"]` = CAST(9 AS INT64))) WHEN MATCHED AND `s`.`_delete` THEN DELETE WHEN MATCHED THEN UPDATE SET `a\`"]` = `s`.`a\`"]`, `select` = CASE WHEN `s`.`_unsent_1_` THEN `t`.`select` ELSE `s`.`select` END, `at's` = `s`.`at's`, `clock` = CASE WHEN `s`.`_unsent_3` THEN `t`.`clock` ELSE `s`.`clock` END, `_unsent_1` = `s`.`_unsent_1` WHEN NOT MATCHED AND NOT `s`.`_delete` THEN INSERT (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) VALUES (`s`.`a\`"]`, `s`.`select`, `s`.`at's`, `s`.`clock`, `s`.`_unsent_1`)

-- keys listed
MERGE INTO `a-b`.`or\`der"] 🙂` AS `t` USING `a-b`.`b` AS `s` ON `t`.`a\`"]` = `s`.`a\`"]` AND (`t`.`at's` = `s`.`at's` OR `t`.`at's` IS NULL AND `s`.`at's` IS NULL) AND `t`.`a\`"]` IN (CAST(1 AS INT64), CAST(5 AS INT64)) WHEN MATCHED AND `s`.`_delete` THEN DELETE WHEN MATCHED THEN UPDATE SET `a\`"]` = `s`.`a\`"]`, `select` = `s`.`select`, `at's` = `s`.`at's`, `clock` = `s`.`clock`, `_unsent_1` = `s`.`_unsent_1` WHEN NOT MATCHED AND NOT `s`.`_delete` THEN INSERT (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) VALUES (`s`.`a\`"]`, `s`.`select`, `s`.`at's`, `s`.`clock`, `s`.`_unsent_1`)

-- truncate
-- target:row-missing if there is a row
SELECT `b`.`a\`"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` LIMIT 1
DELETE FROM `a-b`.`or\`der"] 🙂` WHERE TRUE
INSERT INTO `a-b`.`or\`der"] 🙂` (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `a\`"]`, `select`, `at's`, `clock`, `_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `_delete`

-- truncate alone
DELETE FROM `a-b`.`or\`der"] 🙂` WHERE TRUE

-- nothing

-- inserts only
INSERT INTO `a-b`.`or\`der"] 🙂` (`a\`"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `a\`"]`, `select`, `at's`, `clock`, `_unsent_1` FROM `a-b`.`b` AS `b`
