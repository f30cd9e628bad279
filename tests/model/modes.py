"""A workload for tables in every mode, with what it did: the rows that ever were, the images each
key had, and the changes in order. Knows nothing of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.servers import Database

ROWS = 20
Values = tuple[Any, ...]


def make_tables(database: Database) -> None:
    """Three tables of one schema, with a value that updates do not send."""
    database.execute("CREATE SCHEMA shop")
    for name in ("softly", "versions", "changes"):
        table = f"shop.{name}"
        database.execute(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, n int, big text, tags text[])"
        )
        database.execute(f"ALTER TABLE {table} ALTER big SET STORAGE EXTERNAL")
        database.execute(
            f"INSERT INTO {table} SELECT i, 0, repeat(md5(i::text), 100), ARRAY['a', NULL] "  # noqa: S608
            f"FROM generate_series(1, {ROWS}) i"
        )


class Ledger:
    """Writes to the tables and remembers. `ever`: each key's last values; `lives`: each key's
    images, a list for each time that it lived; `log`: (operation, id) of each change."""

    def __init__(self, database: Database, tables: Iterable[str]) -> None:
        self._database = database
        self.first = ROWS
        self._next, self._turn = 1000, 0
        start = {n: (0, f"{n}", 1) for n in range(1, ROWS + 1)}
        self.rows: dict[str, dict[int, Values]] = {t: dict(start) for t in tables}
        self.ever: dict[str, dict[int, Values]] = {t: dict(start) for t in self.rows}
        self.lives: dict[str, dict[int, list[list[Values]]]] = {
            t: {k: [[v]] for k, v in start.items()} for t in self.rows
        }
        self.log: dict[str, list[tuple[str, int | None]]] = {t: [] for t in self.rows}

    def values_of(self, row: Mapping[str, Any]) -> Values:
        """A copied row's values in the form of this ledger."""
        big = row["big"]
        return row["n"], None if big is None else _seed_of(big), 1 if row["tags"] else 0

    def busy_day(self, table: str) -> None:
        """Some transactions: updates without the large value, twice in one, changed keys, deletes,
        revivals, and TRUNCATE with survivors."""
        self._turn += 1
        keys = sorted(self.rows[table])
        one, two, three, four, five = keys[:5]
        self._next += 10
        new = self._next
        self.transaction(table, ("update", one), ("update", one), ("insert", new))
        self.transaction(table, ("move", two, new + 1), ("update", new + 1))
        self.transaction(table, ("delete", three), ("insert", new + 2), ("delete", new + 2))
        self.transaction(table, ("insert", three), ("delete", four))
        self.transaction(table, ("move", five, four), ("insert", new + 3))
        if self._turn % 2 == 0:
            self.transaction(table, ("update", one), ("truncate",), ("insert", one))
            self.transaction(table, *(("insert", n) for n in range(500, 508)))
            self.transaction(table, ("update", 500), ("delete", 501))

    def transaction(self, table: str, *actions: tuple[Any, ...]) -> None:
        """These actions in one transaction of the source, then in the ledger."""
        rows = self.rows[table]
        touched: dict[int, None] = {}
        with self._database.connect() as connection, connection.transaction():
            for act in actions:
                for text, values in self._statements(table, act):
                    connection.execute(text.encode(), values)
                touched |= dict.fromkeys(self._apply(table, act))
        for key in touched:
            lives = self.lives[table].setdefault(key, [[]])
            if key in rows:
                lives[-1].append(rows[key])
            elif lives[-1]:
                lives.append([])

    def _statements(self, table: str, act: tuple[Any, ...]) -> list[tuple[str, list[Any]]]:
        name = f"shop.{table}"
        match act:
            case ("insert", key):
                values = "%s, 1, repeat(md5(%s::text), 100), ARRAY['b']"
                return [(f"INSERT INTO {name} VALUES ({values})", [key, key])]  # noqa: S608
            case ("update", key):
                return [(f"UPDATE {name} SET n = n + 1 WHERE id = %s", [key])]  # noqa: S608
            case ("move", key, new):
                return [(f"UPDATE {name} SET id = %s WHERE id = %s", [new, key])]  # noqa: S608
            case ("delete", key):
                return [(f"DELETE FROM {name} WHERE id = %s", [key])]  # noqa: S608
        return [(f"TRUNCATE {name}", [])]

    def _apply(self, table: str, act: tuple[Any, ...]) -> list[int]:
        rows, log = self.rows[table], self.log[table]
        match act:
            case ("insert", key):
                rows[key] = (1, str(key), 1)
            case ("update", key):
                rows[key] = (rows[key][0] + 1, *rows[key][1:])
            case ("move", key, new):
                rows[new] = rows.pop(key)
                log += [("delete", key), ("update", new)]
                self.ever[table][new] = rows[new]
                return [key, new]
            case ("delete", key):
                rows.pop(key)
            case _:
                gone = list(rows)
                rows.clear()
                log.append(("truncate", None))
                return gone
        log.append((act[0], key))
        if key in rows:
            self.ever[table][key] = rows[key]
        return [key]


_SEEDS: dict[str, str] = {}


def _seed_of(big: str) -> str:
    """The text whose MD5 the large value repeats; the value itself where it is none of ours."""
    if not _SEEDS:
        import hashlib

        for n in range(3000):
            _SEEDS[hashlib.md5(str(n).encode(), usedforsecurity=False).hexdigest() * 100] = str(n)
    return _SEEDS.get(big, big)


def in_log_order(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, int | None]]:
    """(operation, id) of an appended copy's changes, by sequence."""
    logged = [r for r in rows if r["_operation"] != "snapshot"]
    ordered = sorted(logged, key=lambda r: r["_sequence"])
    return [(r["_operation"], r["id"]) for r in ordered]
