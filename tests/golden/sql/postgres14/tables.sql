CREATE TABLE IF NOT EXISTS "a-b"."or`der""] 🙂" ("a`""]" bigint, "select" text, "at's" timestamptz, "clock" time, "_unsent_1" numeric(12, 2))
ALTER TABLE "a-b"."or`der""] 🙂" ADD COLUMN "select" numeric(20, 2)
ALTER TABLE "a-b"."or`der""] 🙂" DROP COLUMN "select"
ALTER TABLE "a-b"."or`der""] 🙂" RENAME COLUMN "select" TO "from"
ALTER TABLE "a-b"."or`der""] 🙂" ALTER COLUMN "select" SET DATA TYPE numeric(20, 2)
ALTER TABLE "a-b"."or`der""] 🙂" RENAME TO "b"
TRUNCATE TABLE "a-b"."or`der""] 🙂"
DROP TABLE IF EXISTS "a-b"."or`der""] 🙂"
UPDATE "a-b"."or`der""] 🙂" SET "select" = 'it''s \ 
 🙂' WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = TRUE WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST(-5 AS bigint) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST(1000 AS numeric(12, 2)) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('0.1' AS double precision) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = decode('00ff', 'hex') WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-02-29' AS date) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('01:02:03.000000' AS time) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-01-01 00:00:00.000000' AS timestamp) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = CAST('2024-01-01 00:00:00.000000+00:00' AS timestamptz) WHERE TRUE
UPDATE "a-b"."or`der""] 🙂" SET "select" = NULL WHERE TRUE
