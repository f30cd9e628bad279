"""A Hive metastore for the tests: the one whose jars PySpark brings, with a Derby database. It
checks nobody, and has no locks: Hive's script would make their tables."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from demo.embedded import EmbeddedServer
from demo.postgres import HOST
from setup import machine


class MetastoreError(RuntimeError):
    """The server did not start. The text ends with its log."""


@dataclass
class HiveMetastore(EmbeddedServer):
    """Hive 2.3.10's metastore."""

    label = "hive-metastore"
    title = "The Hive metastore"
    start_seconds = 90.0
    error = MetastoreError

    def _command(self) -> Sequence[str]:
        database = f"jdbc:derby:;databaseName={self.home}/db;create=true"
        values = {
            "javax.jdo.option.ConnectionURL": database,
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "hikaricp",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": str(self.home / "warehouse"),
            "hive.async.log.enabled": "false",
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
