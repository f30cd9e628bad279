-- all sent
DELETE `t` FROM `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND `b`.`_delete`
UPDATE `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON TRUE SET t.`a``"]` = `b`.`a``"]`, t.`select` = `b`.`select`, t.`at's` = `b`.`at's`, t.`clock` = `b`.`clock`, t.`_unsent_1` = `b`.`_unsent_1` WHERE `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND NOT `b`.`_delete`
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `b`.`a``"]`, `b`.`select`, `b`.`at's`, `b`.`clock`, `b`.`_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE `r`.`a``"]` = `b`.`a``"]` AND `r`.`at's` <=> `b`.`at's` AND (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9)))

-- unsent
-- target:row-missing if there is a row
SELECT `b`.`a``"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE `b`.`a``"]` = `r`.`a``"]` AND `b`.`at's` <=> `r`.`at's` AND (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9))) LIMIT 1
DELETE `t` FROM `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND `b`.`_delete`
UPDATE `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON TRUE SET t.`a``"]` = `b`.`a``"]`, t.`select` = CASE WHEN `b`.`_unsent_1_` THEN `t`.`select` ELSE `b`.`select` END, t.`at's` = `b`.`at's`, t.`clock` = CASE WHEN `b`.`_unsent_3` THEN `t`.`clock` ELSE `b`.`clock` END, t.`_unsent_1` = `b`.`_unsent_1` WHERE `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND NOT `b`.`_delete`
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `b`.`a``"]`, `b`.`select`, `b`.`at's`, `b`.`clock`, `b`.`_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE `r`.`a``"]` = `b`.`a``"]` AND `r`.`at's` <=> `b`.`at's` AND (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9)))

-- from other keys
-- target:row-missing if there is a row
SELECT `b`.`a``"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE CASE WHEN `b`.`_is_moved` THEN `b`.`_origin_0` ELSE `b`.`a``"]` END = `r`.`a``"]` AND CASE WHEN `b`.`_is_moved` THEN `b`.`_origin_1` ELSE `b`.`at's` END <=> `r`.`at's` AND (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9))) LIMIT 1
UPDATE `a-b`.`b` AS `b` JOIN (SELECT `a``"]`, `at's`, `select`, `clock` FROM `a-b`.`or``der"] 🙂` AS `r` WHERE (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9))) AS `o` ON TRUE SET b.`select` = CASE WHEN `b`.`_unsent_1_` THEN `o`.`select` ELSE `b`.`select` END, b.`clock` = CASE WHEN `b`.`_unsent_3` THEN `o`.`clock` ELSE `b`.`clock` END WHERE `b`.`_is_moved` AND `b`.`_origin_0` = `o`.`a``"]` AND `b`.`_origin_1` <=> `o`.`at's`
DELETE `t` FROM `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND `b`.`_delete`
UPDATE `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON TRUE SET t.`a``"]` = `b`.`a``"]`, t.`select` = CASE WHEN `b`.`_unsent_1_` AND NOT `b`.`_is_moved` THEN `t`.`select` ELSE `b`.`select` END, t.`at's` = `b`.`at's`, t.`clock` = CASE WHEN `b`.`_unsent_3` AND NOT `b`.`_is_moved` THEN `t`.`clock` ELSE `b`.`clock` END, t.`_unsent_1` = `b`.`_unsent_1` WHERE `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND (`t`.`a``"]` <= 5 AND (`t`.`a``"]` BETWEEN 1 AND 5) OR `t`.`a``"]` >= 9 AND (`t`.`a``"]` = 9)) AND NOT `b`.`_delete`
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `b`.`a``"]`, `b`.`select`, `b`.`at's`, `b`.`clock`, `b`.`_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE `r`.`a``"]` = `b`.`a``"]` AND `r`.`at's` <=> `b`.`at's` AND (`r`.`a``"]` <= 5 AND (`r`.`a``"]` BETWEEN 1 AND 5) OR `r`.`a``"]` >= 9 AND (`r`.`a``"]` = 9)))

-- keys listed
DELETE `t` FROM `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND `t`.`a``"]` IN (1, 5) AND `b`.`_delete`
UPDATE `a-b`.`or``der"] 🙂` AS `t` JOIN `a-b`.`b` AS `b` ON TRUE SET t.`a``"]` = `b`.`a``"]`, t.`select` = `b`.`select`, t.`at's` = `b`.`at's`, t.`clock` = `b`.`clock`, t.`_unsent_1` = `b`.`_unsent_1` WHERE `t`.`a``"]` = `b`.`a``"]` AND `t`.`at's` <=> `b`.`at's` AND `t`.`a``"]` IN (1, 5) AND NOT `b`.`_delete`
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `b`.`a``"]`, `b`.`select`, `b`.`at's`, `b`.`clock`, `b`.`_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `b`.`_delete` AND NOT EXISTS(SELECT 1 FROM `a-b`.`or``der"] 🙂` AS `r` WHERE `r`.`a``"]` = `b`.`a``"]` AND `r`.`at's` <=> `b`.`at's` AND `r`.`a``"]` IN (1, 5))

-- truncate
-- target:row-missing if there is a row
SELECT `b`.`a``"]`, `b`.`at's` FROM `a-b`.`b` AS `b` WHERE (`b`.`_unsent_1_` OR `b`.`_unsent_3`) AND NOT `b`.`_delete` LIMIT 1
DELETE FROM `a-b`.`or``der"] 🙂` WHERE TRUE
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `a``"]`, `select`, `at's`, `clock`, `_unsent_1` FROM `a-b`.`b` AS `b` WHERE NOT `_delete`

-- truncate alone
DELETE FROM `a-b`.`or``der"] 🙂` WHERE TRUE

-- nothing

-- inserts only
INSERT INTO `a-b`.`or``der"] 🙂` (`a``"]`, `select`, `at's`, `clock`, `_unsent_1`) SELECT `a``"]`, `select`, `at's`, `clock`, `_unsent_1` FROM `a-b`.`b` AS `b`
