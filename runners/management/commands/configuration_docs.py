"""Writes the parts of docs/ and .env.example that come from the definitions of settings and
plugins."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from replicators.config import ROLES, Options, plugins_of
from replicators.connectors.setup import SetupStep
from replicators.project.runner import variable
from replicators.project.variables import ENGINE_HELP, VARIABLES, Variable
from runners.engine.settings import RunnerSettings
from runners.management import connectors


def variables() -> list[Variable]:
    """All environment variables, the project's first."""
    engine = [
        Variable(variable(f.name), str(f.default), ENGINE_HELP[f.name])
        for f in fields(RunnerSettings)
    ]
    return [*VARIABLES, *engine]


def env_example() -> str:
    """The text of `.env.example`."""
    lines = [
        "# Every variable with its default; docs/configuration.md says more. It is production "
        "unless DEBUG=true."
    ]
    for known in variables():
        lines += ["", f"# {known.help}", f"# {known.name}={known.default}"]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"`{value}`"


def _limits(option: Field[Any]) -> str:
    reported = option.metadata
    if reported["choices"]:
        return ", ".join(f"`{c.value}`" for c in reported["choices"])
    return f"{reported['minimum']:g} to {reported['maximum']:g}"


def markdown() -> str:
    """The text of docs/configuration.md."""
    rows = "\n".join(f"| `{v.name}` | `{v.default}` | {v.help} |" for v in variables())
    options = "\n".join(
        f"| `{f.name}` | {f.metadata['label']} | {_value(f.default)} | {_limits(f)} | "
        f"{f.metadata['applies']} | {f.metadata['help']} |"
        for f in fields(Options)
    )
    return f"""# Configuration

Made by `manage.py configuration_docs`; change the definitions, not this file.

## Environment

A wrong value stops the start and is named. Times take `30`, `10m`, `24h`, `7d`; sizes `64M`, `20G`. Secrets can also be
read from a file named by the same variable with `_FILE` behind it (`SECRET_KEY`, `REPLICATOR_SECRET_KEY`,
`DATABASE_URL`, `REDIS_URL`).

| variable | default | what it does |
|---|---|---|
{rows}

## A replicator's own options

| option | label | default | limits | applies | what it does |
|---|---|---|---|---|---|
{options}
"""  # noqa: E501


def _step(step: SetupStep) -> str:
    block = f"\n```sql\n{step.sql}\n```\n" if step.statements else ""
    return f"### {step.title}\n\n{step.text}\n{block}"


def setup_markdown() -> str:
    """The text of docs/setup.md."""
    shown = [p for role in ROLES for p in plugins_of(role).values() if not p.is_hidden]
    found = [(p.label, p.setup({})) for p in shown]
    parts = "\n".join(
        f"## {label}\n\n" + "\n".join(_step(step) for step in steps)
        for label, steps in found
        if steps
    )
    return f"""# Before you connect

Made by `manage.py configuration_docs` from what the wizard shows beside its forms, there with the names that are entered;
change the plugins, not this file. *Test connection* and the assessment say what of it is missing, before anything runs.

{parts}"""  # noqa: E501


class Command(BaseCommand):
    """`--check` fails where a file is not up to date."""

    help = "Writes docs/configuration.md, docs/connectors.md, docs/setup.md and .env.example."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--check`: compare instead of write."""
        parser.add_argument("--check", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write all of them, or compare them."""
        files = {
            "docs/configuration.md": markdown(),
            "docs/connectors.md": connectors.markdown(),
            "docs/setup.md": setup_markdown(),
            ".env.example": env_example(),
        }
        for name, text in files.items():
            path = settings.BASE_DIR / name
            if not options["check"]:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != text:
                raise CommandError(f"{name} is out of date: run `manage.py configuration_docs`.")
