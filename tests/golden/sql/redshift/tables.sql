CREATE TABLE IF NOT EXISTS "a-b"."or`der""] 🙂" ("a`""]" BIGINT, "select" VARCHAR(65535), "at's" TIMESTAMPTZ, "clock" TIME, "_unsent_1" DECIMAL(12, 2))
ALTER TABLE "a-b"."or`der""] 🙂" ADD COLUMN "select" DECIMAL(20, 2)
ALTER TABLE "a-b"."or`der""] 🙂" DROP COLUMN "select"
ALTER TABLE "a-b"."or`der""] 🙂" RENAME COLUMN "select" TO "from"
ALTER TABLE "a-b"."or`der""] 🙂" ALTER COLUMN "select" TYPE DECIMAL(20, 2)
ALTER TABLE "a-b"."or`der""] 🙂" RENAME TO "b"
TRUNCATE TABLE "a-b"."or`der""] 🙂"
DROP TABLE IF EXISTS "a-b"."or`der""] 🙂"
UPDATE "a-b"."or`der""] 🙂" SET "select" = 'it\'s \\ \n 🙂' WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = TRUE WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST(-5 AS BIGINT) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST(1000 AS DECIMAL(12, 2)) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('0.1' AS DOUBLE PRECISION) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = FROM_HEX('00ff') WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-02-29' AS DATE) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('01:02:03.000000' AS TIME) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-01-01 00:00:00.000000' AS TIMESTAMP) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-01-01 00:00:00.000000+00:00' AS TIMESTAMPTZ) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = NULL WHERE TRUE
