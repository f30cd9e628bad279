"""What one transaction of a SQL target does, in order. Importing this loads no sqlglot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

ROW_MISSING = "replicator: row missing"
"""The text of an expression that fails because the target lacks a row (`target:row-missing`)."""
ROW_ABSENT = "replicator: row absent"
"""The text of an expression that fails because a table without a key has fewer equal rows than
the batch removes (`target:row-absent`)."""
CODES = {ROW_MISSING: "target:row-missing", ROW_ABSENT: "target:row-absent"}
"""The error code for each text with which an expression fails. A client that finds the text in its
driver's error raises a `ReplicationError` of that code."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement to run. `after_none` does the same where the statement right before it found no
    row, and costs less; a client need not know how many were found."""

    tree: exp.Expression
    after_none: exp.Expression | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A query that finds no row where all is well. If it finds one, the client rolls the whole
    transaction back and raises a `ReplicationError` of this code. `is_of_change`: it finds no row
    if and only if the statement right before it changed one, so that a client that knows how many
    it changed need not ask."""

    query: exp.Query
    code: str
    is_of_change: bool = False


Step = Statement | Check
