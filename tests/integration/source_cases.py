"""Small tables of a PostgreSQL source, one for each way in which keys, unsent values, transactions,
schemas or names are unusual, and the traffic that makes them so. `{r}` in a statement is the round,
from 1 on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from replicators.connectors.model.schema import TableId
from tests.model.reading import quoted
from tests.servers import Database

Transaction = tuple[str, ...]
SENDS_GENERATED = 180000
GENERATED = "g int GENERATED ALWAYS AS (id * 2) STORED, "
LONGEST = "n" * 63
WIDE = 1600
NOT_CHOSEN = "not_chosen"
ODD_NAMES = (
    'quo"ted', "dot.ted", "two words", "smile \N{GRINNING FACE}", "select", "_under", "Größe",
    "slash/ed", "semi;colon",
    "per%cent", "back`tick", LONGEST,
)  # fmt: skip
BIG = "repeat(md5(i::text), 200)"


@dataclass(frozen=True)
class Case:
    """A table: its definition, the rows it begins with, and what is done to it in each round. `{t}`
    is its name. `only`: rows of tables that inherit from it are not its own; `choice`: what is
    copied of it, and how; `against`: the view or table of the same schema that says which rows its
    copy should have, in place of itself."""

    name: str
    columns: str
    rows: str = ""
    work: tuple[Transaction, ...] = ()
    after: str = ""
    schema: str = "shop"
    only: bool = False
    choice: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""

    @property
    def id(self) -> TableId:
        return TableId(self.schema, self.name)

    @property
    def sql_name(self) -> str:
        return quoted(self.schema, self.name)

    def filled(self, statement: str, number: int = 0) -> str:
        return statement.replace("{t}", self.sql_name).replace("{r}", str(number))


def _keyed(name: str, kind: str, one: str, two: str, more: tuple[str, ...] = ()) -> Case:
    """Keys of one type: `one` and `two` are there from the start; `{r}`-free expressions."""
    work: tuple[Transaction, ...] = (
        (f"UPDATE {{t}} SET v = 'u{{r}}' WHERE k = {one}",),
        (f"DELETE FROM {{t}} WHERE k = {two}", f"INSERT INTO {{t}} VALUES ({two}, 'again{{r}}')"),
        *((f"UPDATE {{t}} SET v = 'm{{r}}' WHERE k = {k}",) for k in more[::2]),
        *(
            (f"DELETE FROM {{t}} WHERE k = {k}", f"INSERT INTO {{t}} VALUES ({k}, 'back{{r}}')")
            for k in more[1::2]
        ),
    )
    rows = ", ".join(f"({k}, 'v{i}')" for i, k in enumerate((one, two, *more)))
    return Case(name, f"k {kind} PRIMARY KEY, v text", f"INSERT INTO {{t}} VALUES {rows}", work)


KEYS = (
    Case(
        "k_composite", "a int, b text, c date, v text, PRIMARY KEY (b, a, c)",
        "INSERT INTO {t} SELECT i % 3, 'b' || i % 5, '2024-01-01'::date + i, 'v' FROM "
        "generate_series(1, 60) i",
        (
            ("UPDATE {t} SET v = 'u{r}' WHERE a = 1",),
            ("UPDATE {t} SET b = b || '{r}' WHERE a = 2",),
            ("UPDATE {t} SET a = a + 10 * {r}, c = c + 1 WHERE b = 'b0'",
            "DELETE FROM {t} WHERE b = 'b1' AND a = 0"),
        ),
    ),
    _keyed("k_text", "text", "'A'", "'a'",
    ("'a '", "'a  '", "' a'", "''", "E'a\\x01'", "E'\\u2400'", "'é'", "E'e\\u0301'", "'ss'", "'ß'",
    "'${x}'")),
    _keyed("k_char", "char(5)", "'A'", "'a'", ("' a'", "'ab'")),
    _keyed("k_bytes", "bytea", r"'\x'", r"'\x00'",
    (r"'\x0000'", r"'\x0001'", r"'\xff'", r"'\x41'", r"'\x61'")),
    _keyed("k_uuid", "uuid", "'00000000-0000-0000-0000-000000000000'",
    "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"),
    _keyed("k_numeric", "numeric(38, 10)", "0.0000000001",
    "-9999999999999999999999999999.9999999999", ("1.1", "0")),
    _keyed("k_number", "numeric", "1.10", "1e50", ("'NaN'", "0", "5.000")),
    _keyed("k_float", "float8", "0.1", "'NaN'", ("1e308", "'-Infinity'", "0", "5e-324")),
    _keyed("k_time", "timestamptz", "'0001-01-01 00:00Z'", "'9999-12-31 23:59:59.999999Z'",
    ("'1969-12-31 23:59:59.999999Z'",)),
    _keyed("k_bool", "bool", "true", "false"),
    _keyed("k_inet", "inet", "'10.0.0.1'", "'10.0.0.1/8'", ("'::1'", "'::ffff:10.0.0.1/128'")),
    _keyed("k_mood", "shop.mood", "'calm'", "'so-so'"),
)  # fmt: skip

KEY_WORK: tuple[Transaction, ...] = (
    ("UPDATE {t} SET k = 1 WHERE k = 0", "UPDATE {t} SET k = 2 WHERE k = 1",
    "INSERT INTO {t} VALUES (0, {r}, 'new', 'b')"),
    ("DELETE FROM {t} WHERE k = 2",),
    ("UPDATE {t} SET k = -10 WHERE k = 10", "UPDATE {t} SET n = {r} WHERE k = -10",
    "DELETE FROM {t} WHERE k = -10"),
    ("UPDATE {t} SET k = -1 WHERE k = 20", "UPDATE {t} SET k = 20 WHERE k = 21",
    "UPDATE {t} SET k = 21 WHERE k = -1"),
    ("DELETE FROM {t} WHERE k = 30", "INSERT INTO {t} VALUES (30, {r}, 's', repeat('r', 3000))"),
    ("INSERT INTO {t} VALUES (40, 1, 's', 'b')", "UPDATE {t} SET n = {r} WHERE k = 40",
    "DELETE FROM {t} WHERE k = 40"),
    ("UPDATE {t} SET n = n + 1 WHERE k BETWEEN 50 AND 60",),
    ("UPDATE {t} SET k = k + 1000 * {r}, n = -{r} WHERE k % 7 = 0 AND k BETWEEN 60 AND 200",),
    ("UPDATE {t} SET k = -k WHERE k BETWEEN 201 AND 210",),
    ("UPDATE {t} SET k = -k WHERE k BETWEEN -210 AND -201",
    "UPDATE {t} SET s = 'p{r}' WHERE k BETWEEN 201 AND 205"),
    ("INSERT INTO {t} VALUES (10, 0, 's', repeat('t', 4000))",
    "UPDATE {t} SET n = {r} WHERE k = 10"),
)  # fmt: skip
UNSENT_WORK: tuple[Transaction, ...] = (
    ("UPDATE {t} SET n = {r} WHERE k < 20",),
    ("INSERT INTO {t} SELECT 1000 * {r} + i, 0, 's', " + BIG + " FROM generate_series(1, 20) i",
    "UPDATE {t} SET n = 1 WHERE k > 1000 * {r}"),
    ("UPDATE {t} SET s = 'one{r}' WHERE k = 5",),
    ("UPDATE {t} SET big = repeat('x{r}', 2500) WHERE k = 5",),
    ("UPDATE {t} SET n = 7 WHERE k = 5",),
    ("UPDATE {t} SET k = -k WHERE k BETWEEN 30 AND 40",),
    ("UPDATE {t} SET n = n + 1 WHERE k BETWEEN -40 AND -30",),
    ("UPDATE {t} SET k = -k, s = 'home' WHERE k BETWEEN -40 AND -30",),
    ("UPDATE {t} SET big = NULL WHERE k = 50 + {r}",),
    ("DELETE FROM {t} WHERE k = 60 + {r}", "UPDATE {t} SET k = 60 + {r} WHERE k = 70 + {r}"),
)  # fmt: skip
SOME_BIG = (
    "INSERT INTO {t} SELECT i, i, 's' || i, "
    + BIG
    + " FROM generate_series(0, 250) i WHERE i NOT IN (1, 2, 40)"
)
KNB = "k int, n int, s text, big text, PRIMARY KEY (k)"
EXTERNAL = "ALTER TABLE {t} ALTER big SET STORAGE EXTERNAL"
IMAGES = (
    Case("u_moves", KNB, SOME_BIG, KEY_WORK, EXTERNAL),
    Case("u_moves_full", KNB, SOME_BIG, KEY_WORK,
    EXTERNAL + "; ALTER TABLE {t} REPLICA IDENTITY FULL"),
    Case("u_default", KNB, SOME_BIG, UNSENT_WORK, EXTERNAL),
    Case("u_full", KNB, SOME_BIG, UNSENT_WORK,
    EXTERNAL + "; ALTER TABLE {t} REPLICA IDENTITY FULL"),
    Case(
        "u_index", "id serial PRIMARY KEY, k int NOT NULL, n int, s text, big text",
        SOME_BIG.replace("{t}", "{t} (k, n, s, big)"),
        tuple(tuple(s.replace("INTO {t} ",
        "INTO {t} (k, n, s, big) ") for s in t) for t in UNSENT_WORK),
        EXTERNAL + "; CREATE UNIQUE INDEX u_index_k ON {t} (k); ALTER TABLE {t} REPLICA IDENTITY "
                   "USING INDEX u_index_k",
    ),
    Case(
        "u_big_key", "k text PRIMARY KEY, n int, big text",
        "INSERT INTO {t} SELECT repeat('k', 1000) || i, i, " + BIG + " FROM generate_series(1, 40) i",  # noqa: E501
        (("UPDATE {t} SET n = n + {r}",),
        ("UPDATE {t} SET k = 'r{r}' || k WHERE n % 3 = 0", "UPDATE {t} SET n = 0 WHERE n % 5 = 0")),
        EXTERNAL,
    ),
)  # fmt: skip

TRANSACTIONS = (
    Case("x_parent", "id int PRIMARY KEY, v text", "INSERT INTO {t} SELECT i, 'p' FROM "
                                                   "generate_series(1, 50) i"),
    Case(
        "x_child", "id int PRIMARY KEY, parent int REFERENCES shop.x_parent, v text",
        "INSERT INTO {t} SELECT i, 1 + i % 50, 'c' FROM generate_series(1, 100) i",
        (("INSERT INTO {t} VALUES (1000 + {r}, 1, 'gone')", "TRUNCATE shop.x_parent CASCADE",
          "INSERT INTO shop.x_parent SELECT i, 'r{r}' FROM generate_series(1, 20) i",
          "INSERT INTO {t} VALUES ({r}, 3, 'kept')"),),
    ),
    Case("x_tiny", "id int PRIMARY KEY, v text"),
    Case("x_long", "id int PRIMARY KEY, v text", "INSERT INTO {t} SELECT i, 'v' FROM "
                                                 "generate_series(1, 100) i"),
    Case("x_saved", "id int PRIMARY KEY, v text"),
    Case("x_copied", "id int PRIMARY KEY, v text"),
)  # fmt: skip

PLAIN = "id int PRIMARY KEY, v text"
PLAIN_ROWS = "INSERT INTO {t} SELECT i, 'v' || i FROM generate_series(1, 20) i"
PLAIN_WORK: tuple[Transaction, ...] = (
    ("INSERT INTO {t} VALUES (100 + {r}, 'new')", "UPDATE {t} SET v = 'u{r}' WHERE id % 3 = 0",
    "DELETE FROM {t} WHERE id = {r}"),
)  # fmt: skip
_OTHERS = ", ".join(f"c{i} smallint" for i in range(1, WIDE))
SCHEMAS = (
    Case(
        "p_parts", "at date, id int, v text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at",
        "INSERT INTO {t} SELECT '2024-01-01'::date + i * 10, i, 'v' FROM generate_series(1, 60) i",
        (
            ("INSERT INTO {t} VALUES ('2024-03-0{r}', 1000 + {r}, 'a'), ('2025-03-0{r}', 1000 + "
             "{r}, 'b')",),
            ("UPDATE {t} SET at = at + 366 WHERE id = {r}",
            "UPDATE {t} SET v = 'u{r}' WHERE id % 7 = 0"),
            ("DELETE FROM {t} WHERE id = 50 + {r}",),
        ),
        "CREATE TABLE shop.p_2024 PARTITION OF {t} FOR VALUES FROM ('2024-01-01') TO "
        "('2025-01-01');"
        "CREATE TABLE shop.p_2025 PARTITION OF {t} FOR VALUES FROM ('2025-01-01') TO "
        "('2026-01-01') PARTITION BY LIST (id);"
        "CREATE TABLE shop.p_2025_rest PARTITION OF shop.p_2025 DEFAULT",
    ),
    Case("p_base", PLAIN, PLAIN_ROWS, PLAIN_WORK, only=True),
    Case(
        "p_heir", "LIKE shop.p_base INCLUDING ALL, more int) INHERITS (shop.p_base",
        "INSERT INTO {t} SELECT i, 'h', i FROM generate_series(21, 30) i",
        (("UPDATE {t} SET v = 'h{r}', more = {r} WHERE id = 25",
        "UPDATE shop.p_base SET v = 'all{r}' WHERE id > 15"),),
    ),
    Case(
        "s_wide", f"c0 int PRIMARY KEY, {_OTHERS}", "INSERT INTO {t} (c0, c1, c800) SELECT i, i, "
                                                    "i FROM generate_series(1, 20) i",
        (("UPDATE {t} SET c1599 = {r} WHERE c0 % 2 = 0",
        "INSERT INTO {t} (c0, c7) VALUES (100 + {r}, 7)", "DELETE FROM {t} WHERE c0 = {r}"),),
    ),
    Case(
        "s_values",
        f"id int PRIMARY KEY, {GENERATED}at timestamp, day date, n numeric, d numeric(38,5), r "
        "int4range, a text[],"
        " ia int[], doc jsonb, dom shop.percent, m shop.mood, f float8, t time, i interval, b "
        "bit(3), u uuid, e text",
        "INSERT INTO {t} (id, at, day, n, d, r, a, ia, doc, dom, m, f, t, i, b, u, e) VALUES"
        " (1, '0001-01-01', '0001-01-01', 'NaN', -1, 'empty', '{}', '{NULL}', '{\"a\": [1, "
        "{\"b\": null}]}', 50, 'calm', 'NaN', '00:00', '1 year', '101', NULL, ''),"
        " (2, '9999-12-31 23:59:59.999999', '9999-12-31', 1e-30, "
        "999999999999999999999999999999999.99999, '[1,5)', '{NULL,\"\",\"a,b\"}', '{1,NULL,-3}',"
        " 'null', NULL, 'busy', '-Infinity', '23:59:59.999999', '-3 days 04:05:06', '000', "
        "'00000000-0000-0000-0000-000000000000', E'\\n\\t'),"
        " (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL, NULL, NULL)",
        (
            ("INSERT INTO {t} (id, at, day, n, d, r, a, ia, doc, dom, m, f, t, i, b, u, e)"
             " SELECT id + 10 * {r}, at, day, n, d, r, a, ia, doc, dom, m, f, t, i, b, u, e FROM "
             "{t} WHERE id < 4",),
            ("UPDATE {t} SET n = 1.{r}00, a = a || ARRAY['x', NULL], doc = '[]', f = -0.0 WHERE "
             "id < 3",),
            ("ALTER TYPE shop.mood ADD VALUE IF NOT EXISTS 'new{r}'",),
            ("UPDATE {t} SET m = 'new{r}' WHERE id = 3",),
        ),
    ),
    *(Case(name, PLAIN, PLAIN_ROWS, PLAIN_WORK) for name in ODD_NAMES),
    Case(
        "n_columns", 'id int PRIMARY KEY, "a b" text, "c.d" text, "select" text, "quo""te" text, '
                     '"Größe" text, "ba`ck" text, "e\N{GRINNING FACE}" text,'
        f' "{LONGEST}" text, "semi;colon" text, "eq=ual" text',
        "INSERT INTO {t} SELECT i, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j' FROM "
        "generate_series(1, 20) i",
        (("INSERT INTO {t} (id, \"a b\") VALUES (100 + {r}, 'n')",
            'UPDATE {t} SET "c.d" = \'u{r}\', "ba`ck" = \'u\', "e\N{GRINNING FACE}" = NULL WHERE '
            'id % 3 = 0',
          "DELETE FROM {t} WHERE id = {r}"),),
    ),
    Case("n_odd_key", '"k.e y" text, "`b""" int, v text, PRIMARY KEY ("k.e y", "`b""")',
    "INSERT INTO {t} SELECT 'k' || i, i, 'v' FROM generate_series(1, 20) i",
         (("UPDATE {t} SET v = 'u{r}'", "DELETE FROM {t} WHERE \"`b\"\"\" = {r}",
         "UPDATE {t} SET \"k.e y\" = 'moved{r}' WHERE \"`b\"\"\" = 10 + {r}"),)),
    Case("equal", PLAIN, PLAIN_ROWS, PLAIN_WORK),
    Case("equal", "id int PRIMARY KEY, w int", "INSERT INTO {t} SELECT i, i FROM "
                                               "generate_series(1, 5) i",
         (("INSERT INTO {t} VALUES (100 + {r}, 1)", "UPDATE {t} SET w = {r}"),),
         schema="other one"),
)  # fmt: skip
VIEW = "CREATE VIEW shop.kept_of_{n} AS SELECT {c} FROM {{t}} WHERE {w}"


def _chosen(
    name: str, choice: Mapping[str, Any], *, columns: str = "*", rows: str = "true"
) -> Case:
    """Rows that move and large values that are not sent, of which only a part is copied."""
    view = VIEW.format(n=name, c=columns, w=rows)
    return Case(
        name,
        KNB,
        SOME_BIG,
        (*KEY_WORK, *UNSENT_WORK),
        f"{EXTERNAL}; {view}",
        choice=choice,
        against=f"kept_of_{name}",
    )


CHOSEN = (
    _chosen("c_rows", {"filter": "n < 100 AND s LIKE 's%'"}, rows="n < 100 AND s LIKE 's%'"),
    _chosen("c_columns", {"columns": ["k", "big"]}, columns="k, big"),
    _chosen("c_soft", {"mode": "soft_delete"}),
    _chosen("c_history", {"mode": "history"}),
    Case(
        "c_no_deletes", PLAIN, PLAIN_ROWS,
        (
            ("DELETE FROM {t} WHERE id BETWEEN {r} AND {r} + 2",
            "UPDATE {t} SET v = 'u{r}' WHERE id > 10"),
            ("INSERT INTO {t} VALUES ({r} + 1, 'again{r}')", "DELETE FROM {t} WHERE id = 15 + {r}",
            "INSERT INTO {t} VALUES (100 + {r}, 'new')"),
        ),
        "CREATE TABLE shop.kept_of_c_no_deletes (LIKE {t} INCLUDING ALL);"
        "CREATE FUNCTION shop.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO "
        "shop.kept_of_c_no_deletes VALUES (NEW.*)"
        " ON CONFLICT (id) DO UPDATE SET v = excluded.v; RETURN NULL; END $$;"
        "CREATE TRIGGER keep AFTER INSERT OR UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION "
        "shop.keep()",
        choice={"excluded": ["deletes"]}, against="kept_of_c_no_deletes",
    ),
    Case(
        "c_no_inserts", "id int PRIMARY KEY, born text DEFAULT 'later', v text",
        "INSERT INTO {t} SELECT i, 'first', 'v' FROM generate_series(1, 40) i",
        (
            ("INSERT INTO {t} (id, v) VALUES (100 + {r}, 'new')",
            "UPDATE {t} SET v = 'u{r}' WHERE id % 3 = 0", "DELETE FROM {t} WHERE id = {r}"),
            ("INSERT INTO {t} (id, v) VALUES ({r}, 'taken')",
            "UPDATE {t} SET id = 200 + {r} WHERE id = 10 + {r}",
            "UPDATE {t} SET id = 10 + {r} WHERE id = 100 + {r}"),
        ),
        VIEW.format(n="c_no_inserts", c="*", w="born = 'first'"), choice={"excluded": ["inserts"]},
        against="kept_of_c_no_inserts",
    ),
    Case(
        "c_counted", "n int, v text", "INSERT INTO {t} SELECT i % 5, 'v' FROM generate_series(1, "
                                      "40) i",
        (
            ("INSERT INTO {t} SELECT 3, 'v' FROM generate_series(1, {r})",
            "DELETE FROM {t} WHERE ctid IN (SELECT ctid FROM {t} WHERE n = 1 LIMIT 2)"),
            ("UPDATE {t} SET v = NULL WHERE ctid IN (SELECT ctid FROM {t} WHERE n = 2 LIMIT 1)",
            "INSERT INTO {t} VALUES (NULL, NULL), (NULL, NULL)"),
        ),
        "ALTER TABLE {t} REPLICA IDENTITY FULL",
    ),
)  # fmt: skip
CASES = (*KEYS, *IMAGES, *TRANSACTIONS, *SCHEMAS, *CHOSEN)


def make_cases(database: Database, cases: Sequence[Case] = CASES) -> None:
    """The tables, with the rows they begin with."""
    database.execute(
        "CREATE SCHEMA shop; CREATE SCHEMA \"other one\"; CREATE TYPE shop.mood AS ENUM ('calm', "
        "'busy', 'so-so');"
        "CREATE DOMAIN shop.percent AS int CHECK (VALUE BETWEEN 0 AND 100);"
        f"CREATE TABLE shop.{NOT_CHOSEN} (id int PRIMARY KEY)"
    )
    with database.connect() as c:
        for case in cases:
            columns = case.columns
            if c.info.server_version < SENDS_GENERATED:
                columns = columns.replace(GENERATED, "")
            for statement in (f"CREATE TABLE {{t}} ({columns})", case.after, case.rows):
                if statement:
                    _run(c, case.filled(statement))


def _run(c: psycopg.Connection[Any], statement: str) -> None:
    c.execute(statement.encode())


def one_round(database: Database, number: int, cases: Sequence[Case] = CASES) -> None:
    """Everything that happens to the tables in one round."""
    with database.connect() as c:
        for case in cases:
            for transaction in case.work:
                with c.transaction():
                    for statement in transaction:
                        _run(c, case.filled(statement, number))
        _savepoints(c, number)
        _copy(c, number)
        for i in range(700):
            _run(c, f"INSERT INTO shop.x_tiny VALUES ({number * 10_000 + i}, 'tiny')")
        _nothing_to_copy(c, number)
    _interleaved(database, number)


def _nothing_to_copy(c: psycopg.Connection[Any], number: int) -> None:
    """A commit that wrote nothing, and one of a table that was not chosen."""
    with c.transaction():
        _run(c, "SELECT pg_current_xact_id()")
    with c.transaction():
        _run(c, f"INSERT INTO shop.{NOT_CHOSEN} VALUES ({number})")


def _savepoints(c: psycopg.Connection[Any], number: int) -> None:
    """Parts of a transaction that never happened, one inside another, and a part that did after one
    that did not."""
    first = number * 100
    with c.transaction():
        _run(c, f"INSERT INTO shop.x_saved VALUES ({first}, 'kept')")
        _run(c, "SAVEPOINT one")
        _run(c, f"INSERT INTO shop.x_saved VALUES ({first + 1}, 'lost')")
        _run(c, "SAVEPOINT two")
        _run(c, f"UPDATE shop.x_saved SET v = 'lost' WHERE id = {first}")
        _run(c, "RELEASE SAVEPOINT two")
        _run(c, "ROLLBACK TO SAVEPOINT one")
        _run(c, f"INSERT INTO shop.x_saved VALUES ({first + 1}, 'second try')")
    with c.transaction() as whole:
        _run(c, "DELETE FROM shop.x_saved")
        raise psycopg.Rollback(whole)


def _copy(c: psycopg.Connection[Any], number: int) -> None:
    with c.cursor() as cursor, cursor.copy("COPY shop.x_copied FROM STDIN") as rows:
        for i in range(3000):
            rows.write_row((number * 10_000 + i, f"copied {i}"))


def _interleaved(database: Database, number: int) -> None:
    """A long transaction that begins before and ends after short ones, over the same rows."""
    first = number * 1000
    with database.connect() as long, database.connect() as short:
        with long.transaction():
            _run(
                long,
                f"INSERT INTO shop.x_long SELECT i, 'long' FROM generate_series({first}, "
                f"{first + 300}) i",
            )
            _run(long, "UPDATE shop.x_long SET v = v || '!' WHERE id BETWEEN 1 AND 30")
            for i in range(30):
                _run(short, f"UPDATE shop.x_long SET v = 'short{number}' WHERE id = {40 + i}")
                _run(short, f"INSERT INTO shop.x_long VALUES ({first + 500 + i}, 'short')")
            _run(long, f"UPDATE shop.x_long SET v = 'late' WHERE id >= {first}")
        with long.transaction():
            _run(long, f"DELETE FROM shop.x_long WHERE id = {30 + number}")
