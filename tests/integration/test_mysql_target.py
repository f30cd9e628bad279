"""MariaDB as a target on a real server: faults of the server, of values and of hands, each with a
clear text and a clean way on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest

from replicators.connectors.model.schema import Column, TableSchema
from replicators.connectors.model.types import Bytes, Float, LogicalType
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Problem, Severity
from replicators.connectors.sql.target import SqlMergeTarget
from replicators.connectors.target import FoldedBatch, TargetTable
from replicators.targets.mysql import client as client_module
from replicators.targets.mysql.checks import MysqlTargetChecks
from replicators.targets.mysql.connections import query
from replicators.targets.mysql.params import RIGHTS, MysqlTargetParams
from replicators.targets.mysql.writer import writer
from tests.integration.test_postgresql_target import SCHEMA, TABLE, batch, code_of, published
from tests.mysql_servers import SqlDatabase, SqlServer, fresh_sql_database
from tests.mysql_target import USER, plain_writer, taking_files
from tests.proxies import CuttingProxy

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
WHOLE = [(1, "s20", 20), (2, None, None), (1020, None, None)]


@pytest.fixture
def copies(mariadb: SqlServer) -> Iterator[SqlDatabase]:
    """The target's database."""
    with fresh_sql_database(mariadb) as made:
        yield made


@pytest.fixture
def params(copies: SqlDatabase) -> MysqlTargetParams:
    found: MysqlTargetParams = parse(
        MysqlTargetParams, {**plain_writer(copies), "database": copies.name}
    )
    return found


@pytest.fixture
def target(params: MysqlTargetParams, tmp_path: Path) -> Iterator[SqlMergeTarget]:
    made = writer(params, str(tmp_path / "files"))
    yield made
    made.close()


@pytest.fixture
def live(target: SqlMergeTarget) -> TargetTable:
    """A published table: rows 1 and 2."""
    return published(target)


@contextmanager
def counted(copies: SqlDatabase) -> Iterator[list[int]]:
    """How many LOAD DATA the server ran meanwhile, once the block has ended."""
    seen, found = "SHOW GLOBAL STATUS LIKE 'Com_load'", []
    before = int(copies.execute(seen)[0][1])
    yield found
    found.append(int(copies.execute(seen)[0][1]) - before)


def rows(copies: SqlDatabase) -> list[Any]:
    return list(copies.execute("SELECT id, note, n FROM orders ORDER BY id"))


def test_a_lost_answer_to_a_merge_applies_it_once(
    params: MysqlTargetParams, copies: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the progress row in the merge's own transaction: where the connection is cut while the
    server commits, the next try finds what became of it."""
    with CuttingProxy(params.port) as proxy:
        target = writer(replace(params, port=proxy.port), str(tmp_path / "files"))
        live = published(target)
        client: Any = target._client
        inner = client._run

        def cut(connection: Any, steps: Any) -> None:
            inner(connection, steps)
            proxy.cut_after(0)

        monkeypatch.setattr(client, "_run", cut)
        assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:mysql-lost"
        monkeypatch.setattr(client, "_run", inner)
        target.merge(live, batch(tmp_path, 20))
        token = target.token(live)
        assert token is not None and token.sequence == 20
        target.close()
    assert rows(copies) == WHOLE


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_to_a_copys_rows_is_asked_for(
    target: SqlMergeTarget, copies: SqlDatabase, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """Guards `client._count`: rows of a copy that were committed, and are loaded once more, would
    be doubled."""
    target.begin_snapshot(TABLE, SCHEMA)
    place = target.snapshot_place(TABLE, SCHEMA)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 1}, {"id": 2}], place.arrow), path)
    client: Any = target._client
    connection = client._connections.get()
    commit = connection.commit

    def lost() -> None:
        if is_committed:
            commit()
        connection._force_close()
        raise pymysql.err.OperationalError(2013, "lost")

    monkeypatch.setattr(connection, "commit", lost)
    if is_committed:
        target.load_snapshot_files(TABLE, SCHEMA, [path])
    else:
        found = code_of(lambda: target.load_snapshot_files(TABLE, SCHEMA, [path]))
        assert found == "target:mysql-lost"
        target.load_snapshot_files(TABLE, SCHEMA, [path])
    target.publish_snapshot(TABLE, SCHEMA, 10)
    assert [row[0] for row in rows(copies)] == [1, 2]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DROP TABLE orders", "target:table-missing"),
        ("ALTER TABLE orders DROP COLUMN note", "target:column-missing"),
        ("ALTER TABLE orders MODIFY note int", "target:mysql-value"),
        ("ALTER TABLE orders ADD CONSTRAINT few CHECK (n < 5)", "target:mysql-constraint"),
        ("ALTER TABLE orders ADD UNIQUE (n), ADD CHECK (note IS NULL)", "target:mysql-constraint"),
        (
            "CREATE TRIGGER no BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000'",
            "target:mysql-trigger",
        ),
        (f"REVOKE UPDATE ON orders_db.* FROM {USER}@'%'", "target:mysql-right"),
    ],
)
def test_what_was_changed_by_hand_has_its_own_text(
    target: SqlMergeTarget, live: TargetTable, copies: SqlDatabase, tmp_path: Path, statement: str,
    code: str,
) -> None:  # fmt: skip
    """Guards `errors.RULES` against what a real server says, and that nothing of such a merge
    stays."""
    copies.execute(statement.replace("orders_db", copies.name))
    target._client.close()
    assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == code
    token = target.token(live) if code != "target:table-missing" else None
    assert token is None or token.sequence == 10


def test_a_locked_table_is_waited_for_and_then_said(
    target: SqlMergeTarget, live: TargetTable, copies: SqlDatabase, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Guards the limit of a lock: without one, a session that somebody left open stops the table
    without a word."""
    from replicators.targets.mysql import connections

    short = connections.SETTINGS.replace("lock_wait_timeout = 30", "lock_wait_timeout = 1")
    monkeypatch.setattr(connections, "SETTINGS", short)
    target._client.close()
    with copies.connect(autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM orders FOR UPDATE")
        assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:mysql-lock"
        other.rollback()
    assert target.merge(live, batch(tmp_path, 21)).was_applied


def test_a_copy_that_waits_for_a_reader_is_published_at_the_next_try(
    target: SqlMergeTarget, live: TargetTable, copies: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards a publication that is repeated: the copy has its index and its mark then, and a second
    index of the name would be refused for ever."""
    from replicators.targets.mysql import connections

    short = connections.SETTINGS.replace("lock_wait_timeout = 30", "lock_wait_timeout = 1")
    monkeypatch.setattr(connections, "SETTINGS", short)
    target._client.close()
    again = replace(live, generation=2)
    target.begin_snapshot(again, SCHEMA)
    place = target.snapshot_place(again, SCHEMA)
    path = f"{place.folder}/1.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 7}], place.arrow), path)
    target.load_snapshot_files(again, SCHEMA, [path])
    with copies.connect(autocommit=False) as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM orders")
        publish = lambda: target.publish_snapshot(again, SCHEMA, 30)  # noqa: E731
        assert code_of(publish) == "target:mysql-lock"
        other.rollback()
    assert [row[0] for row in rows(copies)] == [1, 2]
    target.publish_snapshot(again, SCHEMA, 30)
    assert [row[0] for row in rows(copies)] == [7]
    token = target.token(again)
    assert token is not None and (token.generation, token.sequence) == (2, 30)
    assert copies.execute("SHOW TABLES LIKE '\\_replicator\\_%'") == [("_replicator_progress",)]


def test_a_row_that_no_packet_holds_is_said(
    target: SqlMergeTarget, live: TargetTable, copies: SqlDatabase, tmp_path: Path
) -> None:
    """Guards the length of statements: rows are cut into several, and one row can't be."""
    most = int(copies.execute("SELECT @@max_allowed_packet")[0][0])
    long = batch(tmp_path, 20, note="x" * (most + 10))
    assert code_of(lambda: target.merge(live, long)) == "target:mysql-packet"
    assert target.merge(live, batch(tmp_path, 21, note="y" * (most // 2))).was_applied


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (Float(64), float("nan"), "MySQL has no NaN and no infinity"),
        (Bytes(4), b"12345", "a value is too long for the column"),
    ],
)
def test_a_value_that_does_not_fit_stops_the_table_with_its_columns_name(
    target: SqlMergeTarget, tmp_path: Path, kind: LogicalType, value: object, reason: str
) -> None:
    """Guards NaN, which MySQL would refuse with a text that names no reason, and LOAD DATA, which
    would cut a value and go on."""
    columns = (*SCHEMA.columns[:1], Column("share", kind, "", ordinal=4))
    schema: TableSchema = replace(SCHEMA, columns=columns)
    target.begin_snapshot(TABLE, schema)
    target.load_snapshot_files(TABLE, schema, [])
    live = replace(TABLE, table_uuid=target.publish_snapshot(TABLE, schema, 10))
    path = tmp_path / "odd.parquet"
    arrow = pa.schema([*schema.arrow_schema(), pa.field("_delete", pa.bool_())])
    row = {"id": 1, "share": value, "_delete": False}
    pq.write_table(pa.Table.from_pylist([row], arrow), path)
    with pytest.raises(ReplicationError) as caught:
        target.merge(live, FoldedBatch(schema, (str(path),), 20, 1))
    assert caught.value.code == "target:mysql-value"
    assert caught.value.facts["reason"] == f"column share: {reason}"


def test_a_server_without_load_data_gets_the_same_rows(
    target: SqlMergeTarget,
    live: TargetTable,
    params: MysqlTargetParams,
    copies: SqlDatabase,
    tmp_path: Path,
) -> None:
    """Guards the ways to load: LOAD DATA LOCAL while the server allows it, INSERTs once it forbids
    it, and INSERTs alone where it never did."""
    note = "a\tb\\\n'é🙂"
    with counted(copies) as loads:
        target.merge(live, batch(tmp_path, 20, note=note))
    assert loads == [1]
    first = rows(copies)
    with taking_files(copies.server, False):
        target.merge(live, batch(tmp_path, 21, note=note))
        later = writer(params, str(tmp_path / "later"))
        with counted(copies) as loads:
            later.merge(live, batch(tmp_path, 22, note=note))
        later.close()
    assert loads == [0]
    assert rows(copies)[0] == (1, note, 22) and first[0] == (1, note, 20)
    assert [row[0] for row in rows(copies)] == [1, 2, 1020, 1021, 1022]


@pytest.mark.parametrize("is_temporary", [True, False])
def test_a_merge_stages_its_rows_beside_the_servers_log(
    is_temporary: bool, copies: SqlDatabase, tmp_path: Path
) -> None:
    """Guards temporary staging tables, and the plain ones of a user who may not make them: only
    those write the rows a second time into the log that the server's replicas read."""
    given = {**plain_writer(copies, is_temporary=is_temporary), "database": copies.name}
    target = writer(parse(MysqlTargetParams, given), str(tmp_path / "files"))
    live, note = published(target), "x" * 200_000
    before = _logged(copies)
    target.merge(live, batch(tmp_path, 20, note=note))
    written = _logged(copies) - before
    held = sum(len(row[1] or "") for row in rows(copies))
    assert held >= len(note)
    assert (written < 1.5 * held) is is_temporary, (written, held)
    left = copies.execute("SHOW TABLES LIKE '%batch%'")
    target.close()
    assert not left


def test_rows_that_stay_as_they_are_are_not_added_again(
    target: SqlMergeTarget,
    live: TargetTable,
    copies: SqlDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `Statement.after_none`: an INSERT looks for no key where the UPDATE found none, and
    only there. An UPDATE that finds a row and changes nothing has found one."""
    client: Any = target._client
    texts: list[str] = []
    cursor = pymysql.cursors.Cursor
    inner = cursor.execute

    def execute(self: Any, text: str, args: Any = None) -> Any:
        texts.append(text)
        return inner(self, text, args)

    monkeypatch.setattr(cursor, "execute", execute)
    same = {"note": "s", "n": 5}
    for sequence, looks in ((20, True), (21, True), (22, False)):
        texts.clear()
        more = {"id": 7} if sequence == 22 else {}
        target.merge(live, batch(tmp_path, sequence, **same, **more))
        (insert,) = [t for t in texts if t.startswith(f"INSERT INTO `{copies.name}`.`orders`")]
        assert ("EXISTS" in insert) is looks, insert
    assert client.dialect.has_merge is False
    found = [(1, "s", 5), (7, "s", 5), (1020, None, None), (1021, None, None), (1022, None, None)]
    assert [row for row in rows(copies) if row[0] != 2] == found


def _logged(copies: SqlDatabase) -> int:
    """The size of the server's binary log."""
    return sum(int(row[1]) for row in copies.execute("SHOW BINARY LOGS"))


def test_a_connection_that_is_cut_at_a_file_is_followed_by_inserts(
    params: MysqlTargetParams, copies: SqlDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards a target behind a proxy that cuts connections at LOAD DATA LOCAL: each try would fail
    for good, though INSERTs pass."""
    with CuttingProxy(params.port) as proxy:
        target = writer(replace(params, port=proxy.port), str(tmp_path / "files"))
        live = published(target)
        inner = client_module.send

        def cut(*given: Any) -> Any:
            proxy.cut_after(0)
            return inner(*given)

        monkeypatch.setattr(client_module, "send", cut)
        assert code_of(lambda: target.merge(live, batch(tmp_path, 20))) == "target:mysql-lost"
        with counted(copies) as loads:
            target.merge(live, batch(tmp_path, 20))
        assert loads == [0]
        target.close()
    assert rows(copies) == WHOLE


def test_a_file_that_the_server_asks_for_is_refused(
    target: SqlMergeTarget, live: TargetTable, copies: SqlDatabase, tmp_path: Path
) -> None:
    """Guards the driver's refusal of a file that we do not offer: its error has a code, and the
    connection, whose server waits for the file, is not used again."""
    client: Any = target._client
    text = f"LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE {copies.name}.orders"

    def ask() -> None:
        with client.asking() as connection:
            query(connection, text)

    assert code_of(ask) == "internal:unexpected"
    target.merge(live, batch(tmp_path, 20))
    assert rows(copies) == WHOLE


@pytest.mark.parametrize("right", RIGHTS)
def test_a_missing_right_is_mended_by_the_statement_that_is_shown(
    params: MysqlTargetParams, copies: SqlDatabase, right: str
) -> None:
    """Guards every line of `checks.TRIES`: a right that no try needs is missed until a run."""
    copies.execute(f"REVOKE {right} ON {copies.name}.* FROM {USER}@'%'")
    checks = MysqlTargetChecks(params)
    (found,) = _errors(checks.connection())
    assert found.code == "target:mysql-rights"
    assert _errors(checks.tables([SCHEMA], "r1"))[0].code == "target:mysql-rights"
    statement = found.message.suggestion.split("`")[1]
    assert statement == f"GRANT {right} ON {copies.name}.* TO '{USER}'@'%';"
    copies.execute(statement)
    assert _errors(checks.connection()) == []
    assert not copies.execute("SHOW TABLES"), "a check made a table"


def _errors(problems: list[Problem]) -> list[Problem]:
    return [p for p in problems if p.severity is Severity.ERROR]
