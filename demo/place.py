"""The demo's folder (`.run`) and the environment of its processes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.postgres import enterable_folder, server_account
from setup.machine import java_home

ROOT = Path(__file__).resolve().parents[1]
KEPT_ON_RESET = frozenset({"lock"})


@dataclass(frozen=True)
class Place:
    """The folder of one demo (or of `make dev`). Everything that the demo makes is in it, or is
    named in it."""

    folder: Path = ROOT / ".run"
    is_dev: bool = False

    @property
    def logs(self) -> Path:
        """The folder of logs, with one file for each process."""
        return self.folder / "logs"

    @property
    def result(self) -> Path:
        """The file with what a person or a program needs to use the running demo."""
        return self.folder / "demo.json"

    @property
    def processes(self) -> Path:
        """The file with the pids and start times of our processes. The next start reads it if the
        parent crashed."""
        return self.folder / "processes.json"

    def prepare(self) -> None:
        """Make the folders. Only we can read them."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.folder.chmod(0o700)
        for name in ("logs", "var", "changelog", "warehouse", "broker", "spark"):
            (self.folder / name).mkdir(exist_ok=True)

    def reset(self) -> None:
        """Remove everything. No part of the demo may be running."""
        recorded = self.folder / "postgres.folder"
        if recorded.exists():
            shutil.rmtree(recorded.read_text().strip(), ignore_errors=True)
        for path in self.folder.iterdir() if self.folder.exists() else ():
            if path.name in KEPT_ON_RESET:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def postgres_folder(self) -> Path:
        """The server's folder. It is in `.run`; but if we are root, it is in a place that the
        server's account can enter.

        If this folder has vanished, the demo's state is removed too: the target's rows would have
        no source.
        """
        if server_account() is None:
            return self.folder / "postgres"
        recorded = self.folder / "postgres.folder"
        if recorded.exists():
            known = Path(recorded.read_text().strip())
            if known.is_dir():
                return known
            self.reset()
            self.prepare()
        folder = enterable_folder("replicators-demo-")
        recorded.write_text(str(folder))
        return folder

    def secret(self, name: str) -> Path:
        """The file of a secret. It is made at the first call."""
        path = self.folder / name
        if not path.exists():
            self.write_private(path, secrets.token_urlsafe(48))
        return path

    def read(self, path: Path) -> dict[str, Any]:
        """Read one of our JSON files; empty if it is missing or incomplete."""
        try:
            return dict(json.loads(path.read_text()))
        except (OSError, ValueError):
            return {}

    def write_private(self, path: Path, text: str) -> None:
        """Replace a file in one step. Only we can read it."""
        draft = path.with_name(path.name + ".new")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        draft.replace(path)

    def environment(self, *, redis_url: str) -> Mapping[str, str]:
        """The environment of every process of the demo."""
        ours = {
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
            "REPLICATOR_JARS_DIR": os.environ.get(
                "REPLICATOR_JARS_DIR", str(ROOT / "var" / "jars")
            ),
            "REPLICATOR_DEMO_FOLDER": str(self.folder),
            "PYTHONUNBUFFERED": "1",
        }
        java = java_home()
        if java is not None:
            ours["JAVA_HOME"] = str(java)
        if self.is_dev:
            return {**os.environ, **ours, "DEBUG": "true"}
        ours |= {
            "DEBUG": "false",
            "HTTPS": "false",
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "DATABASE_URL": f"sqlite:///{self.folder / 'replicators.sqlite3'}",
            "SECRET_KEY_FILE": str(self.secret("secret_key")),
            "REPLICATOR_SECRET_KEY_FILE": str(self.secret("replicator_secret_key")),
            "REPLICATOR_VAR_DIR": str(self.folder / "var"),
            "REPLICATOR_LOG_URL": str(self.folder / "changelog"),
            "REPLICATOR_SPARK_LOCAL_DIR": str(self.folder / "spark"),
            "REPLICATOR_STOP_GRACE_SECONDS": "12",
        }
        return {**os.environ, **ours}
