"""The tables to choose from: the source's last answer, searched and paged. Asks the source only
when told to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from assessments.services import list_tables
from drafts.choice import Key, Tables, by_key
from drafts.digests import source_digest
from drafts.models import Draft, Listing, ReplicatorListing, SourceTables
from replicators.models import Replicator
from replicators.services import params_of

PAGE_ROWS = 50
SHOWN = ("all", "chosen", "missing")


@dataclass(frozen=True, slots=True)
class Query:
    """The search and page that a person asked for."""

    search: str = ""
    schema: str = ""
    show: str = "all"
    page: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A table of the list: the source's facts about it, and its choice. `is_missing`: chosen, but
    not in the source."""

    schema: str
    name: str
    rows: int | None = None
    size_bytes: int | None = None
    has_key: bool = True
    columns: int = 0
    is_missing: bool = False
    is_chosen: bool = False
    columns_chosen: int = 0
    excluded: tuple[str, ...] = ()
    mode: str = ""
    is_filtered: bool = False

    @property
    def key(self) -> Key:
        return self.schema, self.name

    @property
    def takes_inserts(self) -> bool:
        return "inserts" not in self.excluded

    @property
    def takes_updates(self) -> bool:
        return "updates" not in self.excluded

    @property
    def takes_deletes(self) -> bool:
        return "deletes" not in self.excluded


@dataclass(frozen=True, slots=True)
class Found:
    """A page of the list and its totals. `listed_at` is None if the source was never asked."""

    lines: list[Line]
    query: Query
    matching: list[Key]
    pages: int
    total: int
    chosen: int
    chosen_rows: int
    chosen_bytes: int
    missing: list[Key]
    picked: list[Key]
    schemas: list[tuple[str, int]] = field(default_factory=list)
    listed_at: datetime | None = None

    @property
    def first(self) -> int:
        return (self.query.page - 1) * PAGE_ROWS + 1 if self.lines else 0

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1 if self.lines else 0


def listing_refresh(row: Draft | Replicator) -> None:
    """Ask the source and store its answer. Raises InvalidConfig or ReplicationError; the answer
    stored before then stays."""
    found = list_tables(kind=row.source_kind, params=params_of(row, "source"))
    tables = [
        [t.id.schema, t.id.name, t.rows_estimated, t.size_bytes, t.has_key, t.columns]
        for t in found
    ]
    said = {"digest": source_digest(row), "tables": tables, "listed_at": timezone.now()}
    if isinstance(row, Draft):
        Listing.objects.update_or_create(draft=row, defaults=said)
    else:
        ReplicatorListing.objects.update_or_create(replicator=row, defaults=said)


def listing_of(row: Draft | Replicator) -> SourceTables | None:
    """The last answer of the source with its present settings; None if it was not asked yet."""
    listing: SourceTables | None
    if isinstance(row, Draft):
        listing = Listing.objects.filter(draft=row).first()
    else:
        listing = ReplicatorListing.objects.filter(replicator=row).first()
    return listing if listing and listing.digest == source_digest(row) else None


def find(draft: Draft, query: Query) -> Found:
    """The page that was asked for. The list includes chosen tables that the source no longer has,
    marked as missing."""
    listing = listing_of(draft)
    return _found(_lines(draft.tables, listing), listing, query)


def find_addable(replicator: Replicator, picked: Collection[Key], query: Query) -> Found:
    """The page that was asked for, of tables that the replicator does not copy yet. `picked` are
    the tables to add, as far as the source has them."""
    listing = listing_of(replicator)
    chosen = by_key(replicator.tables)
    lines = [_line(row, None) for row in (listing.tables if listing else ())]
    lines = [
        replace(line, is_chosen=line.key in picked) for line in lines if line.key not in chosen
    ]
    return _found(lines, listing, query)


def _found(lines: list[Line], listing: SourceTables | None, query: Query) -> Found:
    matching = [line for line in lines if _matches(line, query)]
    pages = max(1, -(-len(matching) // PAGE_ROWS))
    page = min(max(1, query.page), pages)
    chosen = [line for line in lines if line.is_chosen]
    counts = Counter(line.schema for line in lines)
    return Found(
        lines=matching[(page - 1) * PAGE_ROWS : page * PAGE_ROWS],
        query=Query(query.search, query.schema, query.show, page),
        matching=[line.key for line in matching],
        pages=pages,
        total=sum(not line.is_missing for line in lines),
        chosen=len(chosen),
        chosen_rows=sum(line.rows or 0 for line in chosen),
        chosen_bytes=sum(line.size_bytes or 0 for line in chosen),
        missing=[line.key for line in lines if line.is_missing],
        picked=[line.key for line in chosen],
        schemas=sorted(counts.items()),
        listed_at=listing.listed_at if listing else None,
    )


def find_lines(draft: Draft, query: Query) -> list[Line]:
    """All tables that match, on all pages."""
    return [line for line in _lines(draft.tables, listing_of(draft)) if _matches(line, query)]


def _lines(tables: Tables, listing: SourceTables | None) -> list[Line]:
    chosen = by_key(tables)
    lines = [
        _line(row, chosen.get((row[0], row[1]))) for row in (listing.tables if listing else ())
    ]
    if listing is not None:
        known = {line.key for line in lines}
        gone = [t for key, t in chosen.items() if key not in known]
        lines += [_line([t["schema"], t["name"], None, None, True, 0], t, True) for t in gone]
        lines.sort(key=lambda line: line.key)
    return lines


def _line(row: list[Any], choice: dict[str, Any] | None, is_missing: bool = False) -> Line:
    schema, name, rows, size, has_key, columns = row
    return Line(
        schema,
        name,
        rows,
        size,
        has_key,
        columns,
        is_missing,
        choice is not None,
        len(choice.get("columns") or ()) if choice else 0,
        tuple(choice.get("excluded") or ()) if choice else (),
        str(choice.get("mode") or "") if choice else "",
        bool(choice and choice.get("filter")),
    )


def _matches(line: Line, query: Query) -> bool:
    if query.schema and line.schema != query.schema:
        return False
    if query.show == "chosen" and not line.is_chosen:
        return False
    if query.show == "missing" and not line.is_missing:
        return False
    return query.search.strip().lower() in f"{line.schema}.{line.name}".lower()
