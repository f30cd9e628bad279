"""The form in which the stream comes, and its connection, against a real server."""

from __future__ import annotations

import os
import socket

import pytest

from replicators.connectors.model.schema import TableId, TableSelection
from replicators.connectors.postgres import connections
from replicators.sources.postgresql.catalog import PostgresqlCatalog
from replicators.sources.postgresql.log import LogControl
from tests.integration.postgresql_source import begin, changes, describe, params_of, read_all
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
SLOT = "r_stream"


def test_a_column_that_is_chosen_later_and_has_no_binary_form_turns_it_to_text(
    database: Database,
) -> None:
    """Guards `BinaryGuard.follow`: the table's Relation message came long ago and is the same, and
    `source` counted as left out; its first value in binary would stop the table, after each re-sync
    again."""
    database.execute("CREATE TABLE wide (id int PRIMARY KEY, source inet)")
    few, all_of_it = (TableSelection(TableId("public", "wide"), c) for c in (("id",), ()))
    with PostgresqlCatalog(params_of(database)) as catalog:
        chosen, wide = (list(catalog.describe([s]).values()) for s in (few, all_of_it))
    reader, session = begin(database, SLOT, chosen)
    with reader, session, LogControl(params_of(database), SLOT) as control:
        database.execute("INSERT INTO wide VALUES (1, '10.0.0.1')")
        first = read_all(reader, control)
        reader.follow(wide)
        database.execute("INSERT INTO wide VALUES (2, '10.0.0.2')")
        second = read_all(reader, control)
        control.drop()
    assert [{b.context["binary"] for b in blocks} for blocks in (first, second)] == [
        {True},
        {False},
    ]
    (found,) = changes(second, wide)["wide"]
    assert found.column("source").to_pylist() == ["10.0.0.2"]


def test_a_connection_whose_path_is_gone_does_not_hang_for_long(database: Database) -> None:
    """Guards `connections.SILENT_SECONDS`, which the kernel holds: without it, what is sent over
    such a path waits for a quarter of an hour."""
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    reader, session = begin(database, SLOT, describe(database, "orders"))
    with reader, session, socket.socket(fileno=os.dup(reader._pgconn.socket)) as found:
        limit = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    with LogControl(params_of(database), SLOT) as control:
        control.drop()
    assert limit == 1000 * connections.SILENT_SECONDS
