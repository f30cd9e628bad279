"""Settings from the environment: wrong values are named, and production refuses what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection

from replicators.project import checks
from replicators.project.env import (
    env_bool,
    env_bytes,
    env_database,
    env_int,
    env_list,
    env_seconds,
    env_secret,
    env_text,
)
from replicators.project.runner import runner_settings
from setup import processes

ROOT = Path(__file__).parents[2]


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` in a clean environment."""
    known = {"PATH": os.environ["PATH"], "DATABASE_URL": "sqlite://:memory:", **environment}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=known, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_values_are_read_with_their_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"A": "10m", "B": "64M", "C": "yes", "D": "7", "E": "a, b"}.items():
        monkeypatch.setenv(name, value)
    assert env_seconds("A", 1) == 600
    assert env_bytes("B", 1) == 64 << 20
    assert env_bool("C", False) is True
    assert env_int("D", 1) == 7
    assert env_list("E") == ["a", "b"]
    assert env_text("MISSING_ONE", "x") == "x"


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda: env_seconds("X", 1), "soon"),
        (lambda: env_bytes("X", 1), "-1"),
        (lambda: env_bool("X", True), "maybe"),
        (lambda: env_int("X", 1, minimum=1, maximum=9), "10"),
        (lambda: env_text("X", choices=("a",)), "b"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    read: Any, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=f"X='{value}' is not valid; allowed: "):
        read()


def test_a_secret_may_lie_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_text("from the file\n")
    monkeypatch.setenv("S_FILE", str(path))
    assert env_secret("S") == "from the file"
    monkeypatch.setenv("S_FILE", str(tmp_path / "missing"))
    with pytest.raises(ImproperlyConfigured, match="can't be read"):
        env_secret("S")


def test_the_engines_knobs_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLICATOR_SEAL_BYTES", "1M")
    monkeypatch.setenv("REPLICATOR_KEEP_SECONDS", "2h")
    monkeypatch.setenv("REPLICATOR_LOG_URL", "s3://bucket/log")
    monkeypatch.delenv("REPLICATOR_JARS_DIR", raising=False)
    made = runner_settings(Path("/srv/app"))
    assert (made.seal_bytes, made.keep_seconds, made.log_url) == (
        1 << 20,
        7200.0,
        "s3://bucket/log",
    )
    assert made.jars_dir == "/srv/app/var/jars"


SERVES = {
    "web": ["-c", "import replicators.project.wsgi"],
    "worker": ["-m", "celery", "-A", "replicators.project", "worker", "-P", "solo"],
    "beat": ["-m", "celery", "-A", "replicators.project", "beat", "--pidfile="],
}


@pytest.mark.parametrize("process", SERVES)
def test_what_serves_is_production_unless_told_otherwise_and_refuses_without_keys(
    process: str, tmp_path: Path
) -> None:
    """Guards `require_keys`: DEBUG was on unless it was turned off, with keys made in a folder. The
    web server makes no system checks, and would fail at the first password that it is to store."""
    (tmp_path / "replicator_secret_key").write_text("made for development")
    done = subprocess.run(
        [sys.executable, *SERVES[process]],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        env={
            "PATH": os.environ["PATH"], "DATABASE_URL": "sqlite://:memory:",
            "REPLICATOR_VAR_DIR": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "replicators.project.settings",
        },
    )  # fmt: skip
    assert done.returncode != 0
    assert "SECRET_KEY (or SECRET_KEY_FILE, a file that holds it): signs sessions." in done.stderr
    assert f"REPLICATOR_SECRET_KEY_FILE={tmp_path}/replicator_secret_key goes on" in done.stderr
    assert "secrets.token_urlsafe" in done.stderr and "make demo" in done.stderr


def test_commands_need_no_keys(tmp_path: Path) -> None:
    """Guards `settings`: a build makes the static files, and a check the schema, where no secret
    is."""
    done = manage("makemigrations", "--check", "--dry-run", REPLICATOR_VAR_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "keys are made for development only"


def test_the_programs_own_files_are_its_users_alone(tmp_path: Path) -> None:
    """Guards `replicators.private`: SQLite makes a file that everybody can read."""
    var = tmp_path / "new" / "var"
    done = manage(
        "migrate", "-v0", DEBUG="true", REPLICATOR_VAR_DIR=str(var),
        DATABASE_URL=f"sqlite:///{var}/a.sqlite3"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = {p.name: oct(p.stat().st_mode & 0o777) for p in (var.parent, var, *var.iterdir())}
    assert made.pop("new") == made.pop("var") == "0o700"
    assert "a.sqlite3" in made and set(made.values()) == {"0o600"}, made


def test_more_than_a_hundred_runs_are_no_mistake() -> None:
    """Guards `MAX_RUNS`: it counts the runs of all machines, so a limit of one machine's size stops
    the start."""
    assert manage("check", REPLICATOR_MAX_RUNS="500").returncode == 0
    assert manage("check", REPLICATOR_MAX_RUNS="0").returncode != 0


def test_a_machines_worker_watches_as_many_runs_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `processes.worker_runs`: with the number of all machines each of two would start every
    run that the other has not."""
    monkeypatch.setenv("REPLICATOR_MAX_RUNS", "200")
    monkeypatch.delenv("REPLICATOR_WORKER_RUNS", raising=False)
    assert processes.worker_runs()[-1] == "200"
    monkeypatch.setenv("REPLICATOR_WORKER_RUNS", "20")
    assert processes.worker_runs()[-1] == "20"


def test_a_wrong_level_of_the_logs_stops_the_start() -> None:
    done = manage("check", LOG_LEVEL="loud")
    assert "LOG_LEVEL='loud' is not valid; allowed: DEBUG, INFO, WARNING" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("MERGE_PARALLEL", "0", "a whole number from 1"),
        ("ROWS_PER_CHUNK", "0", "a whole number from 1"),
        ("LEASE_SECONDS", "0", "a time of at least 5 s"),
        ("SEAL_BYTES", "0", "at least 1 bytes"),
    ],
)
def test_a_knob_that_no_run_could_work_with_is_refused(
    name: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the limits in `project/runner.py`: a run with no room for one merge would fail for
    ever, far from what is wrong."""
    monkeypatch.setenv(f"REPLICATOR_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=f"REPLICATOR_{name}='0' .* allowed: {allowed}"):
        runner_settings(Path("/srv/app"))


@pytest.mark.parametrize("url", ["postgres://me:hid/den@h:port/d", "somewhere"])
def test_a_wrong_database_url_is_named_and_its_password_is_not(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL is not valid; allowed") as caught:
        env_database("DATABASE_URL", "")
    assert "hid/den" not in f"{caught.value}{caught.value.__cause__}"


def test_check_deploy_is_clean_in_production(tmp_path: Path, redis_url: str) -> None:
    done = manage(
        "check", "--deploy", "--fail-level", "WARNING",
        DEBUG="false",
        SECRET_KEY="aB3-xY7_kL9.mN2/pQ5+rS8=tU4!vW6@zZ1#cD0$eF-gH_iJ.jK/lM+nO",
        REPLICATOR_SECRET_KEY="long and random",
        REDIS_URL=redis_url,
        REPLICATOR_LOG_URL=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_generated_texts_are_up_to_date() -> None:
    call_command("configuration_docs", "--check")


def test_checks_name_what_is_missing(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = ""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found = [m.id for check in (*checks.ALWAYS, *checks.DEPLOY) for m in check()]
    assert found == ["replicators.W002", "replicators.W003"]


def test_a_broker_that_does_not_answer_is_named(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert [m.id for m in checks.broker()] == ["replicators.W004"]


@pytest.mark.django_db
def test_sqlite_writes_wait_for_the_disk() -> None:
    """A position that is recorded stays recorded when the machine loses power (CORRECTNESS 27)."""
    if connection.vendor != "sqlite":
        pytest.skip("the tests run on another database")
    full = 2
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (full,)
