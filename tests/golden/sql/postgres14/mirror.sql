-- all sent
DELETE FROM "a-b"."or`der""] 🙂" AS "t" USING "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND "b"."_delete"
UPDATE "a-b"."or`der""] 🙂" AS "t" SET "a`""]" = "b"."a`""]", "select" = "b"."select", "at's" = "b"."at's", "clock" = "b"."clock", "_unsent_1" = "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND NOT "b"."_delete"
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "b"."a`""]", "b"."select", "b"."at's", "b"."clock", "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE "r"."a`""]" = "b"."a`""]" AND "r"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint))))

-- unsent
-- target:row-missing if there is a row
SELECT "b"."a`""]", "b"."at's" FROM "a-b"."b" AS "b" WHERE ("b"."_unsent_1_" OR "b"."_unsent_3") AND NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE "b"."a`""]" = "r"."a`""]" AND "b"."at's" IS NOT DISTINCT FROM "r"."at's" AND ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint)))) LIMIT 1
DELETE FROM "a-b"."or`der""] 🙂" AS "t" USING "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND "b"."_delete"
UPDATE "a-b"."or`der""] 🙂" AS "t" SET "a`""]" = "b"."a`""]", "select" = CASE WHEN "b"."_unsent_1_" THEN "t"."select" ELSE "b"."select" END, "at's" = "b"."at's", "clock" = CASE WHEN "b"."_unsent_3" THEN "t"."clock" ELSE "b"."clock" END, "_unsent_1" = "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND NOT "b"."_delete"
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "b"."a`""]", "b"."select", "b"."at's", "b"."clock", "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE "r"."a`""]" = "b"."a`""]" AND "r"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint))))

-- from other keys
-- target:row-missing if there is a row
SELECT "b"."a`""]", "b"."at's" FROM "a-b"."b" AS "b" WHERE ("b"."_unsent_1_" OR "b"."_unsent_3") AND NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE CASE WHEN "b"."_is_moved" THEN "b"."_origin_0" ELSE "b"."a`""]" END = "r"."a`""]" AND CASE WHEN "b"."_is_moved" THEN "b"."_origin_1" ELSE "b"."at's" END IS NOT DISTINCT FROM "r"."at's" AND ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint)))) LIMIT 1
UPDATE "a-b"."b" AS "b" SET "select" = CASE WHEN "b"."_unsent_1_" THEN "o"."select" ELSE "b"."select" END, "clock" = CASE WHEN "b"."_unsent_3" THEN "o"."clock" ELSE "b"."clock" END FROM (SELECT "a`""]", "at's", "select", "clock" FROM "a-b"."or`der""] 🙂" AS "r" WHERE ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint)))) AS "o" WHERE "b"."_is_moved" AND "b"."_origin_0" = "o"."a`""]" AND "b"."_origin_1" IS NOT DISTINCT FROM "o"."at's"
DELETE FROM "a-b"."or`der""] 🙂" AS "t" USING "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND "b"."_delete"
UPDATE "a-b"."or`der""] 🙂" AS "t" SET "a`""]" = "b"."a`""]", "select" = CASE WHEN "b"."_unsent_1_" AND NOT "b"."_is_moved" THEN "t"."select" ELSE "b"."select" END, "at's" = "b"."at's", "clock" = CASE WHEN "b"."_unsent_3" AND NOT "b"."_is_moved" THEN "t"."clock" ELSE "b"."clock" END, "_unsent_1" = "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("t"."a`""]" <= CAST(5 AS bigint) AND ("t"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "t"."a`""]" >= CAST(9 AS bigint) AND ("t"."a`""]" = CAST(9 AS bigint))) AND NOT "b"."_delete"
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "b"."a`""]", "b"."select", "b"."at's", "b"."clock", "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE "r"."a`""]" = "b"."a`""]" AND "r"."at's" IS NOT DISTINCT FROM "b"."at's" AND ("r"."a`""]" <= CAST(5 AS bigint) AND ("r"."a`""]" BETWEEN CAST(1 AS bigint) AND CAST(5 AS bigint)) OR "r"."a`""]" >= CAST(9 AS bigint) AND ("r"."a`""]" = CAST(9 AS bigint))))

-- keys listed
DELETE FROM "a-b"."or`der""] 🙂" AS "t" USING "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND "t"."a`""]" IN (CAST(1 AS bigint), CAST(5 AS bigint)) AND "b"."_delete"
UPDATE "a-b"."or`der""] 🙂" AS "t" SET "a`""]" = "b"."a`""]", "select" = "b"."select", "at's" = "b"."at's", "clock" = "b"."clock", "_unsent_1" = "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE "t"."a`""]" = "b"."a`""]" AND "t"."at's" IS NOT DISTINCT FROM "b"."at's" AND "t"."a`""]" IN (CAST(1 AS bigint), CAST(5 AS bigint)) AND NOT "b"."_delete"
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "b"."a`""]", "b"."select", "b"."at's", "b"."clock", "b"."_unsent_1" FROM "a-b"."b" AS "b" WHERE NOT "b"."_delete" AND NOT EXISTS(SELECT 1 FROM "a-b"."or`der""] 🙂" AS "r" WHERE "r"."a`""]" = "b"."a`""]" AND "r"."at's" IS NOT DISTINCT FROM "b"."at's" AND "r"."a`""]" IN (CAST(1 AS bigint), CAST(5 AS bigint)))

-- truncate
-- target:row-missing if there is a row
SELECT "b"."a`""]", "b"."at's" FROM "a-b"."b" AS "b" WHERE ("b"."_unsent_1_" OR "b"."_unsent_3") AND NOT "b"."_delete" LIMIT 1
DELETE FROM "a-b"."or`der""] 🙂" WHERE TRUE
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "a`""]", "select", "at's", "clock", "_unsent_1" FROM "a-b"."b" AS "b" WHERE NOT "_delete"

-- truncate alone
DELETE FROM "a-b"."or`der""] 🙂" WHERE TRUE

-- nothing

-- inserts only
INSERT INTO "a-b"."or`der""] 🙂" ("a`""]", "select", "at's", "clock", "_unsent_1") SELECT "a`""]", "select", "at's", "clock", "_unsent_1" FROM "a-b"."b" AS "b"
