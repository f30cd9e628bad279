"""Names of tables and columns. Spanner's begin with a letter, and ours often with an underscore:
such a name gets `rpl` before it, and so does one that looks like that already. In a name with other
characters each of them is written by its number. Every name can be told from its encoded form."""

from __future__ import annotations

import re

from replicators.connectors.model.schema import TableId
from replicators.connectors.sql.client import Names
from replicators.targets.spanner.params import SpannerParams

MARK = "rpl_mark_"
"""The name of the constraint that tells a table of ours begins with this."""
_ENCODED = re.compile(r"(?:rpl)*_[A-Za-z0-9_]*")
_ODD = "rplx_"
"""An encoded name with odd characters begins with this."""


def encoded(name: str) -> str:
    """The name at the service. `_is_deleted` becomes `rpl_is_deleted`, `a b` `rplx_a_20_b`."""
    if _ENCODED.fullmatch(name):
        return f"rpl{name}"
    if re.fullmatch("([A-Za-z][A-Za-z0-9_]*)?", name) and not name.startswith(_ODD):
        return name
    return _ODD + re.sub("[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", name)


def decoded(name: str) -> str:
    """The name before it was encoded."""
    if name.startswith(_ODD):
        return re.sub("_([0-9a-f]+)_", lambda found: chr(int(found[1], 16)), name[len(_ODD) :])
    return name[3:] if name.startswith("rpl") and _ENCODED.fullmatch(name) else name


def names(params: SpannerParams, table: TableId) -> Names:
    """The place of a source table."""
    rule = params.table_names.replace("{schema}", table.schema)
    return (rule.replace("{table}", table.name),)


def quoted(name: str) -> str:
    """A name in a statement, encoded."""
    return f"`{encoded(name)}`"
