"""Compares a data set with the one before:

    spark-submit cdc.py config.yaml data/day1 2019-06-18

`docs/compare.md` describes it. `manage.py compare` does the same with the program's own settings.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from replicators.connectors.compare import config
from replicators.connectors.compare.command import day_of, parser, report
from replicators.connectors.compare.run import compare
from replicators.connectors.compare.session import submitted
from replicators.connectors.problems.errors import ReplicationError

JARS = Path(__file__).resolve().parent / "var" / "jars"


def main(arguments: list[str]) -> int:
    """The exit code: 0 where the set is compared, now or before; 1 where it was refused."""
    asked = parser("spark-submit cdc.py").parse_args(arguments)
    try:
        wanted = config.read(asked.config)
        spark = submitted(wanted, os.environ.get("REPLICATOR_JARS_DIR", str(JARS)))
        outcome = compare(
            spark,
            wanted,
            asked.data,
            day_of(asked.date),
            allow_deletes=asked.allow_deletes,
            check_all=asked.check_all,
        )
    except ReplicationError as err:
        sys.stderr.write(f"{err.message.title}. {err.message.text}\n{err.message.suggestion}\n")
        return 1
    sys.stdout.write(report(outcome))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
