"""System checks of what the program needs around it, in the order in which a person would mend the
faults."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from replicators.connectors import registry
from replicators.private import private_folder

Found = list[CheckMessage]


def plugins(_: Any = None) -> Found:
    """Every plugin's folder is sound, and so are its texts."""
    try:
        registry.messages()
    except (LookupError, ImportError) as err:
        return [Error(f"A connector can't be loaded: {err}", id="replicators.E002")]
    hint = "Install a version that fits, or remove the package, then restart the program."
    return [Warning(text, hint=hint, id="replicators.W005") for text in registry.faults()]


def log_folder(_: Any = None) -> Found:
    """The change log can be written. Its folder is made where it is missing."""
    url = urlparse(settings.RUNNER.log_url)
    if url.scheme not in ("", "file"):
        # Asking a store here would make every start wait for it. A run reports its faults.
        return []
    folder = Path(url.path)
    with contextlib.suppress(OSError):
        private_folder(folder)
    if os.access(folder, os.W_OK | os.X_OK):
        return []
    return [
        Warning(
            f"The folder of the change log can't be written: {folder}",
            hint="Give this user the right to write it, or set REPLICATOR_LOG_URL.",
            id="replicators.W001",
        )
    ]


def java(_: Any = None) -> Found:
    """Java is there, unless Spark runs elsewhere."""
    home = os.environ.get("JAVA_HOME")
    is_found = Path(home, "bin", "java").exists() if home else bool(shutil.which("java"))
    if settings.RUNNER.spark_remote or is_found:
        return []
    return [
        Warning(
            "Java was not found: no replicator can run on this machine.",
            hint="Install Java 17 (apt-get install openjdk-17-jre-headless) or set JAVA_HOME.",
            id="replicators.W002",
        )
    ]


def broker(_: Any = None) -> Found:
    """A broker is set and answers."""
    if not settings.REDIS_URL:
        return [
            Warning(
                "REDIS_URL is not set: pages work, but nothing starts or stops.",
                hint="Set REDIS_URL, or start everything with `make dev`.",
                id="replicators.W003",
            )
        ]
    from redis import Redis, RedisError

    try:
        with Redis.from_url(settings.REDIS_URL, socket_connect_timeout=2) as client:
            client.ping()
    except (RedisError, OSError, ValueError):
        return [
            Warning(
                "The broker of REDIS_URL does not answer.",
                hint="Start it, or correct REDIS_URL.",
                id="replicators.W004",
            )
        ]
    return []


ALWAYS: tuple[Callable[[], Found], ...] = (plugins,)
DEPLOY: tuple[Callable[[], Found], ...] = (log_folder, java, broker)


@register(Tags.compatibility)
def always(app_configs: Sequence[AppConfig] | None, **_: Any) -> Found:
    """Checks at each start: they are cheap, and without these things nothing works."""
    return [message for check in ALWAYS for message in check()]


@register(Tags.security, deploy=True)
def deploy(app_configs: Sequence[AppConfig] | None, **_: Any) -> Found:
    """Checks of `check --deploy`: what surrounds the program."""
    return [message for check in DEPLOY for message in check()]
