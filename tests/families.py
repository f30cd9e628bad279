"""The tables of a small Django application: authors have books, and books have reviews. Its
requests add, move and delete whole families in one transaction each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg

from tests.background import Background
from tests.servers import Database

FAMILY_TABLES = ("author", "book", "review")
SCHEMA = """
CREATE SCHEMA shop;
CREATE TABLE shop.author (id bigint PRIMARY KEY, name text NOT NULL, books int NOT NULL);
CREATE TABLE shop.book (id bigint PRIMARY KEY, title text NOT NULL, author_id bigint NOT NULL
    REFERENCES shop.author DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE shop.review (id bigint PRIMARY KEY, stars int NOT NULL, book_id bigint NOT NULL
    REFERENCES shop.book DEFERRABLE INITIALLY DEFERRED);
INSERT INTO shop.author SELECT i, 'author', 1 FROM generate_series(1, 20) i;
INSERT INTO shop.book SELECT i, 'book', i FROM generate_series(1, 20) i;
INSERT INTO shop.review SELECT i, 5, i FROM generate_series(1, 20) i;
"""
"""As `manage.py migrate` makes them on PostgreSQL: each foreign key is checked at the commit."""
BROKEN = {
    "book": "SELECT count(*) FROM {0}book b WHERE NOT EXISTS"
    " (SELECT 1 FROM {0}author a WHERE a.id = b.author_id)",
    "review": "SELECT count(*) FROM {0}review r WHERE NOT EXISTS"
    " (SELECT 1 FROM {0}book b WHERE b.id = r.book_id)",
    "author": "SELECT count(*) FROM {0}author a LEFT JOIN"
    " (SELECT author_id, count(*) n FROM {0}book GROUP BY author_id) b ON b.author_id = a.id"
    " WHERE a.books <> coalesce(n, 0)",
}
"""Rows that no reader of the source ever sees: without their parent, or with a count that is not
that of their children. The place stands for the tables' schema."""


def make_families(database: Database) -> None:
    """The tables, with twenty families."""
    database.execute(SCHEMA)


class Requests(Background):
    """Requests of the application: each is one transaction over the three tables."""

    def __init__(self, database: Database, seed: int = 1) -> None:
        super().__init__()
        self._database = database
        self._random = random.Random(seed)
        self._next = 1000 * seed
        self._living = list(range(1, 21))
        self.done = 0

    def request(self, connection: psycopg.Connection[Any]) -> None:
        """One of them."""
        with connection.transaction():
            few, many = len(self._living) < 10, len(self._living) > 100
            if few or (not many and self._random.random() < 0.6):
                self._add(connection)
            else:
                self._remove(connection)
        self.done += 1

    def _add(self, connection: psycopg.Connection[Any]) -> None:
        """An author with books and reviews; the children are written first."""
        self._next += 10
        author, count = self._next, self._random.randint(1, 4)
        for book in range(author, author + count):
            review = "INSERT INTO shop.review VALUES (%s, 3, %s)"
            connection.execute(review, [book, book])
            connection.execute("INSERT INTO shop.book VALUES (%s, 'new', %s)", [book, author])
        connection.execute("INSERT INTO shop.author VALUES (%s, 'new', %s)", [author, count])
        self._living.append(author)

    def _remove(self, connection: psycopg.Connection[Any]) -> None:
        """An author goes, and another one gets the books, or they go too."""
        gone = self._living.pop(self._random.randrange(len(self._living)))
        heir = self._random.choice(self._living)
        if self._random.random() < 0.5:
            connection.execute(
                "UPDATE shop.author SET books = books + (SELECT books FROM shop.author"
                " WHERE id = %s) WHERE id = %s",
                [gone, heir],
            )
            connection.execute(
                "UPDATE shop.book SET author_id = %s WHERE author_id = %s", [heir, gone]
            )
        else:
            connection.execute(
                "DELETE FROM shop.review WHERE book_id IN"
                " (SELECT id FROM shop.book WHERE author_id = %s)",
                [gone],
            )
            connection.execute("DELETE FROM shop.book WHERE author_id = %s", [gone])
        connection.execute("DELETE FROM shop.author WHERE id = %s", [gone])

    def _go(self) -> None:
        with self._database.connect() as connection:
            while not self._stop.wait(0.015):
                self.request(connection)


class Reader(Background):
    """Reads the copies over and over, each time in one snapshot, and counts the looks that found
    broken rows. `begin`: the statement that opens a snapshot."""

    def __init__(self, connect: Callable[[], Any], begin: str, schema: str = "") -> None:
        super().__init__()
        self._connect, self._begin, self._schema = connect, begin, schema
        self.looks = 0
        self.broken: Counter[str] = Counter()

    def _go(self) -> None:
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            while not self._stop.wait(0.01):
                cursor.execute(self._begin)
                for table, query in BROKEN.items():
                    cursor.execute(query.format(self._schema))
                    self.broken[table] += cursor.fetchone()[0] > 0
                cursor.execute("COMMIT")
                self.looks += 1

    @property
    def found(self) -> dict[str, int]:
        """How many looks found broken rows, by table."""
        return {name: count for name, count in self.broken.items() if count}
