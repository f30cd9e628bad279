"""MariaDB and MySQL servers for the tests, each a local process with a data folder, a port and an
account of its own."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pymysql

from demo.postgres import enterable_folder, free_port, server_account
from setup.machine import mysql_root

HOST = "127.0.0.1"
ADMIN, PASSWORD = "admin", "admin-pass%1"
START_SECONDS = 60.0
DEFAULTS = {
    "bind-address": HOST,
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "character-set-server": "utf8mb4",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-buffer-pool-size": "64M",
    "sync-binlog": "0",
    "max-connections": "200",
    "log-bin-trust-function-creators": "ON",
}
_NUMBERS = itertools.count(1)
_INSTALLED: dict[tuple[str, ...], Path] = {}


def as_account() -> list[str]:
    """What makes a server unprivileged, and end with us."""
    account = server_account()
    if account is None:
        return ["setpriv", "--pdeathsig", "KILL"]
    who = [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    return ["setpriv", *who, "--pdeathsig", "KILL"]


@dataclass
class SqlServer:
    """One server: `with MariadbServer() as server: server.execute("SELECT 1")`. Options are those
    of the command line."""

    options: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    flavour = ""

    def start(self) -> Self:
        """Make the data folder where there is none, start, and wait for connections."""
        is_fresh = self.folder is None
        if is_fresh:
            self.port = free_port(HOST)
            self.folder = enterable_folder(f"replicators-{self.flavour}-")
            self._copy_installed(self.folder)
        self._launch()
        if is_fresh:
            self._make_admin()
        return self

    def _copy_installed(self, folder: Path) -> None:
        """Copy a data folder that this process installed once: an installation takes seconds. The
        copy has no `auto.cnf`, so that each server has a UUID of its own."""
        key = (self.flavour, *self._names())
        if key not in _INSTALLED:
            made = enterable_folder(f"replicators-{self.flavour}-new-")
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            self._install(made)
            (made / "data" / "auto.cnf").unlink(missing_ok=True)
            _INSTALLED[key] = made
        copy = ["cp", "--archive", str(_INSTALLED[key] / "data"), str(folder / "data")]
        subprocess.run(copy, check=True)

    def _names(self) -> list[str]:
        """Options that can't be changed after the installation."""
        return []

    def _install(self, folder: Path) -> None:
        raise NotImplementedError

    def _command(self, folder: Path) -> list[str]:
        raise NotImplementedError

    def _make_admin(self) -> None:
        raise NotImplementedError

    def _arguments(self, inside: Path) -> list[str]:
        values = {
            **DEFAULTS,
            "datadir": f"{inside}/data",
            "socket": f"{inside}/sock",
            "pid-file": f"{inside}/pid",
            "port": str(self.port),
            "tmpdir": str(inside),
            **self.options,
        }
        return [f"--{k}={v}" for k, v in values.items()]

    def _launch(self) -> None:
        assert self.folder is not None
        log = (self.folder / "server.log").open("ab")
        with log:
            self.process = subprocess.Popen(
                self._command(self.folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, pymysql.err.OperationalError):
                self._greet()
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.flavour} did not start\n{self.log_text()[-3000:]}")
            time.sleep(0.05)

    def _greet(self) -> None:
        """An answer, even a refusal of this login, says that it accepts connections."""
        try:
            pymysql.connect(host=HOST, port=self.port, user="nobody", connect_timeout=5).close()
        except pymysql.err.OperationalError as err:
            if err.args[0] not in {1045, 1698}:
                raise

    def log_text(self) -> str:
        """The server's own log."""
        assert self.folder is not None
        return (self.folder / "server.log").read_text(errors="replace")

    def stop(self) -> None:
        """Shut down cleanly."""
        self._end("terminate")

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        self._end("kill")

    def _end(self, how: str) -> None:
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        getattr(process, how)()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def close(self) -> None:
        """End, and remove the data."""
        self.kill()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self, database: str | None = None, **more: Any) -> pymysql.Connection:
        """An autocommit connection as administrator."""
        values = {"user": ADMIN, "password": PASSWORD, "autocommit": True, **more}
        return pymysql.connect(host=HOST, port=self.port, database=database, **values)

    def execute(self, *statements: str, database: str | None = None) -> list[Any]:
        """Run statements; the rows of the last one."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


class MariadbServer(SqlServer):
    """The machine's MariaDB."""

    flavour = "mariadb"

    def _install(self, folder: Path) -> None:
        command = [
            *as_account(), "mariadb-install-db", "--no-defaults", f"--datadir={folder}/data",
            "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin",
            f"--tmpdir={folder}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, folder: Path) -> list[str]:
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        return [*as_account(), program, "--no-defaults", *self._arguments(folder)]

    def _make_admin(self) -> None:
        with (
            pymysql.connect(host=HOST, port=self.port, user="root", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("DELETE FROM mysql.global_priv WHERE User = ''")
            cursor.execute("FLUSH PRIVILEGES")
            cursor.execute(f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION")


class MysqlServer(SqlServer):
    """MySQL from the folder that set-up unpacked, run with the libraries that lie there."""

    flavour = "mysql"

    def _program(self) -> list[str]:
        root = mysql_root()
        assert root is not None, "MySQL is missing: python -m setup --tests"
        libraries = root / "usr/lib/x86_64-linux-gnu"
        return [
            *as_account(), str(libraries / "ld-linux-x86-64.so.2"), "--library-path",
            f"{libraries}:{root}/usr/lib/mysql/private", str(root / "usr/sbin/mysqld"),
            "--no-defaults",
            f"--basedir={root}/usr", f"--lc-messages-dir={root}/usr/share/mysql",
            "--secure-file-priv=",
            "--innodb-redo-log-capacity=64M",
        ]  # fmt: skip

    def _names(self) -> list[str]:
        return [f"--{k}={v}" for k, v in self.options.items() if k == "lower-case-table-names"]

    def _install(self, folder: Path) -> None:
        command = [*self._program(), f"--datadir={folder}/data", "--initialize-insecure"]
        command += self._names()
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, folder: Path) -> list[str]:
        more = ["--mysqlx=OFF", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
        return [*self._program(), *more, *self._arguments(folder)]

    def _make_admin(self) -> None:
        with (
            pymysql.connect(host=HOST, port=self.port, user="root", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute(f"CREATE USER {ADMIN}@'%' IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO {ADMIN}@'%' WITH GRANT OPTION")


@dataclass(frozen=True, slots=True)
class SqlDatabase:
    """A fresh database on a test server, and how to reach it."""

    server: SqlServer = field(repr=False)
    name: str

    @property
    def params(self) -> dict[str, Any]:
        """As the source's parameters name them."""
        return {"host": HOST, "port": self.server.port, "user": ADMIN, "password": PASSWORD}

    def connect(self, **more: Any) -> pymysql.Connection:
        """An autocommit connection as administrator."""
        return self.server.connect(self.name, **more)

    def execute(self, *statements: str) -> list[Any]:
        """Run statements; the rows of the last one."""
        return self.server.execute(*statements, database=self.name)


@contextmanager
def fresh_sql_database(server: SqlServer) -> Iterator[SqlDatabase]:
    """A database of its own, dropped at the end. A server that is down is started first."""
    if server.process is None:
        server.start()
    name = f"t{os.getpid()}_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name}")
    try:
        yield SqlDatabase(server, name)
    finally:
        if server.process is None:
            server.start()
        server.execute(f"DROP DATABASE IF EXISTS {name}")
