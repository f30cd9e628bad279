"""Compare tables of a PostgreSQL, MySQL or MariaDB source with their copies, from outside: `python
-m tests.model.verify --help`.

Exit code 0: every table equal; 1: something differs (each differing key and column is listed); 2:
could not be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from tests.model.fingerprint import Difference, Fingerprint, compare, image
from tests.model.reading import (
    PostgresTable,
    as_text_of_time,
    delta_rows,
    iceberg_rows,
    present,
    same_json,
)
from tests.model.reading_mysql import MysqlTable

SHOWN = 20
MYSQL, MYSQL_PORT = ("mysql://", "mariadb://"), 3306


def _even(rows: Iterable[dict[str, Any]], json_columns: frozenset[str]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            name: same_json(value) if name in json_columns else as_text_of_time(value)
            for name, value in row.items()
        }


class SourceTable(Protocol):
    """What is compared with a copy: names of columns, the key, which columns hold JSON, and every
    row once."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    json: frozenset[str]

    def rows(self) -> Iterator[dict[str, Any]]: ...


def table_differences(
    source: SourceTable, columns: Sequence[str], rows: Iterable[dict[str, Any]]
) -> tuple[Fingerprint, Fingerprint, list[Difference]]:
    """Both fingerprints over the source's columns, and what differs. A column that only one side
    has is compared as NULL there. Of a copy by soft delete the living rows count, of a history the
    current ones."""
    columns, rows = present(columns, rows)
    wanted = tuple(dict.fromkeys((*source.columns, *columns)))
    ours = image(_even(source.rows(), source.json), wanted)
    theirs = image(_even(rows, source.json), wanted)
    return ours.fingerprint, theirs.fingerprint, compare(ours, theirs, source.key)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify", description=__doc__)
    parser.add_argument("tables", nargs="+", metavar="[SCHEMA.]TABLE")
    parser.add_argument(
        "--source",
        required=True,
        help="PostgreSQL connection string, or mysql://user:password@host:port/database (also "
        "for MariaDB;"
        " signs in user and password as in any URL, %%40 for @)",
    )
    parser.add_argument("--format", choices=("iceberg", "delta"), default="iceberg")
    parser.add_argument("--warehouse", required=True, help="folder or URL of the lakehouse")
    parser.add_argument("--catalog-uri", default="", help="Iceberg: the SQL catalog's address")
    parser.add_argument("--catalog-name", default="lake", help="Iceberg: the catalog's name")
    parser.add_argument("--namespace", default="", help="default: the table's own schema")
    return parser


def source_table(address: str, schema: str, name: str) -> SourceTable:
    """The table at this address; for MySQL and MariaDB the schema is the database."""
    if not address.startswith(MYSQL):
        return PostgresTable(address, schema, name)
    parts = urlsplit(address)
    server = {
        "host": parts.hostname,
        "port": parts.port or MYSQL_PORT,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }
    return MysqlTable(server, schema, name)


def _names(address: str, named: str) -> tuple[str, str]:
    """Schema and table of what is named; without a schema it is of the address's database, or of
    PostgreSQL's usual one."""
    schema, dot, name = named.partition(".")
    if dot:
        return schema, name
    return unquote(urlsplit(address).path[1:]) if address.startswith(MYSQL) else "public", named


def _target(asked: argparse.Namespace, schema: str, name: str) -> Any:
    namespace = asked.namespace or schema
    if asked.format == "delta":
        return delta_rows(Path(asked.warehouse) / namespace / name)
    return iceberg_rows(asked.catalog_uri, asked.warehouse, asked.catalog_name, (namespace, name))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    asked = _parser().parse_args(arguments)
    out, worst = sys.stdout, 0
    for named in asked.tables:
        try:
            schema, name = _names(asked.source, named)
            source = source_table(asked.source, schema, name)
            ours, theirs, reported = table_differences(source, *_target(asked, schema, name))
        except Exception as err:  # noqa: BLE001 - reported to the person who asked, and in the exit code
            out.write(f"{named}: could not be read: {type(err).__name__}: {err}\n")
            worst = 2
            continue
        out.write(f"{named}: source {ours}, target {theirs}: {'DIFFER' if reported else 'equal'}\n")
        for one in reported[:SHOWN]:
            out.write(f"  {one}\n")
        if len(reported) > SHOWN:
            out.write(f"  and {len(reported) - SHOWN} more\n")
        worst = max(worst, 1 if reported else 0)
    return worst


if __name__ == "__main__":
    sys.exit(main())
