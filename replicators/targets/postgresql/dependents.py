"""What hangs on a table beside its rows: read before another table takes its place, and put on that
one. All of it runs in the caller's transaction.

Statements are made by the server (`format`, `pg_get_*def`), while the old table still has its name.
Views keep their own identity and rights: only their query is read anew, by CREATE OR REPLACE VIEW.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.postgres.sql import name
from replicators.targets.postgresql.connections import Connection

Names = tuple[str, ...]

OID = """
SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""

# What can't be put on another table. The old table is filled anew instead of replaced.
BOUND = """
SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM pg_depend d
LEFT JOIN pg_rewrite w ON d.classid = 'pg_rewrite'::regclass AND w.oid = d.objid
LEFT JOIN pg_class v ON v.oid = w.ev_class
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = %(oid)s AND d.deptype = 'n'
  AND NOT coalesce(v.relkind = 'v' AND w.rulename = '_RETURN'
                   AND pg_has_role(v.relowner, 'USAGE'), false)
  AND NOT coalesce(w.ev_class = %(oid)s, false)
  AND NOT EXISTS (SELECT FROM pg_policy p WHERE d.classid = 'pg_policy'::regclass
                  AND p.oid = d.objid AND p.polrelid = %(oid)s)
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE d.classid = 'pg_constraint'::regclass
                  AND k.oid = d.objid AND k.conrelid = %(oid)s)
  AND NOT EXISTS (SELECT FROM pg_trigger t WHERE d.classid = 'pg_trigger'::regclass
                  AND t.oid = d.objid AND t.tgrelid = %(oid)s)
UNION ALL
SELECT pg_describe_object('pg_rewrite'::regclass, w.oid, 0) FROM pg_rewrite w
WHERE w.ev_class = %(oid)s
UNION ALL
SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM pg_depend d JOIN pg_type t ON t.oid = d.refobjid
WHERE d.refclassid = 'pg_type'::regclass AND d.deptype = 'n' AND t.oid IN (
    SELECT reltype FROM pg_class WHERE oid = %(oid)s
    UNION SELECT typarray FROM pg_type JOIN pg_class c ON c.reltype = pg_type.oid
    WHERE c.oid = %(oid)s)
UNION ALL
SELECT pg_describe_object('pg_class'::regclass, i.inhparent, 0) FROM pg_inherits i
JOIN pg_class p ON p.oid = i.inhparent
WHERE i.inhrelid = %(oid)s AND p.relname <> '_replicator_messages'
UNION ALL
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) FROM pg_class c
WHERE c.oid = %(oid)s AND c.relkind <> 'r'
"""

RIGHTS = """
SELECT format('GRANT %%s ON TABLE %%s TO %%s%%s', a.privilege_type, %(table)s::text,
              CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = %(oid)s
UNION ALL
SELECT format('GRANT %%s (%%I) ON TABLE %%s TO %%s%%s', a.privilege_type, t.attname,
              %(table)s::text,
              CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_attribute t, aclexplode(t.attacl) a
WHERE t.attrelid = %(oid)s AND t.attnum > 0 AND NOT t.attisdropped AND t.attname = ANY (%(names)s)
"""

DEFAULT_RIGHTS = """
SELECT DISTINCT format('REVOKE ALL ON TABLE %%s FROM %%s', %(table)s::text,
                       CASE a.grantee WHEN 0 THEN 'PUBLIC'
                            ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = %(oid)s AND a.grantee <> c.relowner
"""

COMMENTS = """
SELECT format('COMMENT ON TABLE %%s IS %%L', %(table)s::text, description)
FROM pg_description WHERE classoid = 'pg_class'::regclass AND objoid = %(oid)s AND objsubid = 0
UNION ALL
SELECT format('COMMENT ON COLUMN %%s.%%I IS %%L', %(table)s::text, t.attname, d.description)
FROM pg_description d JOIN pg_attribute t ON t.attrelid = d.objoid AND t.attnum = d.objsubid
WHERE d.classoid = 'pg_class'::regclass AND d.objoid = %(oid)s AND d.objsubid > 0
  AND t.attname = ANY (%(names)s)
"""

POLICIES = """
SELECT format('CREATE POLICY %%I ON %%s AS %%s FOR %%s TO %%s%%s%%s', p.polname, %(table)s::text,
              CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
              CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
                            WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
              CASE WHEN p.polroles = '{0}' THEN 'PUBLIC' ELSE
                   (SELECT string_agg(quote_ident(rolname), ', ') FROM pg_roles
                    WHERE oid = ANY (p.polroles)) END,
              ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
              ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
FROM pg_policy p WHERE p.polrelid = %(oid)s
UNION ALL
SELECT format('ALTER TABLE %%s ENABLE ROW LEVEL SECURITY', %(table)s::text) FROM pg_class
WHERE oid = %(oid)s AND relrowsecurity
UNION ALL
SELECT format('ALTER TABLE %%s FORCE ROW LEVEL SECURITY', %(table)s::text) FROM pg_class
WHERE oid = %(oid)s AND relforcerowsecurity
"""

OWNER = """
SELECT format('ALTER TABLE %%s OWNER TO %%I', %(table)s::text, pg_get_userbyid(relowner))
FROM pg_class WHERE oid = %(oid)s AND pg_get_userbyid(relowner) <> current_user
"""

PUBLICATIONS = """
SELECT format('ALTER PUBLICATION %%I ADD TABLE %%s', p.pubname, %(table)s::text)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = %(oid)s
"""
PUBLICATIONS_15 = """
SELECT format('ALTER PUBLICATION %%I ADD TABLE %%s%%s%%s', p.pubname, %(table)s::text,
              (SELECT ' (' || string_agg(quote_ident(a.attname), ', ') || ')' FROM pg_attribute a
               WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)),
              ' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')')
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = %(oid)s
"""

VIEWS = """
SELECT DISTINCT v.oid::bigint,
       format('CREATE OR REPLACE VIEW %%I.%%I%%s AS %%s', n.nspname, v.relname,
              ' WITH (' || array_to_string(v.reloptions, ', ') || ')',
              pg_get_viewdef(v.oid))
FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class v ON v.oid = w.ev_class
JOIN pg_namespace n ON n.oid = v.relnamespace
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
  AND d.refobjid = %(oid)s AND d.deptype = 'n' AND v.relkind = 'v'
ORDER BY 1
"""

INDEXES = """
SELECT c.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %(oid)s AND NOT i.indisprimary AND i.indisvalid
  AND c.relname NOT LIKE '\\_replicator%%'
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
                  AND k.conrelid = i.indrelid)
ORDER BY 1
"""

CONSTRAINTS = """
SELECT format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', %(table)s::text, conname,
              pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = %(oid)s AND contype IN ('c', 'u', 'x', 'f')
ORDER BY contype, conname
"""

TRIGGERS = """
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal
UNION ALL
SELECT format('ALTER TABLE %%s %%s TRIGGER %%I', %(table)s::text,
              CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA'
                             ELSE 'ENABLE ALWAYS' END, tgname)
FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal AND tgenabled <> 'O'
"""

COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = %(oid)s AND attnum > 0 AND NOT attisdropped
"""


@dataclass(frozen=True, slots=True)
class Dependents:
    """`bound`: what keeps the table from being replaced, in the server's words. `indexes`: names
    and definitions, to be built on the new table under other names. `before`: statements for the
    new table that rows may break; each that fails is left out and reported. `after`: statements
    that must not fail."""

    bound: tuple[str, ...]
    indexes: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def oid_of(connection: Connection, names: Names) -> int | None:
    """The table's OID; None where there is no table with this name."""
    row = connection.execute(OID, list(names)).fetchone()
    return int(row[0]) if row else None


def bound(connection: Connection, oid: int) -> tuple[str, ...]:
    """What keeps the table from being replaced, in the server's words."""
    return tuple(str(text) for (text,) in connection.execute(BOUND, {"oid": oid}).fetchall())


def read(connection: Connection, old: int, new: int, table: str) -> Dependents:
    """What hangs on the table `old`, whose quoted name is `table`. `new` is the table that comes in
    its place."""
    names = [n for (n,) in connection.execute(COLUMNS, {"oid": new}).fetchall()]

    def found(query: str) -> list[tuple[object, ...]]:
        values = {"oid": old, "names": names, "table": table}
        used = {key: value for key, value in values.items() if f"%({key})s" in query}
        return list(connection.execute(query.encode(), used).fetchall())

    def texts(*queries: str) -> tuple[str, ...]:
        return tuple(str(row[-1]) for query in queries for row in found(query))

    kept = bound(connection, old)
    if kept:
        return Dependents(kept)
    is_15 = connection.info.server_version >= 150000
    published = PUBLICATIONS_15 if is_15 else PUBLICATIONS
    return Dependents(
        (),
        tuple((str(n), str(text)) for n, text in found(INDEXES)),
        texts(CONSTRAINTS, TRIGGERS),
        texts(RIGHTS, COMMENTS, POLICIES, published, VIEWS, OWNER),
    )


def default_rights(connection: Connection, new: int, table: str) -> list[str]:
    """Statements that take back what the schema's default privileges gave to the new table."""
    values = {"oid": new, "table": table}
    return [str(t) for (t,) in connection.execute(DEFAULT_RIGHTS.encode(), values).fetchall()]


def on(definition: str, to: str, table: str) -> str:
    """An index's definition with the name `to` on another table. The server prints `ON`, the
    table's qualified name and `USING`, in this order; a name with such a word is in quotes."""
    found = _INDEX.match(definition)
    if found is None:
        return ""
    return f"CREATE {found[1] or ''}INDEX {name(to)} ON {table} {definition[found.end() :]}"


_PART = r'(?:"(?:[^"]|"")+"|[^\s".]+)'
_INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX {_PART} ON (?:ONLY )?{_PART}\.{_PART} (?=USING )")
