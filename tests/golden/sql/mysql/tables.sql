CREATE TABLE IF NOT EXISTS `a-b`.`or``der"] 🙂` (`a``"]` BIGINT, `select` VARCHAR(200) COLLATE utf8mb4_bin, `at's` DATETIME(6), `clock` TIME(6), `_unsent_1` DECIMAL(12, 2))
ALTER TABLE `a-b`.`or``der"] 🙂` ADD COLUMN `select` DECIMAL(20, 2)
ALTER TABLE `a-b`.`or``der"] 🙂` DROP COLUMN `select`
ALTER TABLE `a-b`.`or``der"] 🙂` RENAME COLUMN `select` TO `from`
ALTER TABLE `a-b`.`or``der"] 🙂` MODIFY COLUMN `select` DECIMAL(20, 2)
ALTER TABLE `a-b`.`or``der"] 🙂` RENAME `a-b`.`b`
TRUNCATE TABLE `a-b`.`or``der"] 🙂`
DROP TABLE IF EXISTS `a-b`.`or``der"] 🙂`
UPDATE `a-b`.`or``der"] 🙂` SET `select` = 'it''s \\ \n 🙂' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = TRUE WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = -5 WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = 1000 WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = 0.1 WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = X'00ff' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = DATE '2024-02-29' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = '01:02:03.000000' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = TIMESTAMP '2024-01-01 00:00:00.000000' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = TIMESTAMP '2024-01-01 00:00:00.000000' WHERE TRUE
UPDATE `a-b`.`or``der"] 🙂` SET `select` = NULL WHERE TRUE
