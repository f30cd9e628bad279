CREATE OR REPLACE TABLE delta.`/w/t`
USING delta
TBLPROPERTIES ('a' = 'b')
AS SELECT * FROM delta.`/w/s`
