"""Databases of a MySQL server, one for each side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from benchmarks.copied import MYSQL_SUMS
from replicators.connectors import registry
from replicators.connectors.target import TargetPlugin
from tests.mysql_servers import ADMIN, HOST, PASSWORD, MysqlServer, SqlServer

OPTIONS = {"innodb-buffer-pool-size": "1G", "max-binlog-size": "1G", "local-infile": "ON"}


@dataclass
class IntoMysql:
    """Databases of a server."""

    server: SqlServer
    _reader: list[pymysql.Connection] = field(default_factory=list)

    @property
    def plugin(self) -> TargetPlugin:
        return registry.targets()["mysql"]

    def values(self, side: str) -> dict[str, Any]:
        login = {"user": ADMIN, "password": PASSWORD}
        return {"host": HOST, "port": self.server.port, **login, "database": side}

    def fresh(self, side: str) -> None:
        self.server.execute(f"DROP DATABASE IF EXISTS {side}", f"CREATE DATABASE {side}")

    def for_dlt(self, side: str) -> tuple[dict[str, str], str]:
        login = f"{ADMIN}:{PASSWORD.replace('%', '%25')}@{HOST}:{self.server.port}"
        return {"sqlalchemy": f"mysql+pymysql://{login}"}, side

    def sums(self, side: str) -> tuple[int, ...]:
        (row,) = self.server.execute(MYSQL_SUMS.replace("bench.events", f"{side}.events"))
        return tuple(int(v or 0) for v in row)

    def has(self, side: str, key: int) -> bool:
        if not self._reader:
            self._reader.append(self.server.connect())
        with self._reader[0].cursor() as cursor:
            if not cursor.execute(f"SHOW TABLES FROM {side} LIKE 'events'"):
                return False
            return bool(cursor.execute(f"SELECT 1 FROM {side}.events WHERE id = {key}"))

    def close(self) -> None:
        """End the reader's session."""
        while self._reader:
            self._reader.pop().close()


@contextmanager
def served(folder: Path) -> Iterator[IntoMysql]:
    """A server with its data in a folder of its own."""
    with MysqlServer(options=OPTIONS) as server, closing(IntoMysql(server)) as into:
        yield into
