"""BigQuery's dialect with this target's types, and scripts as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from replicators.connectors.sql import engines
from replicators.connectors.sql.dialect import SqlDialect
from replicators.connectors.sql.steps import Check, Step
from replicators.targets.bigquery.types import native

DIALECT: SqlDialect = engines.bigquery(native)
_FAILED = "replicator check failed: {}"


def statements(steps: Iterable[Step]) -> list[str]:
    """The steps as statements of a script. A `Check` that finds a row makes the script fail, with
    its code in the message (`errors.CHECK`)."""
    return [_checked(s) if isinstance(s, Check) else f"{DIALECT.sql(s.tree)};" for s in steps]


def _checked(check: Check) -> str:
    message = DIALECT.literals.text(_FAILED.format(check.code))
    return f"IF EXISTS ({DIALECT.sql(check.query)}) THEN\n  SELECT ERROR({message});\nEND IF;"


def transaction(steps: Iterable[Step], first: Sequence[str] = ()) -> str:
    """A script whose statements are one transaction. BigQuery rolls it back when a statement fails
    and nothing handles that."""
    body = [*first, *statements(steps)]
    return "\n".join(["BEGIN TRANSACTION;", *body, "COMMIT TRANSACTION;"])


def quoted(names: Sequence[str]) -> str:
    """A table's name parts in a statement."""
    return ".".join(DIALECT.sql(exp.Identifier(this=n, quoted=True)) for n in names)


def columns(names: Iterable[str]) -> str:
    """A list of columns."""
    return ", ".join(quoted((n,)) for n in names)


def options(labels: dict[str, str], encryption_key: str, *, expires_hours: int = 0) -> str:
    """The clause OPTIONS of CREATE TABLE; empty where there is nothing to say."""
    found = []
    if labels:
        pairs = ", ".join(
            f"({_text(name)}, {_text(value)})" for name, value in sorted(labels.items())
        )
        found.append(f"labels = [{pairs}]")
    if encryption_key:
        found.append(f"kms_key_name = {_text(encryption_key)}")
    if expires_hours:
        at = f"TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL {expires_hours} HOUR)"
        found.append(f"expiration_timestamp = {at}")
    return f" OPTIONS ({', '.join(found)})" if found else ""


def _text(value: str) -> str:
    return DIALECT.literals.text(value)
