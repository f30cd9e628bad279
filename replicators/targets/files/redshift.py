"""A COPY of Redshift for a closed bucket, as a file beside its manifest. Text only; opens no
file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SCRIPT = "copy.sql"
_COLUMNS = {
    "_sequence": "BIGINT", "_operation": "VARCHAR(10)", "_committed_at": "TIMESTAMP",
    "_transaction": "BIGINT", "_schema": "INTEGER", "_unsent": "SUPER",
}  # fmt: skip
_MANY = """-- The files of this bucket have different columns, since the table's key or its old rows
-- changed meanwhile. One COPY can't load them: load each file of the manifest by itself.
"""


def columns(schemas: Sequence[Mapping[str, Any]], *, has_before: bool) -> list[str] | None:
    """The columns of a bucket's records, by the schemas of its files; None where they differ."""
    found = {(bool(s["key"]), bool(has_before and s["has_whole_old_rows"])) for s in schemas}
    if len(found) != 1:
        return None
    has_key, keeps_before = found.pop()
    keys = ["key", "old_key"] if has_key else []
    return [*_COLUMNS, *keys, "after", *(["before"] if keeps_before else [])]


def script(
    table: tuple[str, str], manifest: str, role: str, names: Sequence[str] | None, rows: int
) -> str:
    """The statements that load a bucket into a table of its changes. Structures are SUPER
    values."""
    if names is None:
        return _MANY
    place = ".".join(
        '"' + part.replace('"', '""') + '"' for part in (table[0], f"{table[1]}_changes")
    )
    kinds = ", ".join(f'"{n}" {_COLUMNS.get(n, "SUPER")}' for n in names)
    url = manifest.replace("\\", "\\\\").replace("'", "\\'")
    who = "default" if role == "default" else f"'{role}'"
    return (
        f"-- {rows} changes. Run it once: COPY adds rows.\n"
        f"CREATE TABLE IF NOT EXISTS {place} ({kinds});\n"
        f"COPY {place} FROM '{url}'\n"
        f"IAM_ROLE {who} FORMAT AS PARQUET SERIALIZETOJSON MANIFEST;\n"
    )
