"""Makes the engine's `RunnerSettings` from the environment; the only place that names those variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from replicators.project.env import env_bytes, env_int, env_seconds, env_text
from runners.engine.settings import RunnerSettings

_PATHS = frozenset({"log_url", "log_spool_dir", "jars_dir", "spark_local_dir"})


def variable(name: str) -> str:
    """The environment variable of a field of `RunnerSettings`."""
    return f"REPLICATOR_{name.upper()}"


def _reader(name: str) -> Callable[[str, Any], Any]:
    if name.endswith("_seconds"):
        return env_seconds
    if name.endswith("_bytes"):
        return env_bytes
    return env_int


def _value(field: Field[Any], base: Path) -> Any:
    if not isinstance(field.default, str):
        return _reader(field.name)(variable(field.name), field.default)
    text = env_text(variable(field.name), field.default)
    if text and field.name in _PATHS and "://" not in text:
        return str((base / text).resolve())
    return text


def runner_settings(base: Path) -> RunnerSettings:
    """The settings; paths without a scheme are relative to `base`."""
    return RunnerSettings(**{f.name: _value(f, base) for f in fields(RunnerSettings)})
