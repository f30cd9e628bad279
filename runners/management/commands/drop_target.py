"""Drops the target tables of a replicator that is being deleted. It is a process of its own, since
it needs Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Q

from replicators.connectors.model.schema import TableId
from replicators.connectors.target import TargetTable, Watermarked
from replicators.connectors.tasks import Tasks
from replicators.models import Replicator
from runners.models import Table
from runners.supervision.jobs import job_of, settings_of

if TYPE_CHECKING:
    from runners.engine.job import Job


class Command(BaseCommand):
    """Idempotent; fails where a table could not be dropped."""

    help = "Drops the target tables of a deleted replicator (internal)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The replicator."""
        parser.add_argument("replicator_id")

    def handle(self, *args: Any, **options: Any) -> None:
        """Drop them all."""
        from runners.engine.changelog.segments import target_files_of
        from runners.engine.tasks.on_spark import SparkTasks
        from runners.engine.tasks.opening import properties_for
        from runners.engine.tasks.spark import open_session

        replicator = Replicator.objects.exclude(deleting_since=None).get(
            pk=options["replicator_id"]
        )
        job = job_of(replicator)
        settings = settings_of(replicator)
        with properties_for(job, settings) as properties:
            spark = open_session(
                settings,
                f"drop {replicator.pk}",
                job.target.jars(job.target_params),
                job.target.spark_conf(job.target_params),
                properties,
                job.target.driver_environment(job.target_params),
            )
            try:
                folder = target_files_of(settings.log_url, str(replicator.pk))
                _drop(job, replicator, SparkTasks(spark, folder))
            finally:
                spark.stop()


def _drop(job: Job, replicator: Replicator, tasks: Tasks) -> None:
    target = job.target.writer(job.target_params, tasks)
    # A table that was removed earlier is skipped where its target table was to stay.
    wanted = Q(is_chosen=True) | Q(is_drop_asked=True)
    for row in Table.objects.filter(wanted, replicator=replicator):
        name = TableId(row.schema_name, row.name)
        target.drop(TargetTable(name, str(replicator.pk), row.generation, row.table_uuid))
    if isinstance(target, Watermarked):
        target.forget_watermarks(str(replicator.pk))
