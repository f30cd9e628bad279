"""Turns what a cluster answers into error codes. Its own words stay in `__cause__`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from replicators.connectors.model.schema import TableId
from replicators.connectors.problems.errors import ReplicationError

BUSY = frozenset({429, 502, 503, 504})


class ClusterSaid(Exception):
    """What the cluster answered; only the log shows it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and the body as bytes."""

    status: int
    data: bytes

    @property
    def content(self) -> Any:
        """The body, parsed; an empty dict where it is no JSON object."""
        try:
            found = json.loads(self.data) if self.data else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def reason(self) -> str:
        """The cluster's word for what is wrong, such as `illegal_argument_exception`."""
        error = self.content.get("error")
        if isinstance(error, dict):
            return str(error.get("type", ""))
        return f"status {self.status}"


def busy(status: int, seconds: float) -> ReplicationError:
    """The error of a cluster that stayed too busy."""
    return ReplicationError("target:search-busy", status=status, seconds=round(seconds))


def error_of(answer: Answer, act: str, table: TableId | None) -> ReplicationError:
    """The error for an answer. What the cluster said is its cause."""
    if answer.status == 401:
        found = ReplicationError("target:search-login")
    elif is_blocked(answer):
        found = ReplicationError("target:index-read-only", table=table)
    elif answer.status == 403:
        found = ReplicationError("target:search-denied", act=act)
    else:
        code = "target:search-refused" if table is not None else "target:unreachable"
        found = ReplicationError(code, table=table, act=act, reason=answer.reason)
    found.__cause__ = said(answer)
    return found


def is_block(kind: str) -> bool:
    """Whether an error's type says that an index may not be written."""
    return kind == "cluster_block_exception"


def is_blocked(answer: Answer) -> bool:
    """Whether an answer says that an index may not be written."""
    return answer.status in {403, 429} and is_block(answer.reason)


def said(answer: Answer) -> ClusterSaid:
    """What the cluster said, for the log."""
    return ClusterSaid(f"{answer.status}: {answer.data[:2000].decode(errors='replace')}")
