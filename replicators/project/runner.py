"""Makes the engine's `RunnerSettings` from the environment. Only this module names those
variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from replicators.project.env import env_bytes, env_int, env_seconds, env_text
from runners.engine.settings import RunnerSettings

_PATHS = frozenset({"log_url", "log_spool_dir", "jars_dir", "spark_local_dir", "spark_shared_dir"})
_LEAST = {
    "seal_seconds": 0.1,
    "seal_bytes": 1,
    "task_bytes": 1,
    "merge_parallel": 1,
    "rows_per_chunk": 1,
    "row_limit_bytes": 1,
    "log_limit_bytes": 1,
    "table_limit_bytes": 1,
    "heartbeat_seconds": 0.1,
    "catalog_seconds": 0.1,
    "step_deadline_seconds": 1,
    "lease_seconds": 5,
    "maintain_every_commits": 1,
}
"""The least values with which a run can work; for the others it is 0."""


def variable(name: str) -> str:
    """The environment variable of a field of `RunnerSettings`."""
    return f"REPLICATOR_{name.upper()}"


def _reader(name: str) -> Callable[..., Any]:
    if name.endswith("_seconds"):
        return env_seconds
    if name.endswith("_bytes"):
        return env_bytes
    return env_int


def _value(field: Field[Any], base: Path) -> Any:
    if not isinstance(field.default, str):
        least = _LEAST.get(field.name, 0)
        return _reader(field.name)(variable(field.name), field.default, minimum=least)
    text = env_text(variable(field.name), field.default)
    if text and field.name in _PATHS and "://" not in text:
        return str((base / text).resolve())
    return text


def runner_settings(base: Path) -> RunnerSettings:
    """The settings. Paths without a scheme are relative to `base`."""
    return RunnerSettings(**{f.name: _value(f, base) for f in fields(RunnerSettings)})
