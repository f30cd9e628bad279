"""What `cdc.py` and `manage.py compare` share: their arguments, and the text that they write."""

from __future__ import annotations

import argparse
from datetime import date

from replicators.connectors.compare.diff import Operation
from replicators.connectors.compare.run import Outcome


def add_arguments(to: argparse.ArgumentParser) -> None:
    """The arguments of a comparison."""
    to.add_argument("config", help="the configuration, a YAML file")
    to.add_argument("data", help="the data set: a file, a folder or a URL that Spark can read")
    to.add_argument(
        "date",
        type=date.fromisoformat,
        nargs="?",
        default=None,
        help="its effective date, for example 2019-06-18; today without it",
    )
    to.add_argument(
        "--allow-deletes",
        action="store_true",
        help="a full set may be empty, and may delete any share of the rows",
    )
    to.add_argument(
        "--check-all",
        action="store_true",
        help="compare the values of every row whose hashes are equal, not only of a sample",
    )


def parser(program: str) -> argparse.ArgumentParser:
    """A parser of these arguments alone."""
    made = argparse.ArgumentParser(program, description="Compares a data set with the one before.")
    add_arguments(made)
    return made


def day_of(asked: date | None) -> date:
    """The effective date that was asked for, or today's."""
    return asked or date.today()


def report(outcome: Outcome) -> str:
    """The outcome as text for a person."""
    if outcome.is_repeated:
        head = f"{outcome.day} was compared before. Nothing was changed. Its counts were:"
    else:
        head = f"{outcome.day}: {outcome.rows:,} rows were compared."
    lines = [head, *(f"{o.value:>3} {outcome.counts.get(o.value, 0):>12,}" for o in Operation)]
    if outcome.quarantined:
        lines.append(f"{outcome.quarantined:,} rows can't be used; they are quarantined.")
    lines += [f"{s.seconds:7.1f} s  {s.name}" for s in outcome.stages]
    return "\n".join(lines) + "\n"
