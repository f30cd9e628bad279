"""Carries out a statement on the command line."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError, CommandParser

from drafts.services import DeployRefused
from drafts.statements.errors import StatementError
from drafts.statements.services import Outcome, statement_run
from replicators.api.errors import answer_of
from replicators.connectors.problems.problem import Severity


class Command(BaseCommand):
    """As POST /api/v1/changefeeds/ (docs/statements.md)."""

    help = (
        "Carries out a statement, such as SHOW CHANGEFEEDS. See docs/statements.md. A password in "
        "an argument is seen by everybody on the machine: send such a statement by standard input."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The statement, and who asks."""
        parser.add_argument("statement", help="the statement; - reads it from standard input")
        parser.add_argument(
            "--source",
            default="",
            help="the replicator or draft whose source CREATE uses without FROM SOURCE",
        )
        parser.add_argument(
            "--as",
            dest="user",
            default="",
            help="the user who asks; the audit trail names the user, and the user's rights count",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Carry it out, and write what it did."""
        text = options["statement"]
        text = sys.stdin.read() if text == "-" else text
        actor = _user(options["user"]) if options["user"] else None
        try:
            outcome = statement_run(text=text, actor=actor, source=options["source"])
        except DeployRefused as err:
            raise CommandError(_refused(err)) from err
        except (StatementError, PermissionDenied) as err:
            raise CommandError(str(err)) from err
        except Exception as err:
            answer = answer_of(err)
            if answer is None:
                raise
            raise CommandError(answer.message) from err
        for line in _lines(outcome):
            self.stdout.write(line)


def _user(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise CommandError(f"There is no active user {name!r}.")
    return found


def _refused(err: DeployRefused) -> str:
    problems = [p.message for p in err.problems if p.severity is Severity.ERROR]
    texts = [f"- {m.title}: {m.text} {m.suggestion}".rstrip() for m in problems]
    return "\n".join(["The assessment found errors, so nothing was made.", *texts])


def _lines(outcome: Outcome) -> list[str]:
    feeds = [
        "\t".join((v.replicator.name, v.shown.label, v.replicator.source_kind,
                   v.replicator.target_kind, str(v.totals.tables)))
        for v in outcome.feeds
    ]  # fmt: skip
    head = ["name\tstate\tsource\ttarget\ttables"] if feeds else []
    shown = [outcome.statement] if outcome.act == "shown" and outcome.statement else []
    return [*head, *feeds, *shown] or [outcome.text]
