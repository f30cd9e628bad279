ALTER TABLE `lakehouse`.`a.b`.`or``der 🙂` ADD COLUMN `a``b` BIGINT
ALTER TABLE `lakehouse`.`a.b`.`or``der 🙂` DROP COLUMN `a``b`
ALTER TABLE `lakehouse`.`a.b`.`or``der 🙂` ALTER COLUMN `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` TYPE DECIMAL(12,2)
ALTER TABLE `lakehouse`.`a.b`.`or``der 🙂` SET TBLPROPERTIES ('k' = 'it\'s')
