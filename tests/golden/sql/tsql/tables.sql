IF NOT EXISTS (SELECT * FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 'or`der"] 🙂' AND TABLE_SCHEMA = 'a-b') EXEC('CREATE TABLE [a-b].[or`der"]] 🙂] ([a`"]]] BIGINT, [select] NVARCHAR(400) COLLATE Latin1_General_100_BIN2, [at''s] DATETIMEOFFSET(6), [clock] TIME(6), [_unsent_1] DECIMAL(12, 2))')
ALTER TABLE [a-b].[or`der"]] 🙂] ADD [select] DECIMAL(20, 2)
ALTER TABLE [a-b].[or`der"]] 🙂] DROP COLUMN [select]
EXEC sp_rename N'[a-b].[or`der"]] 🙂].[select]', N'from', N'COLUMN'
ALTER TABLE [a-b].[or`der"]] 🙂] ALTER COLUMN [select] DECIMAL(20, 2)
EXEC sp_rename '[a-b].[or`der"]] 🙂]', 'b'
TRUNCATE TABLE [a-b].[or`der"]] 🙂]
DROP TABLE IF EXISTS [a-b].[or`der"]] 🙂]
UPDATE [a-b].[or`der"]] 🙂] SET [select] = N'it''s \ 
 🙂' WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST(1 AS BIT) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST(-5 AS BIGINT) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST(1000 AS DECIMAL(12, 2)) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST(N'0.1' AS FLOAT(53)) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = 0x00ff WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST('2024-02-29' AS DATE) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST('01:02:03.000000' AS TIME(6)) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST('2024-01-01 00:00:00.000000' AS DATETIME2(6)) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = CAST('2024-01-01 00:00:00.000000+00:00' AS DATETIMEOFFSET(6)) WHERE (1 = 1)
UPDATE [a-b].[or`der"]] 🙂] SET [select] = NULL WHERE (1 = 1)
