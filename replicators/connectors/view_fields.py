"""Fields of the params of targets that can keep a view of the living rows beside a copy. No
connection is made here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import param
from replicators.connectors.problems.problem import Problem

VIEWED = frozenset({Mode.SOFT_DELETE, Mode.HISTORY})
"""The modes whose copies may have a view of the living rows."""
_SUFFIX = re.compile(r"[A-Za-z0-9_]{1,20}")


VIEW_ROW = "_replicator_view:"
"""A view's row in a progress table has this and the name of its table."""


def view_row(table: str) -> str:
    """The `target_table` of the row of a table's view."""
    return f"{VIEW_ROW}{table}"


def current_views(*, group: str = "", note: str = "") -> Any:
    """Whether there are views. `note`: see `param`."""
    return param(
        "Views of the living rows",
        help="Beside each table in the mode soft delete or history: a view that shows the source's "
        "rows and columns only.",
        default=False,
        note=note,
        is_movable=True,
        group=group,
    )


def view_suffix(*, group: str = "") -> Any:
    """What a view's name has after the name of its table."""
    return param(
        "End of a view's name",
        help="With _current, the view of the table orders is orders_current.",
        default="_current",
        is_movable=True,
        check=_fault,
        group=group,
    )


def _fault(text: str) -> str:
    return "" if _SUFFIX.fullmatch(text) else "must have 1 to 20 letters, digits and underscores"


@runtime_checkable
class ViewChecks(Protocol):
    """`TargetChecks` of a target that can keep views."""

    def views(
        self, viewed: Sequence[TableSchema], chosen: Sequence[TableSchema], replicator: str
    ) -> list[Problem]:
        """Names of views that are taken. `viewed`: the tables in a mode of `VIEWED`. `chosen`: all
        tables of the replicator."""
        ...


def view_problems(
    views: Mapping[TableId, tuple[str, ...]],
    tables: Mapping[TableId, tuple[str, ...]],
    taken: Collection[TableId],
) -> Iterator[Problem]:
    """Views that share a name with a table or with another view. `views`, `tables`: their places,
    equal where the target does not tell names apart. `taken`: the tables at whose view's place
    something lies that is not ours."""
    seen = set(tables.values())
    for table, place in views.items():
        if place in seen or table in taken:
            yield Problem.of("target:view-taken", table=table, view=".".join(place))
        seen.add(place)
