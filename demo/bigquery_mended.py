"""Starts bqemulator, with what it does differently from BigQuery mended.

It runs in the emulator's own environment (`EmbeddedBigQuery`), and imports nothing of this program.
What it mends, in bqemulator 1.4:
- columns after CREATE TABLE and ALTER TABLE: `tables.get` showed BIGNUMERIC and JSON as other
  types, left out digits, and did not see ALTER TABLE at all;
- ids of jobs: an uploaded load job got another id than the one that was asked for, and a second job
  with the id of an earlier one was run again, where BigQuery answers 409.
"""

from __future__ import annotations

import asyncio
import re
import sys
from contextvars import ContextVar
from typing import Any

from bqemulator.api.routes import jobs, tables, upload
from bqemulator.catalog.duckdb_repository import DuckDBCatalogRepository
from bqemulator.catalog.models import TableFieldSchema, TableSchema
from bqemulator.cli import main
from bqemulator.domain.errors import ResourceRef, resource_already_exists
from bqemulator.storage.engine import DuckDBEngine

NUMERIC_SCALE, NUMERIC_WHOLE = 9, 29
TYPES = {
    "BIGINT": "INTEGER", "DOUBLE": "FLOAT", "BOOLEAN": "BOOLEAN", "VARCHAR": "STRING",
    "BLOB": "BYTES", "DATE": "DATE", "TIME": "TIME", "TIMESTAMP": "DATETIME",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "JSON": "JSON",
}  # fmt: skip
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_asked: ContextVar[str] = ContextVar("asked", default="")
_running: set[tuple[str, str]] = set()


def column(name: str, kind: str) -> TableFieldSchema | None:
    """A column from DuckDB's own type; None for a type that we do not make."""
    mode = "REPEATED" if kind.endswith("[]") else "NULLABLE"
    inner = kind.removesuffix("[]")
    found = _DECIMAL.fullmatch(inner)
    if found is None:
        known = TYPES.get(inner)
        return TableFieldSchema(name=name, type=known, mode=mode) if known else None
    precision, scale = int(found[1]), int(found[2])
    is_small = scale <= NUMERIC_SCALE and precision - scale <= NUMERIC_WHOLE
    kind = "NUMERIC" if is_small else "BIGNUMERIC"
    return TableFieldSchema(name=name, type=kind, mode=mode, precision=precision, scale=scale)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def mend_columns() -> None:
    """`tables.get` shows the columns that the table has now."""
    as_kept, as_rest = DuckDBCatalogRepository.get_table, tables._field_to_rest

    def get_table(self: Any, project_id: str, dataset_id: str, table_id: str) -> Any:
        kept = as_kept(self, project_id, dataset_id, table_id)
        if kept is None or kept.table_type != "TABLE":
            return kept
        engine: DuckDBEngine = self._engine
        name = f"{_quoted(f'{project_id}__{dataset_id}')}.{_quoted(table_id)}"
        try:
            rows = engine.execute(f"DESCRIBE {name}").fetchall()
        except Exception:  # noqa: BLE001 - a table that only the catalog has
            return kept
        found = [column(row[0], str(row[1])) for row in rows]
        if not all(found):
            return kept
        return kept.model_copy(update={"schema_": TableSchema(fields=tuple(found))})

    def field_to_rest(field: TableFieldSchema) -> dict[str, Any]:
        shown: dict[str, Any] = as_rest(field)
        if field.precision is not None:
            shown |= {"precision": str(field.precision), "scale": str(field.scale or 0)}
        return shown

    DuckDBCatalogRepository.get_table = get_table
    tables._field_to_rest = field_to_rest


async def _claim(ctx: Any, project: str, name: str) -> None:
    """Refuse an id that is known. One that still runs is waited for, so that it can be found."""
    is_again = (project, name) in _running
    while (project, name) in _running:
        await asyncio.sleep(0.05)
    if is_again or ctx.catalog.get_job(project, name) is not None:
        raise resource_already_exists(ResourceRef("job", project, resource_id=name))
    _running.add((project, name))


def mend_jobs() -> None:
    """A job keeps the id that it was asked for, and an id is used once."""
    as_query, as_load = jobs._handle_query_job, upload._run_load
    as_read, as_named = upload._load_configuration_from_envelope, upload._new_job_id

    async def handle_query_job(project: str, name: str, *rest: Any, **named: Any) -> Any:
        ctx = named["ctx"]
        if named.get("dry_run"):
            return await as_query(project, name, *rest, **named)
        await _claim(ctx, project, name)
        try:
            made = await as_query(project, name, *rest, **named)
            if not isinstance(made, dict):
                ctx.catalog.upsert_job(made)
            return made
        finally:
            _running.discard((project, name))

    def read(envelope: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = as_read(envelope)
        name = (envelope.get("jobReference") or {}).get("jobId", "")
        return {**found, "_asked": name}

    async def run_load(*, project_id: str, configuration: Any, media_path: str, ctx: Any) -> Any:
        name = configuration.pop("_asked", "") or as_named()
        await _claim(ctx, project_id, name)
        _asked.set(name)
        try:
            return await as_load(
                project_id=project_id, configuration=configuration, media_path=media_path, ctx=ctx
            )
        finally:
            _running.discard((project_id, name))

    jobs._handle_query_job = handle_query_job
    upload._load_configuration_from_envelope = read
    upload._run_load = run_load
    upload._new_job_id = lambda: _asked.get() or as_named()


if __name__ == "__main__":
    mend_columns()
    mend_jobs()
    sys.exit(main())
