"""The one exception that the engine raises to its callers, and for every code: who retries, and
what it stops."""

from __future__ import annotations

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.lookup import is_known, message_of
from replicators.connectors.problems.message import Message, Retry, Scope

__all__ = ["ReplicationError", "Retry", "Scope", "driver_of"]


class ReplicationError(Exception):
    """Something that stops a run or a table, known by its code.

    `facts` are the named values of the code's message: names and numbers of ours. They never hold a
    secret, a host or the raw text of a driver. Driver texts belong in `__cause__`, which only the
    log shows, scrubbed.
    """

    def __init__(self, code: str, *, table: TableId | None = None, **facts: object) -> None:
        if not is_known(code):
            raise KeyError(f"no message for error code {code!r}")
        self.code = code
        self.table = table
        self.facts = {k: str(v) for k, v in facts.items()}
        super().__init__(f"{code}: {self.message.text}")

    @property
    def message(self) -> Message:
        values = dict(self.facts)
        if self.table is not None:
            values.setdefault("table", str(self.table))
            values.setdefault("schema", self.table.schema)
            values.setdefault("name", self.table.name)
        return message_of(self.code).render(values)

    @property
    def retry(self) -> Retry:
        return message_of(self.code).retry

    @property
    def scope(self) -> Scope:
        return message_of(self.code).scope

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (_rebuild, (self.code, self.table, self.facts))


def driver_of(err: ImportError) -> str:
    """The package that is missing, or that can't be loaded."""
    return (err.name or "unknown").partition(".")[0]


def _rebuild(code: str, table: TableId | None, facts: dict[str, str]) -> ReplicationError:
    return ReplicationError(code, table=table, **facts)
