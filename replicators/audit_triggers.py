"""Makes the database itself refuse changes of the audit trail, whoever asks. Migrations call this.

An update is always refused. A delete is refused unless a row says that rows of that age were
deleted (`pruned_before`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TABLE = "replicators_auditentry"
_REPORTED = f"SELECT 1 FROM {_TABLE} p WHERE p.act = 'audit_pruned' AND p.pruned_before > OLD.at"  # noqa: S608 - a name of ours
_SAID = "rows of the audit trail are neither changed nor deleted"
_SQLITE = (
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE ON {_TABLE} "
    f"BEGIN SELECT RAISE(ABORT, '{_SAID}'); END",
    f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON {_TABLE} WHEN NOT EXISTS ({_REPORTED}) "
    f"BEGIN SELECT RAISE(ABORT, '{_SAID}'); END",
)
_POSTGRESQL = (
    f"""CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' AND EXISTS ({_REPORTED}) THEN RETURN OLD; END IF;
        RAISE EXCEPTION '{_SAID}' USING ERRCODE = 'restrict_violation';
    END $$""",
    f"CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {_TABLE} "
    "FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
)
_AWAY = {
    "sqlite": (
        "DROP TRIGGER IF EXISTS audit_no_update",
        "DROP TRIGGER IF EXISTS audit_no_delete",
    ),
    "postgresql": (
        f"DROP TRIGGER IF EXISTS audit_no_change ON {_TABLE}",
        "DROP FUNCTION IF EXISTS audit_refuse()",
    ),
}
_HERE = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}


def triggers_make(connection: Any) -> None:
    """Make the triggers; existing ones are made anew. SQLite loses them when a later migration
    makes the table anew."""
    triggers_drop(connection)
    _run(connection, _HERE)


def triggers_drop(connection: Any) -> None:
    """Remove the triggers; idempotent."""
    _run(connection, _AWAY)


def _run(connection: Any, known: Mapping[str, tuple[str, ...]]) -> None:
    with connection.cursor() as cursor:
        for statement in known.get(connection.vendor, ()):
            cursor.execute(statement)
