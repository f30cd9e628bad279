"""How often a table may be merged where the target's service allows only so many commits within 24
hours. Pure: the engine waits by it, and pages say it in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

HOUR_SECONDS = 3600
WINDOW_HOURS = 24
HALF_DAY_SECONDS = 43_200.0
LONGEST_SECONDS = 3600.0

Spent = Mapping[str, int]
"""What a table used in each hour: the hour since the epoch, as text, and a number."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a service allows within any 24 hours: `a_table` for each table, `in_all` for all tables
    together. `noun` is what is counted, in the plural: `load jobs`."""

    a_table: int
    in_all: int
    noun: str


def counted(spent: Spent, number: int, now: float) -> dict[str, int]:
    """The hours with `number` more in the present one. Hours outside of the window are left out."""
    hour = int(now // HOUR_SECONDS)
    kept = {h: n for h, n in spent.items() if hour - WINDOW_HOURS <= int(h) <= hour}
    kept[str(hour)] = kept.get(str(hour), 0) + number
    return kept


def used(spent: Spent, now: float) -> int:
    """What was used within the last 24 hours, and in the hour before that began within them."""
    return sum(counted(spent, 0, now).values())


def spared(limit: int, used_now: int) -> float:
    """The seconds from one use to the next, so that no 24 hours ever have more than `limit`.

    The time grows as less is left: it is half a day, divided by the limit, times what is used,
    divided by what is left. Uses at exactly this pace have used 73 % after a day, and stay there.
    After a burst they reach 95 % only when the first ones are a day old. An even pace that stays
    below 73 % is never slowed down.
    """
    left = limit - used_now
    if left <= 0:
        return LONGEST_SECONDS
    return min(LONGEST_SECONDS, HALF_DAY_SECONDS / limit * used_now / left)


def table_wait(budget: Budget, of_table: int, in_all: int, tables: int) -> float:
    """The seconds between two uses of a table, where `tables` tables share `in_all`."""
    return max(spared(budget.a_table, of_table), tables * spared(budget.in_all, in_all))


@dataclass(frozen=True, slots=True)
class Use:
    """What a replicator's tables used within the last 24 hours. `tables` used anything at all."""

    in_all: int = 0
    most: int = 0
    tables: int = 0

    @classmethod
    def of(cls, tables: Iterable[Spent], now: float) -> Use:
        """From each table's hours."""
        found = [n for spent in tables if spent and (n := used(spent, now))]
        return cls(sum(found), max(found, default=0), len(found))


def why_slower(budget: Budget, of_table: int, use: Use, merge_seconds: float) -> str:
    """Why a table is merged less often than asked, as a sentence without its end; empty where it is
    not."""
    wait = table_wait(budget, of_table, use.in_all, use.tables)
    if wait <= merge_seconds:
        return ""
    if spared(budget.a_table, of_table) == wait:
        amount, limit, whose = of_table, budget.a_table, ""
    else:
        amount, limit, whose = use.in_all, budget.in_all, " of all tables"
    is_over = amount >= limit
    share = f"{amount:,} of {limit:,} {budget.noun}{whose} of the last 24 hours are used"
    return f"merged {'once an hour' if is_over else f'every {wait:.0f} s'}, since {share}"
