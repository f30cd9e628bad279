"""Which replicators can share a Spark: those that need nothing of its process for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replicators.connectors import registry
from replicators.connectors.target import TargetPlugin

_EXTENSIONS = "spark.sql.extensions"
_OF_PROCESS = ("spark.hadoop.",)


def server_jars(folder: str) -> tuple[str, ...]:
    """The names of all jars that set-up fetched for Spark."""
    return tuple(path.stem for path in sorted(Path(folder).glob("*.jar")))


def server_conf() -> dict[str, str]:
    """The settings that a session can't have for itself, of all targets together."""
    found: dict[str, str] = {}
    extensions: dict[str, None] = {}
    for conf in _confs():
        found |= {k: v for k, v in conf.items() if k.startswith(_OF_PROCESS)}
        extensions |= dict.fromkeys(filter(None, conf.get(_EXTENSIONS, "").split(",")))
    return {**found, **({_EXTENSIONS: ",".join(extensions)} if extensions else {})}


def _confs() -> list[Mapping[str, str]]:
    with TemporaryDirectory() as folder:
        return [
            target.spark_conf(params)
            for target in registry.targets().values()
            for params in target.rehearsals(folder)
        ]


def can_share(target: TargetPlugin, params: Any) -> bool:
    """Whether a replicator into this target can share. It can't where the JVM needs keys or a
    password that are this replicator's alone, or settings that other replicators don't have."""
    with TemporaryDirectory() as folder:
        if target.driver_properties(params, folder) or target.driver_environment(params):
            return False
    ours = server_conf()
    conf = target.spark_conf(params)
    fixed = {k: v for k, v in conf.items() if k.startswith(_OF_PROCESS)}
    asked = filter(None, conf.get(_EXTENSIONS, "").split(","))
    return fixed.items() <= ours.items() and set(asked) <= set(ours.get(_EXTENSIONS, "").split(","))
