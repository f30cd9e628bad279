"""Lists that the server filters, sorts and pages. The address holds filter, order and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Case, F, IntegerField, QuerySet, Value, When
from django.db.models.functions import Coalesce, Concat

from runners.metrics.charts import Recent
from runners.models import Table
from runners.shown import ReplicatorView
from runners.states import TableState

T = TypeVar("T")
PAGE_ROWS = 50
TABLE_ORDER = (
    TableState.FAILING,
    TableState.SNAPSHOTTING,
    TableState.WAITING,
    TableState.REPLICATING,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks of a list. A minus before `sort` reverses the order."""

    state: str = ""
    search: str = ""
    sort: str = "state"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str], *, sorts: Sequence[str], states: Sequence[str]) -> Asked:
        """From the address; invalid values are ignored."""
        sort, state, page = query.get("sort", ""), query.get("state", ""), query.get("page", "")
        is_number = page.isascii() and page.isdigit() and len(page) < 7
        return cls(
            state=state if state in states else "",
            search=query.get("search", "").strip()[:200],
            sort=sort if sort.removeprefix("-") in sorts else "state",
            page=max(1, int(page)) if is_number else 1,
        )

    def address(self, **changes: Any) -> str:
        """The query of an address that asks for the same list with `changes`. Another filter or
        order starts at page 1."""
        values = {
            "state": self.state,
            "search": self.search,
            "sort": "" if self.sort == "state" else self.sort,
            **changes,
        }
        if values.get("page") in (None, 1):
            values.pop("page", None)
        return urlencode({k: v for k, v in values.items() if v})

    @property
    def here(self) -> str:
        """The query of the present list."""
        return self.address(page=self.page)

    @property
    def is_filtered(self) -> bool:
        """Whether a filter is set."""
        return bool(self.state or self.search)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, and how to get to the others."""

    rows: Sequence[T]
    total: int
    number: int
    last: int
    asked: Asked

    @property
    def first_row(self) -> int:
        """Number of its first row, from one."""
        return (self.number - 1) * PAGE_ROWS + 1 if self.total else 0

    @property
    def last_row(self) -> int:
        """Number of its last row."""
        return self.first_row + len(self.rows) - 1 if self.total else 0

    @property
    def before(self) -> str:
        """The query of the previous page; empty on the first page."""
        return "?" + self.asked.address(page=self.number - 1) if self.number > 1 else ""

    @property
    def after(self) -> str:
        """The query of the next page; empty on the last page."""
        return "?" + self.asked.address(page=self.number + 1) if self.number < self.last else ""


def paged(rows: Any, total: int, asked: Asked) -> Page[Any]:
    """The page of a sequence or query that was asked for, or the last page where there are
    fewer."""
    last = max(1, -(-total // PAGE_ROWS))
    number = min(asked.page, last)
    return Page(rows[(number - 1) * PAGE_ROWS : number * PAGE_ROWS], total, number, last, asked)


# --- replicators -------------------------------------------------------------------------------------------------  # noqa: E501
@dataclass(frozen=True, slots=True)
class Line:
    """A replicator in the list."""

    view: ReplicatorView
    recent: Recent

    @property
    def group(self) -> str:
        """The filter that the replicator matches."""
        return group_of(self.view)


GROUPS = {
    "failing": "Failing",
    "stalled": "Stalled",
    "running": "Running",
    "busy": "Starting, waiting, stopping",
    "paused": "Paused",
}
_STATES = {
    "running": "running", "stalled": "stalled", "paused": "paused", "failed": "failing",
    "failing": "failing",
}  # fmt: skip


def group_of(view: ReplicatorView) -> str:
    """A key of `GROUPS`. Every replicator that needs a person counts as failing, even where only
    one of many tables fails."""
    if view.totals.failing and view.shown.state != "deleting":
        return "failing"
    return _STATES.get(view.shown.state, "busy")


def _rank(line: Line) -> int:
    return list(GROUPS).index(line.group)


def _lag(line: Line) -> float:
    lag = line.view.lag_seconds
    return -1.0 if lag is None else lag


LINE_SORTS: dict[str, Callable[[Line], Any]] = {
    "state": _rank,
    "name": lambda line: line.view.replicator.name.lower(),
    "tables": lambda line: line.view.totals.tables,
    "lag": _lag,
    "rate": lambda line: line.recent.rate or 0.0,
    "changes": lambda line: line.view.totals.changes,
}


def lines_listed(lines: Sequence[Line], asked: Asked) -> Page[Line]:
    """The lines that were asked for. Lines of equal rank are sorted by name."""
    text = asked.search.lower()
    kept = [
        line
        for line in lines
        if (not asked.state or line.group == asked.state)
        and text in f"{line.view.replicator.name} {line.view.replicator.description}".lower()
    ]
    kept.sort(key=LINE_SORTS["name"])
    is_back = asked.sort.startswith("-")
    kept.sort(key=LINE_SORTS[asked.sort.removeprefix("-")], reverse=is_back)
    return paged(kept, len(kept), asked)


# --- tables ------------------------------------------------------------------------------------------------------  # noqa: E501
_RANK = Case(
    *(When(state=state, then=Value(rank)) for rank, state in enumerate(TABLE_ORDER)),
    default=Value(len(TABLE_ORDER)),
    output_field=IntegerField(),
)
_SINCE = Coalesce("unmerged_since", "error_since")
_CHANGES = F("inserts") + F("updates") + F("deletes")
TABLE_SORTS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "state": ((_RANK.asc(),), (_RANK.desc(),)),
    "name": (("schema_name", "name"), ("-schema_name", "-name")),
    "rows": ((F("rows_snapshotted").asc(),), (F("rows_snapshotted").desc(),)),
    "changes": ((_CHANGES.asc(),), (_CHANGES.desc(),)),
    "merged": ((F("merged_at").asc(nulls_first=True),), (F("merged_at").desc(nulls_last=True),)),
    "lag": (
        (F("lag_seconds").asc(nulls_first=True), _SINCE.desc(nulls_first=True)),
        (F("lag_seconds").desc(nulls_last=True), _SINCE.asc(nulls_last=True)),
    ),
}


def tables_listed(tables: QuerySet[Table], asked: Asked) -> Page[Table]:
    """The tables that were asked for, in two queries. Tables of equal rank are sorted by name.
    `tables` are already filtered by state."""
    found = tables
    if asked.search:
        found = found.annotate(full_name=Concat("schema_name", Value("."), "name"))
        found = found.filter(full_name__icontains=asked.search)
    order = TABLE_SORTS[asked.sort.removeprefix("-")][asked.sort.startswith("-")]
    return paged(found.order_by(*order, "schema_name", "name"), found.count(), asked)
