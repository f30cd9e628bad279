"""The COPY beside a closed bucket's manifest, run by a PostgreSQL server that plays Redshift: it
loads every change of the bucket."""

from __future__ import annotations

import pytest

from replicators.connectors import files
from replicators.connectors.contract.sink import Change, batch, resolved
from replicators.connectors.model.changes import Op
from replicators.targets.files.params import FilesParams
from replicators.targets.files.redshift import SCRIPT
from replicators.targets.files.writer import FilesSink
from replicators.targets.redshift.connection import connect
from replicators.targets.redshift.params import RedshiftParams
from runners.engine.tasks.local import LocalTasks
from tests.redshift_server import LOADER, ROLE, RedshiftServer, fresh_redshift_database
from tests.redshift_target import USER, params_of
from tests.unit.targets.test_files_sink import SCHEMA, TABLE

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.long]


def test_the_copies_of_closed_buckets_load_every_change(
    redshift: RedshiftServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the statements that the files target offers: a COPY for each bucket, whose structures
    become SUPER values."""
    for name, value in redshift.store.environment.items():
        monkeypatch.setenv(name, value)
    files._folder.cache_clear()
    root = f"s3://{redshift.store.bucket}/copied"
    sink = FilesSink(FilesParams(location=root, copy_role=ROLE), LocalTasks(2))
    sink.begin(TABLE, SCHEMA)
    changes = [
        Change(11, Op.INSERT, 1, "it's", 1),
        Change(12, Op.UPDATE, 2, "new", 1, old_id=1),
        Change(13, Op.DELETE, 2, at=70),
    ]
    sink.deliver(TABLE, batch(changes, SCHEMA, 10))
    sink.resolved(TABLE, resolved(14, 150))
    folder = f"{root}/shop.orders/g000001"
    scripts = [p for p in files.listed_below(folder) if p.endswith(SCRIPT)]
    assert len(scripts) == 2
    with fresh_redshift_database(redshift) as copies:
        params = RedshiftParams(**params_of(redshift, copies, LOADER))
        copies.execute(f"CREATE SCHEMA shop AUTHORIZATION {USER}")
        with connect(params) as connection:
            for path in sorted(scripts):
                for text in bytes(files.read(path)).decode().split(";\n"):
                    if text.strip():
                        connection.execute(text.encode())
        found = copies.execute(
            "SELECT _operation, key->>'id', old_key->>'id', after->>'note'"
            " FROM shop.orders_changes ORDER BY _sequence"
        )
    assert found == [
        ("insert", "1", None, "it's"), ("update", "2", "1", "new"), ("delete", "2", None, None),
    ]  # fmt: skip
