"""Reads the log of a replicator's runs: filtered, by cursor, or whole."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import QuerySet

from replicators.models import Replicator
from replicators.options import Options
from runners.models import LogLine

LOG_LINES = 200
_PAGE = 2000
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _levels_from(level: str) -> tuple[str, ...]:
    upper = level.upper()
    return _LEVELS[_LEVELS.index(upper) :] if upper in _LEVELS else _LEVELS


def _filtered(
    replicator: Replicator, *, level: str = "", table: str = "", search: str = ""
) -> QuerySet[LogLine]:
    """Lines of this level or a higher one, of this table, with this text."""
    found = LogLine.objects.filter(replicator=replicator)
    if level:
        found = found.filter(level__in=_levels_from(level))
    if table:
        found = found.filter(table=table)
    if search:
        found = found.filter(text__icontains=search)
    return found


def log_lines(
    replicator: Replicator,
    *,
    after: int = 0,
    before: int = 0,
    level: str = "",
    table: str = "",
    search: str = "",
    limit: int = LOG_LINES,
) -> list[LogLine]:
    """Lines after the cursor, oldest first. Without a cursor: the last `limit` lines (before
    `before`, where that is given)."""
    found = _filtered(replicator, level=level, table=table, search=search)
    if after:
        return list(found.filter(pk__gt=after).order_by("pk")[:limit])
    if before:
        found = found.filter(pk__lt=before)
    return list(found.order_by("-pk")[:limit])[::-1]


def log_pages(replicator: Replicator, **query: str) -> Iterator[LogLine]:
    """All lines of the filter, oldest first, page by page: a slow reader holds neither memory nor
    the database."""
    found, after = _filtered(replicator, **query).order_by("pk"), 0
    while lines := list(found.filter(pk__gt=after)[:_PAGE]):
        yield from lines
        after = lines[-1].pk


def log_levels(replicator: Replicator) -> tuple[str, ...]:
    """The levels that lines can have. DEBUG is one only where the replicator is set to write such
    lines or has some."""
    shown = _LEVELS[1:-1]
    is_debug = Options.readable(replicator.options).log_level == "debug"
    lines = LogLine.objects.filter(replicator=replicator, level="DEBUG")
    return ("DEBUG", *shown) if is_debug or lines.exists() else shown


def log_tables(replicator: Replicator) -> list[str]:
    """The tables that the log mentions, by name."""
    found = LogLine.objects.filter(replicator=replicator).exclude(table="").order_by("table")
    return list(found.values_list("table", flat=True).distinct())
