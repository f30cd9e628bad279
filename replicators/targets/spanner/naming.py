"""Names of tables and columns. Spanner's begin with a letter, and ours often with an underscore:
such a name gets `rpl` before it, and so does one that looks like that already."""

from __future__ import annotations

import re

from replicators.connectors.model.schema import TableId
from replicators.connectors.sql.client import Names
from replicators.targets.spanner.params import SpannerParams

MARK = "rpl_mark_"
"""The name of the constraint that tells a table of ours begins with this."""
_ENCODED = re.compile(r"(?:rpl)*_.*", re.DOTALL)


def encoded(name: str) -> str:
    """The name at the service. `_is_deleted` becomes `rpl_is_deleted`."""
    return f"rpl{name}" if _ENCODED.fullmatch(name) else name


def decoded(name: str) -> str:
    """The name before it was encoded."""
    return name[3:] if name.startswith("rpl") and _ENCODED.fullmatch(name) else name


def names(params: SpannerParams, table: TableId) -> Names:
    """The place of a source table."""
    rule = params.table_names.replace("{schema}", table.schema)
    return (rule.replace("{table}", table.name),)


def quoted(name: str) -> str:
    """A name in a statement, encoded."""
    return f"`{encoded(name)}`"
