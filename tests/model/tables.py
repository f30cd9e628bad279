"""The adversary's further tables, as they are made on PostgreSQL: one in each mode, one without a
key, one with a row filter, one whose rows may not fit, and one whose schema changes. Triggers keep
what happens to those that keep the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.model.past import Change
from tests.servers import Database

KEYS = {"accounts": "id", "ledger": "day", "notes": "id"}
"""The tables whose every change is noted, and the column whose value tells a row."""
MODES = {"softly": "soft_delete", "stages": "history", "changes": "append"}
FURTHER = (*MODES, "visits", "picked", "odd", "altered")
CHOICES: Mapping[str, Mapping[str, str]] = {
    "picked": {"filter": "n < 50"},
    "odd": {"unsupported": "quarantine"},
}
ROWS = 40
PAST = """
CREATE TABLE history.images (
  n bigserial PRIMARY KEY, tab text, op int, transaction bigint, old bigint, new bigint, image jsonb);
CREATE FUNCTION history.keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO history.images (tab, op, transaction) VALUES (TG_TABLE_NAME, 3, txid_current());
    RETURN NULL;
  END IF;
  INSERT INTO history.images (tab, op, transaction, old, new, image) VALUES (
    TG_TABLE_NAME, CASE TG_OP WHEN 'INSERT' THEN 0 WHEN 'UPDATE' THEN 1 ELSE 2 END, txid_current(),
    CASE WHEN TG_OP <> 'INSERT' THEN (to_jsonb(OLD) ->> 'id')::bigint END,
    CASE WHEN TG_OP <> 'DELETE' THEN (to_jsonb(NEW) ->> 'id')::bigint END,
    CASE WHEN TG_OP <> 'DELETE' THEN
      to_jsonb(NEW) || jsonb_build_object('big', encode(sha256(convert_to(to_jsonb(NEW) ->> 'big', 'UTF8')), 'hex')) END);
  RETURN NULL;
END $$;
"""  # noqa: E501
KEPT = """
CREATE TABLE shop.{table} (id bigint PRIMARY KEY, version bigint, n int, big text, tags text[]);
ALTER TABLE shop.{table} ALTER big SET STORAGE EXTERNAL;
CREATE TRIGGER past_rows AFTER INSERT OR UPDATE OR DELETE ON shop.{table}
  FOR EACH ROW EXECUTE FUNCTION history.keep();
CREATE TRIGGER past_truncates AFTER TRUNCATE ON shop.{table} FOR EACH STATEMENT EXECUTE FUNCTION history.keep();
INSERT INTO shop.{table} SELECT i, nextval('shop.versions'), 0, repeat(md5(i::text), 100), ARRAY['a', NULL]
FROM generate_series(1, {rows}) i;
"""  # noqa: E501
ALTERED = (
    "CREATE TABLE shop.altered (id bigint PRIMARY KEY, version bigint, v text, n int, code "
    "varchar(10));"
)
FILL_ALTERED = """
INSERT INTO shop.altered (id, version, v) SELECT i, nextval('shop.versions'), 'v' FROM generate_series(1, 200) i;
"""  # noqa: E501
REST = """
CREATE TABLE shop.visits (page text, n int, big text, at timestamptz, tags text[]);
ALTER TABLE shop.visits ALTER big SET STORAGE EXTERNAL;
ALTER TABLE shop.visits REPLICA IDENTITY FULL;
INSERT INTO shop.visits
SELECT 'p' || i % 20, nullif(i % 3, 0), repeat(md5((i % 5)::text), 100), '2026-01-01', ARRAY['a', NULL]
FROM generate_series(1, 300) i;
CREATE TABLE shop.picked (id bigint PRIMARY KEY, version bigint, n int, big text);
ALTER TABLE shop.picked ALTER big SET STORAGE EXTERNAL;
INSERT INTO shop.picked SELECT i, nextval('shop.versions'), i % 100, repeat(md5(i::text), 100)
FROM generate_series(1, 200) i;
CREATE TABLE shop.odd (id int PRIMARY KEY, version bigint, at timestamptz, v text);
INSERT INTO shop.odd SELECT i, nextval('shop.versions'), '2026-01-01', 'v' FROM generate_series(1, 100) i;
"""  # noqa: E501
_IMAGES = """
SELECT n, transaction, op, old, new, image FROM history.images WHERE tab = %s AND n > %s ORDER BY n
"""


def make_further(database: Database) -> None:
    """The tables with their rows; `history` and `shop` are there."""
    database.execute(PAST)
    for table in MODES:
        database.execute(KEPT.format(table=table, rows=ROWS))
    database.execute(REST + ALTERED + FILL_ALTERED)


def changes_since(database: Database, table: str, number: int) -> list[Change]:
    """What happened to a table that keeps the past, after that number."""
    rows: list[Any] = database.execute(_IMAGES, [table, number])
    return [Change(*row) for row in rows]
