"""What schemathesis finds about REST: requests made from docs/openapi.yaml, good and bad ones,
against a server that really runs.

Each answer must be one that the description has, with the form that it says; what breaks the
description must be refused; nothing is a
500. What is known and stays is named in `MEANING`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.web_process import web_process

ROOT = Path(__file__).resolve().parents[2]
NO_BROKER = "redis://127.0.0.1:9/0"  # the discard port: nobody answers there
EXAMPLES = 15
RUN_SECONDS = 1_200

MEANING = {
    "which plugins there are, and which parameters they take, is not in the description": (
        "assess", "connections_test", "sources_tables", "sources_tables_describe", "drafts_create",
        "drafts_partial_update",
        "replicators_create", "replicators_partial_update",
    ),
    "a draft that is not whole yet has nothing to ask or to deploy": (
        "drafts_assess_create", "drafts_deploy_create", "drafts_connections_test_create",
        "drafts_source_tables_create",
        "drafts_source_tables_describe_create",
    ),
    "a filter, a column or a kind of change has rules of its own": ("replicators_tables_add",
    "replicators_tables_change"),
    "exactly one of three fields is said": ("replicators_resync_create",),
    "the longest life of a token is a setting": ("tokens_create",),
    "names and passwords have rules of their own, and groups are those that there are": (
        "users_create", "users_partial_update",
    ),
}  # fmt: skip
"""Why a request that fits the description may still be refused with 400
(`positive_data_acceptance`), by operation."""

_EVERYWHERE = """
# A text with a NUL is refused everywhere; no description of a text says so.
generation.allow-x00 = false
# 422: the key was used for another request.
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 414, 422, 429, 503]
# 414: an address that is too long for gunicorn, which does not look into it.
checks.negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 414, 415, 422, 428, 429, "5xx"]
"""  # noqa: E501

_SEED = """
import sys
from django.contrib.auth.models import User
from replicators.tokens import token_create
from tests.app.factories import make_replicator
make_replicator()
boss = User.objects.create_superuser("boss", password="correct-horse-battery")
sys.stdout.write(token_create(user=boss, name="fuzz")[1])
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A web process and a token of an administrator."""

    url: str
    token: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """gunicorn as in production, on a database of its own."""
    place = tmp_path_factory.mktemp("rest")
    environment = {
        **os.environ,
        "REPLICATOR_VAR_DIR": str(place),
        "DATABASE_URL": f"sqlite:///{place}/app.sqlite3",
        "DEBUG": "false",
        "HTTPS": "false",
        "SECRET_KEY": "of-this-test-alone" * 4,
        "REPLICATOR_SECRET_KEY": "of-this-test-alone-too" * 3,
        "REDIS_URL": NO_BROKER,
        "REPLICATOR_SHOW_HIDDEN_PLUGINS": "true",
        "LOG_LEVEL": "ERROR",
        "PYTHONPATH": str(ROOT),
    }
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    made = subprocess.run(
        [*manage, "shell", "-v0", "-c", _SEED],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with web_process(environment, "/healthz") as url:
        yield Served(url, made.stdout.strip())


def _settings(path: Path) -> Path:
    """The named list as schemathesis' settings."""
    parts = [
        f"# {reason}\n[[operations]]\ninclude-operation-id = {list(names)!r}\n"
        "checks.positive_data_acceptance.enabled = false\n"
        for reason, names in MEANING.items()
    ]
    path.write_text("\n".join([_EVERYWHERE, *parts]))
    return path


@pytest.mark.long
@pytest.mark.timeout(RUN_SECONDS + 120)
def test_schemathesis_finds_nothing_in_many_minutes(served: Served, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file",
        str(_settings(tmp_path / "schemathesis.toml")),
        "run", str(ROOT / "docs" / "openapi.yaml"), "--url", served.url,
        "--header", f"Authorization: Bearer {served.token}",
        "--phases", "examples,coverage,fuzzing,stateful",
        "--max-examples", str(EXAMPLES), "--seed", os.environ["SEED"],
        "--suppress-health-check", "all", "--continue-on-failure", "--no-color",
        "--exclude-operation-id", "tokens_destroy",  # it would revoke the token that it asks with
    ]  # fmt: skip
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-2_000:]


def test_the_named_list_names_operations_that_are_there() -> None:
    text = (ROOT / "docs" / "openapi.yaml").read_text()
    for names in MEANING.values():
        for name in names:
            assert f"operationId: {name}\n" in text, name
