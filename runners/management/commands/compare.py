"""Compares a data set with the one before, in a Spark session with the program's settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from replicators.connectors.compare.command import add_arguments, day_of
from replicators.connectors.problems.errors import ReplicationError


class Command(BaseCommand):
    """The same as `spark-submit cdc.py`. The same date again changes nothing."""

    help = "Compares a data set with the one before (docs/compare.md)."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Configuration, data set and date."""
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare, and write what was found."""
        try:
            self.stdout.write(_compared(options), ending="")
        except ReplicationError as err:
            shown = err.message
            raise CommandError(f"{shown.title}. {shown.text}\n{shown.suggestion}") from err


def _compared(options: dict[str, Any]) -> str:
    from replicators.connectors.compare import config, session
    from replicators.connectors.compare.command import report
    from replicators.connectors.compare.run import compare
    from runners.engine.tasks.spark import open_session

    wanted = config.read(options["config"])
    conf = session.spark_conf(wanted)
    spark = open_session(settings.RUNNER, "compare", session.jars(wanted), conf)
    try:
        outcome = compare(
            spark,
            wanted,
            options["data"],
            day_of(options["date"]),
            allow_deletes=options["allow_deletes"],
            check_all=options["check_all"],
        )
    finally:
        spark.stop()
    return report(outcome)
