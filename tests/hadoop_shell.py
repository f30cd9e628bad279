"""Hadoop's own shell, with the settings that a store gives to Spark: a JVM of two seconds."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

from replicators.targets.lakehouse.stores import Store
from setup import machine
from setup.steps import JARS

_SPARKS = ("hadoop-client", "slf4j-api", "jcl-over", "commons-", "jackson-", "log4j-", "http")
_SETTING = "spark.hadoop."


def hadoop(store: Store, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the shell says to a command. `folder` takes the files of secrets."""
    spark = Path(pyspark.__file__).parent / "jars"
    found = [p for name in _SPARKS for p in spark.glob(f"{name}*.jar")]
    found += [p for name in store.jars for p in JARS.glob(f"{name}*.jar")]
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "core-site.xml").write_text(_written(store.spark_conf()))
        properties = [f"-D{n}={v}" for n, v in store.driver_properties(str(folder)).items()]
        java = machine.java_home()
        command = [
            str(java / "bin" / "java") if java else "java", "-Xmx256m", *properties,
            "-cp", ":".join([home, *map(str, found)]), "org.apache.hadoop.fs.FsShell", *words,
        ]  # fmt: skip
        around = {**os.environ, **store.driver_environment()}
        return subprocess.run(
            command, env=around, capture_output=True, text=True, timeout=120, check=False
        )


def _written(settings: Mapping[str, str]) -> str:
    lines = [
        f"<property><name>{escape(n.removeprefix(_SETTING))}</name><value>{escape(v)}</value>"
        "</property>"
        for n, v in settings.items()
    ]
    return f"<configuration>{''.join(lines)}</configuration>"
