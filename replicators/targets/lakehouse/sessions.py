"""Spark sessions of one call each: tokens travel by session conf, so calls must not share one (CORRECTNESS 14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PER_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    "spark.sql.variable.substitute": "false",
}
"""With the last, `${...}` in a name or in a key's literal stays: Spark replaces it in every text by itself, before it parses it."""


def fresh(spark: Any, conf: Mapping[str, str]) -> Any:
    """A session beside `spark` with a conf of its own, in the same process or over Spark Connect."""
    session = spark.newSession() if hasattr(spark, "newSession") else spark.cloneSession()
    for name, value in {**PER_SESSION, **conf}.items():
        session.conf.set(name, value)
    return session
