"""Builds the engine's job and settings from a replicator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings

from replicators.config import Options, source_plugin, target_plugin
from replicators.connectors.params import secret_names
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.models import Replicator
from replicators.services import params_of, source_of, target_of
from runners.engine.holding import Holding, WhenStalled
from runners.engine.job import JobOptions
from runners.engine.settings import RunnerSettings
from runners.engine.tasks.sharing.fitness import can_share
from runners.metrics.retention import retention_of

if TYPE_CHECKING:
    from runners.engine.run import Job

LEAST_HEAP_MEGABYTES, LEAST_HELD = 512, 1 << 20
TASKS, COPIES, HEAP_A_ROW = 2, 8, 32
"""Tasks at a time, how often a task has what it reads, and how often the heap has a row."""


def job_of(replicator: Replicator) -> Job:
    """The engine's job. Imports the engine, so only a run's own process calls it."""
    from runners.engine.run import Job

    options = Options.parse(replicator.options)
    source = source_plugin(replicator.source_kind)
    return Job(
        replicator=str(replicator.pk),
        name=replicator.name,
        slot=replicator.slot_name,
        source=source,
        source_params=source_of(replicator),
        target=target_plugin(replicator.target_kind),
        target_params=target_of(replicator),
        options=JobOptions(
            schema_changes=SchemaPolicy(options.schema_changes),
            drops_vanished=options.vanished_tables == "drop",
            copies_first=options.first_copy == "copy",
            takes_over=options.first_copy == "take_over",
            consistent=options.consistent == "on",
            holding=Holding(
                WhenStalled(options.when_stalled),
                settings.RUNNER.stalled_seconds,
                retention_of({}, replicator.options).gives_up_hours,
                holds_log=source.capabilities.holds_log,
            ),
            source_limit_bytes=round(options.source_gigabytes * 1e9),
        ),
    )


def settings_of(replicator: Replicator) -> RunnerSettings:
    """The engine's settings with the replicator's own options."""
    options = Options.parse(replicator.options)
    return replace(
        within_memory(settings.RUNNER, options.memory_megabytes),
        seal_seconds=options.seal_seconds,
        merge_seconds=options.merge_seconds,
        keep_seconds=options.keep_hours * 3600,
        retry_seconds=options.retry_minutes * 60,
        log_limit_bytes=round(options.log_gigabytes * 1e9) or settings.RUNNER.log_limit_bytes,
        spark_executor_memory=_megabytes(options.executor_megabytes)
        or settings.RUNNER.spark_executor_memory,
        spark_executor_cores=round(options.executor_cores) or settings.RUNNER.spark_executor_cores,
        spark_executor_count=round(options.executor_count) or settings.RUNNER.spark_executor_count,
    )


def _megabytes(number: float) -> str:
    return f"{round(number)}m" if number else ""


def shares_spark(replicator: Replicator) -> bool:
    """Whether its runs use the machine's shared Spark: where that is asked for, and Spark's process
    needs nothing that is this replicator's alone."""
    known, asked = settings.RUNNER, Options.parse(replicator.options).spark
    is_asked = (settings.SPARK if asked == "default" else asked) == "shared"
    if not is_asked or known.spark_remote or not known.spark_master.startswith("local"):
        return False
    return can_share(target_plugin(replicator.target_kind), target_of(replicator))


def within_memory(known: RunnerSettings, megabytes: float) -> RunnerSettings:
    """The settings for a run that may have so much memory. The JVM gets half, or what it needs
    to start. A task that reads a segment or change files has them several times, and so many tasks
    run at a time as there are cores. Larger values than the settings' own are not used."""
    if not megabytes:
        return known
    heap = max(LEAST_HEAP_MEGABYTES, round(megabytes / 2))
    held = max(LEAST_HELD, round(megabytes / 2 * (1 << 20) / TASKS / COPIES))
    return replace(
        known,
        spark_driver_memory=f"{heap}m",
        row_limit_bytes=min(known.row_limit_bytes, (heap << 20) // HEAP_A_ROW),
        seal_bytes=min(known.seal_bytes, held),
        task_bytes=min(known.task_bytes, held),
    )


def secrets_of(replicator: Replicator) -> tuple[str, ...]:
    """The secret values of both connectors, to be scrubbed from logs."""
    found: list[str] = []
    for role, plugin in (
        ("source", source_plugin(replicator.source_kind)),
        ("target", target_plugin(replicator.target_kind)),
    ):
        values = params_of(replicator, role)
        found += [str(values[n]) for n in secret_names(plugin.params) if values.get(n)]
    return tuple(found)
