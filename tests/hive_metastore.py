"""A Hive metastore for the tests: the one whose jars PySpark brings, with a Derby database. It
checks nobody."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyspark

from demo.embedded import EmbeddedServer
from demo.postgres import HOST
from setup import machine

LOCK_SECONDS = 30


class MetastoreError(RuntimeError):
    """The server did not start. The text ends with its log."""


@dataclass
class HiveMetastore(EmbeddedServer):
    """Hive 2.3.10's metastore. `has_locks`: also the tables of locks, which a script of Hive makes
    elsewhere. Here a first start makes them, with a setting of Hive's own tests. A lock whose
    holder is gone ends after `LOCK_SECONDS`. `is_strict`: it compares columns by their place, as it
    does where nobody sets anything."""

    has_locks: bool = False
    is_strict: bool = False

    label = "hive-metastore"
    title = "The Hive metastore"
    start_seconds = 90.0
    error = MetastoreError

    def start(self) -> Self:
        """Start the server, and once more if it has to make the tables of locks first."""
        self._makes_locks = self.has_locks and not (self.home / "db").exists()
        super().start()
        if self._makes_locks:
            self.locks()
            self._makes_locks = False
            self.restart()
        return self

    def locks(self) -> list[Any]:
        """The locks that are held or waited for."""
        from hive_metastore.ttypes import ShowLocksRequest
        from pyiceberg.catalog.hive import HiveCatalog

        with HiveCatalog("locks", uri=self.uri)._client as client:
            found: list[Any] = client.show_locks(ShowLocksRequest()).locks
        return found

    def lock_number(self) -> int:
        """The number of a lock that is taken now and let go: so many were taken before it."""
        from hive_metastore.ttypes import (
            LockComponent,
            LockLevel,
            LockRequest,
            LockType,
            UnlockRequest,
        )
        from pyiceberg.catalog.hive import HiveCatalog

        part = LockComponent(type=LockType.SHARED_READ, level=LockLevel.DB, dbname="counted")
        with HiveCatalog("locks", uri=self.uri)._client as client:
            taken = client.lock(LockRequest(component=[part], user="test", hostname=HOST)).lockid
            client.unlock(UnlockRequest(lockid=taken))
        return int(taken)

    def _command(self) -> Sequence[str]:
        database = f"jdbc:derby:;databaseName={self.home}/db;create=true"
        values = {
            "javax.jdo.option.ConnectionURL": database,
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "hikaricp",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": str(self.home / "warehouse"),
            "hive.async.log.enabled": "false",
            "hive.metastore.disallow.incompatible.col.type.changes": str(self.is_strict).lower(),
        }
        if self.has_locks:
            values |= {
                "hive.in.tez.test": str(self._makes_locks).lower(),
                "hive.compactor.initiator.on": "true",
                "hive.support.concurrency": "true",
                "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
                "hive.txn.timeout": f"{LOCK_SECONDS}s",
                "hive.timedout.txn.reaper.start": "1s",
                "hive.timedout.txn.reaper.interval": "2s",
            }
        lines = [
            f"<property><name>{n}</name><value>{v}</value></property>" for n, v in values.items()
        ]
        text = f"<configuration>{''.join(lines)}</configuration>"
        (self.home / "hive-site.xml").write_text(text)
        home = machine.java_home()
        return [
            str(home / "bin" / "java") if home else "java",
            "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{self.home}:{Path(pyspark.__file__).parent}/jars/*",
            "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port),
        ]  # fmt: skip

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 5):
            return True
        return False

    @property
    def uri(self) -> str:
        """Where people reach it."""
        return f"thrift://{HOST}:{self.port}"
