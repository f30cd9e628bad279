"""Small tables of a MySQL or MariaDB source, one for each way in which keys, transactions, schemas,
names or choices are unusual. As in `source_cases`, `{r}` in a statement is the round, from 1 on;
`source_traffic_mysql` has the traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.integration.source_cases import KEY_WORK, Case, Transaction
from tests.model.tables_mysql import numbers

LONGEST = "n" * 64
WIDE = 1000
ODD_NAMES = (
    'quo"ted', "it's", "dot.ted", "two words", "select", "_under", "Größe", "日本", "slash/ed",
    "back\\slash", "semi;colon", "per%cent",
    "back`tick", "${x}", "#hash--", LONGEST,
)  # fmt: skip
MARIADB, MYSQL = "mariadb", "mysql"


def quoted(schema: str, table: str) -> str:
    """The table's name for SQL."""
    return ".".join("`" + n.replace("`", "``") + "`" for n in (schema, table))


@dataclass(frozen=True)
class MysqlCase(Case):
    """`rest`: what stands behind the columns; `flavour`: the only server that has such a table."""

    rest: str = ""
    flavour: str = ""

    @property
    def sql_name(self) -> str:
        return quoted(self.schema, self.name)


def _keyed(name: str, kind: str, *keys: str, flavour: str = "",
    extra: tuple[Transaction, ...] = ()) -> MysqlCase:  # fmt: skip
    """Keys of one type, as SQL: every second row is changed, the others go and come back; `extra`
    changes the keys."""
    work = (
        *((f"UPDATE {{t}} SET v = 'u{{r}}' WHERE k = {k}",) for k in keys[::2]),
        *((f"DELETE FROM {{t}} WHERE k = {k}",
        f"INSERT INTO {{t}} VALUES ({k}, 'again{{r}}')") for k in keys[1::2]),
        *extra,
    )  # fmt: skip
    rows = ", ".join(f"({k}, 'v{i}')" for i, k in enumerate(keys))
    return MysqlCase(name, f"k {kind} PRIMARY KEY, v varchar(100)",
        f"INSERT INTO {{t}} VALUES {rows}", work, flavour=flavour)  # fmt: skip


EXACT_TEXTS = (
    "'A'", "'a'", "'a '", "'a  '", "' a'", "''", "'a\x01'", r"'n\0n'", "'␀'", "'é'", "'e\u0301'",
    "'ss'", "'ß'", "'${x}'", r"'it''s\\'",
    "'\N{GRINNING FACE}'",
)  # fmt: skip
LOOSE_TEXTS: tuple[Transaction, ...] = (
    ("UPDATE {t} SET k = IF({r} % 2, upper(k), lower(k)), v = 'case{r}' WHERE k <> 'ss'",),
    ("UPDATE {t} SET k = concat(k, ' ') WHERE k = 'b'",
    "INSERT INTO {t} VALUES ('B', 'x') ON DUPLICATE KEY UPDATE v = 'met{r}'"),
    ("REPLACE INTO {t} VALUES (IF({r} % 2, 'É', 'é'), 'r{r}')",),
    ("DELETE FROM {t} WHERE k = 'C'", "INSERT INTO {t} VALUES (IF({r} % 2, 'C', 'c'), 'again{r}')"),
    ("UPDATE {t} SET k = trim(k) WHERE k = 'B'",),
)  # fmt: skip
A_UUID, B_UUID = "123e4567-e89b-12d3-a456-426655440000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
KEYS = (
    MysqlCase(
        "k_composite", "a int, b varchar(20), c date, v varchar(20), PRIMARY KEY (b, a, c)",
        f"INSERT INTO {{t}} SELECT i % 3, concat('b', i % 5), date_add('2024-01-01', interval i "
        f"day), 'v' FROM {numbers(1, 60)}",
        (
            ("UPDATE {t} SET v = 'u{r}' WHERE a = 1",),
            ("UPDATE {t} SET b = concat(b, '{r}') WHERE a = 2",),
            ("UPDATE {t} SET a = a + 10 * {r}, c = c + interval 1 day WHERE b = 'b0'",
            "DELETE FROM {t} WHERE b = 'b1' AND a = 0"),
        ),
    ),
    _keyed("k_text", "varchar(40) COLLATE utf8mb4_nopad_bin", *EXACT_TEXTS, flavour=MARIADB),
    _keyed("k_text", "varchar(40) COLLATE utf8mb4_0900_bin", *EXACT_TEXTS, flavour=MYSQL),
    _keyed("k_padded", "varchar(40) COLLATE utf8mb4_bin", "'A'", "'a '", "' a'", "''", "'é'",
    "'e\u0301'", "'ß'",
           extra=(("UPDATE {t} SET k = IF({r} % 2, 'a', 'a  ') WHERE k = 'a'",),)),
    _keyed("k_loose", "varchar(40) COLLATE utf8mb4_general_ci", "'a'", "'b'", "'c'", "'É'", "'ss'",
    "''", extra=LOOSE_TEXTS),
    _keyed("k_char", "char(5)", "'A '", "'b'", "' c'", "'de'", "''",
    extra=(("UPDATE {t} SET k = IF({r} % 2, 'a', 'A') WHERE k = 'a'",),)),
    _keyed("k_latin", "varchar(20) CHARACTER SET latin1 COLLATE latin1_bin", "'ü'", "'ÿ€'", "'u'",
    "''"),
    _keyed("k_long", "varchar(700)", "repeat('k', 700)", "concat(repeat('k', 699), 'l')",
    "repeat('ż', 700)", "'k'"),
    _keyed("k_bytes", "varbinary(20)", "x''", "x'00'", "x'0000'", "x'0001'", "x'ff'", "x'41'",
    "x'61'", "x'4100'", "x'20'"),
    _keyed("k_fixed", "binary(4)", "x'00000000'", "x'01000000'", "x'0100ff00'", "x'41422020'",
    "x'ffffffff'"),
    _keyed("k_decimal", "decimal(38, 10)", "0.0000000001",
    "-9999999999999999999999999999.9999999999", "1.1", "0",
           "9999999999999999999999999999.9999999998", "9999999999999999999999999999.9999999999"),
    _keyed("k_unsigned", "bigint unsigned", "0", "18446744073709551615", "9223372036854775808",
    "9223372036854775807"),
    _keyed("k_double", "double", "0.1e0", "1.7976931348623157e308", "5e-324", "-1.5e0", "0e0",
    extra=(("UPDATE {t} SET k = -0e0 WHERE k = 0",),)),
    _keyed("k_float", "float", "0.5", "-0.25", "16777216", "1e10", "0"),
    _keyed("k_moment", "datetime(6)", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'",
    "'1969-12-31 23:59:59.999999'",
           "'0001-01-01 00:00:00.000001'", "'1582-10-10 12:00:00'"),
    _keyed("k_zoned", "timestamp(6)", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'",
    "'2024-10-27 00:30:00.000001'"),
    _keyed("k_date", "date", "'1000-01-01'", "'9999-12-31'", "'1970-01-01'", "'1582-10-10'",
    "'0001-01-01'"),
    _keyed("k_time", "time(3)", "'-838:59:59'", "'838:59:59'", "'00:00:00'", "'12:34:56.789'",
    "'-00:00:00.001'"),
    _keyed("k_year", "year", "1901", "2155", "0"),
    _keyed("k_enum", "enum('z', 'busy', 'it''s', 'Größe')", "'z'", "'busy'", "'it''s'", "'Größe'"),
    _keyed("k_set", "set('b', 'a', 'c d')", "''", "'b,c d'", "'a'", "'b,a'"),
    _keyed("k_bit", "bit(1)", "b'0'", "b'1'"),
    _keyed("k_bits", "bit(64)", "0", "1", "18446744073709551615", "9223372036854775808"),
    _keyed("k_uuid_text", "char(36) CHARACTER SET ascii", f"'{A_UUID}'", f"'{B_UUID}'",
    "'00000000-0000-0000-0000-000000000000'",
           extra=(("UPDATE {t} SET k = IF({r} % 2, upper(k), lower(k)) WHERE k LIKE 'ffff%'",),)),
    _keyed("k_uuid_bytes", "binary(16)", f"x'{A_UUID.replace('-', '')}'",
    f"x'{B_UUID.replace('-', '')}'", f"x'{'00' * 16}'"),
    _keyed("k_uuid", "uuid", f"'{A_UUID}'", f"'{B_UUID}'", "'00000000-0000-0000-0000-000000000000'",
    flavour=MARIADB),
    _keyed("k_inet6", "inet6", "'::1'", "'::'", "'::ffff:192.0.2.1'", "'2001:db8::ff00:42:8329'",
    flavour=MARIADB),
    _keyed("k_inet4", "inet4", "'0.0.0.0'", "'255.255.255.255'", "'10.0.0.1'", flavour=MARIADB),
    MysqlCase(
        "k_unique", "k varchar(20) NOT NULL, n int NOT NULL, v varchar(20), UNIQUE (v), UNIQUE "
                    "(k, n)",
        f"INSERT INTO {{t}} SELECT concat('k', i % 5), i, concat('v', i) FROM {numbers(1, 40)}",
        (("UPDATE {t} SET v = concat('u{r}.', n) WHERE n % 3 = 0", "DELETE FROM {t} WHERE n = {r}"),
        ("UPDATE {t} SET n = n + 100 WHERE n BETWEEN 20 AND 22 + {r}",)),
    ),
    MysqlCase(
        "k_hidden", "k bigint unsigned AUTO_INCREMENT INVISIBLE PRIMARY KEY, v varchar(20)",
        f"INSERT INTO {{t}} SELECT concat('v', i) FROM {numbers(1, 20)}",
        (("INSERT INTO {t} VALUES ('new'), ('new')", "DELETE FROM {t} WHERE k = {r}"),
        ("UPDATE {t} SET v = 'u{r}' WHERE k > 10",)),
    ),
    MysqlCase(
        "k_computed", "n int, k varchar(20) AS (concat('k', n)) STORED PRIMARY KEY",
        f"INSERT INTO {{t}} (n) SELECT i FROM {numbers(1, 20)}",
        (("UPDATE {t} SET n = n + 100 * {r} WHERE n % 4 = 0", "INSERT INTO {t} (n) VALUES (-{r})"),
        ), flavour=MYSQL,
    ),
)  # fmt: skip

BIG = "repeat(sha2(i, 256), 100)"
KNB = "k int PRIMARY KEY, n int, s varchar(200), big longtext"
SOME_BIG = (
    f"INSERT INTO {{t}} SELECT i, i, concat('s', i), {BIG} FROM {numbers(0, 250)} WHERE i NOT IN "
    "(1, 2, 40)"
)  # fmt: skip
LARGE_WORK: tuple[Transaction, ...] = (
    ("UPDATE {t} SET n = {r} WHERE k < 20",),
    (f"INSERT INTO {{t}} SELECT 1000 * {{r}} + i, 0, 's', {BIG} FROM {numbers(1, 20)}",
    "UPDATE {t} SET n = 1 WHERE k > 1000 * {r}"),
    ("UPDATE {t} SET s = 'one{r}' WHERE k = 5", "UPDATE {t} SET big = repeat('x{r}', 2500) WHERE "
                                                "k = 5", "UPDATE {t} SET n = 7 WHERE k = 5"),
    ("UPDATE {t} SET k = -k WHERE k BETWEEN 30 AND 40",),
    ("UPDATE {t} SET n = n + 1 WHERE k BETWEEN -40 AND -30",),
    ("UPDATE {t} SET k = -k, s = 'home' WHERE k BETWEEN -40 AND -30",),
    ("UPDATE {t} SET big = NULL WHERE k = 50 + {r}", "UPDATE {t} SET big = '' WHERE k = 55 + {r}"),
    ("DELETE FROM {t} WHERE k = 60 + {r}", "UPDATE {t} SET k = 60 + {r} WHERE k = 70 + {r}"),
)  # fmt: skip
IMAGES = (
    MysqlCase("u_moves", KNB, SOME_BIG, KEY_WORK),
    MysqlCase("u_large", KNB, SOME_BIG, LARGE_WORK),
    MysqlCase("u_bytes", KNB.replace("longtext", "mediumblob"),
    SOME_BIG.replace(BIG, "repeat(unhex(sha2(i, 256)), 200)"),
              tuple(tuple(s.replace(BIG,
              "repeat(unhex(sha2(i, 256)), 200)") for s in t) for t in LARGE_WORK)),
    MysqlCase(
        "u_big_key", "k varchar(700) PRIMARY KEY, n int, big text",
            f"INSERT INTO {{t}} SELECT concat(repeat('k', 600), i), i, {BIG} FROM "
            f"{numbers(1, 40)}",
        (("UPDATE {t} SET n = n + {r}",),
        ("UPDATE {t} SET k = concat('r{r}', k) WHERE n % 3 = 0",
        "UPDATE {t} SET n = 0 WHERE n % 5 = 0")),
    ),
)  # fmt: skip

PLAIN = "id int PRIMARY KEY, v varchar(100)"
PLAIN_ROWS = f"INSERT INTO {{t}} SELECT i, concat('v', i) FROM {numbers(1, 20)}"
PLAIN_WORK: tuple[Transaction, ...] = (
    ("INSERT INTO {t} VALUES (100 + {r}, 'new')", "UPDATE {t} SET v = 'u{r}' WHERE id % 3 = 0",
    "DELETE FROM {t} WHERE id = {r}"),
)  # fmt: skip
TRANSACTIONS = (
    MysqlCase("x_parent", PLAIN, f"INSERT INTO {{t}} SELECT i, 'p' FROM {numbers(1, 50)}"),
    MysqlCase(
        "x_child", "id int PRIMARY KEY, parent int, v varchar(20), FOREIGN KEY (parent) "
                   "REFERENCES shop.x_parent (id) ON DELETE RESTRICT",
        f"INSERT INTO {{t}} SELECT i, 1 + i % 50, 'c' FROM {numbers(1, 100)}",
        (
            ("INSERT INTO {t} VALUES (1000 + {r}, 1, 'gone')", "DELETE FROM {t} WHERE parent <= 20",
            "DELETE FROM shop.x_parent WHERE id <= 20"),
            (f"INSERT INTO shop.x_parent SELECT i, 'r{{r}}' FROM {numbers(1, 20)}",
            "INSERT INTO {t} VALUES ({r}, 3, 'kept')"),
            ("UPDATE shop.x_parent p JOIN {t} c ON c.parent = p.id SET p.v = 'both{r}', c.v = "
             "'both{r}' WHERE p.id % 3 = 0",),
        ),
    ),
    MysqlCase("x_emptied", PLAIN, PLAIN_ROWS,
    (("INSERT INTO {t} VALUES (100 + {r}, 'gone')", "TRUNCATE {t}",
    f"INSERT INTO {{t}} SELECT i, 'r{{r}}' FROM {numbers(5, 15)}"),
                                              ("DELETE FROM {t} WHERE id < 8",))),
    MysqlCase(
        "x_met", "id int PRIMARY KEY, u int UNIQUE, v varchar(20)",
        f"INSERT INTO {{t}} SELECT i, i * 10, 'v' FROM {numbers(1, 60)}",
        (
            ("REPLACE INTO {t} VALUES (5 * {r}, 10 * (5 * {r} + 1), 'two{r}'), (70 + {r}, 400 + "
             "10 * {r}, 'other{r}')",),
            ("INSERT INTO {t} VALUES (40, 1, 'x'), (200 + {r}, 450 + 10 * {r}, 'x'), (300 + {r}, "
             "3000 + {r}, 'new') ON DUPLICATE KEY UPDATE v = 'met{r}'",),
            ("INSERT INTO {t} VALUES (50 + {r}, 0, 'x') ON DUPLICATE KEY UPDATE id = id + 1000 * "
             "{r}", "INSERT IGNORE INTO {t} VALUES (1, 1, 'no'), (400 + {r}, NULL, 'yes')"),
        ),
    ),
    MysqlCase("x_left", PLAIN, PLAIN_ROWS),
    MysqlCase("x_right", PLAIN, PLAIN_ROWS, (
        ("UPDATE shop.x_left l JOIN {t} r USING (id) SET l.v = 'l{r}', r.v = concat(l.v, 'r{r}') "
         "WHERE id > 10",),
        ("DELETE l, r FROM shop.x_left l JOIN {t} r USING (id) WHERE id = 2 * {r}",
        "INSERT INTO {t} VALUES (2 * {r}, 'right only')"))),
    MysqlCase("x_tiny", PLAIN),
    MysqlCase("x_long", PLAIN, f"INSERT INTO {{t}} SELECT i, 'v' FROM {numbers(1, 100)}"),
    MysqlCase("x_saved", PLAIN),
    MysqlCase("x_loaded", PLAIN),
    MysqlCase("x_packed", PLAIN, PLAIN_ROWS),
    MysqlCase("x_prepared", PLAIN, PLAIN_ROWS),
)  # fmt: skip

_VALUES: dict[str, tuple[str, str, str]] = {
    "t": ("tinyint", "-128", "127"), "ut": ("tinyint unsigned", "0", "255"),
    "um": ("mediumint unsigned", "0", "16777215"),
    "ui": ("int unsigned", "0", "4294967295"),
    "b": ("bigint", "-9223372036854775808", "9223372036854775807"),
    "ub": ("bigint unsigned", "0", "18446744073709551615"), "zf": ("int(6) zerofill", "0", "42"),
    "f": ("float", "1.1", "-3.4e38"),
    "d": ("double", "5e-324", "-1.7976931348623157e308"),
    "dec": ("decimal(38, 5)", "-0.00001", "999999999999999999999999999999999.99999"),
    "far": ("decimal(65, 30)", "0",
    "-12345678901234567890123456789012345.000000000000000000000000000001"),
    "b1": ("bit(1)", "b'0'", "b'1'"), "b10": ("bit(10)", "0", "1023"),
    "b64": ("bit(64)", "0", "18446744073709551615"),
    "y": ("year", "0", "2155"), "day": ("date", "'0001-01-01'", "'9999-12-31'"),
    "at": ("datetime", "'1000-01-01'", "'1582-10-10 01:02:03'"),
    "at6": ("datetime(6)", "'0001-01-01'", "'9999-12-31 23:59:59.999999'"),
    "z": ("timestamp(6) NULL", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"),
    "h": ("time", "'-838:59:59'", "'00:00:00'"),
    "h6": ("time(6)", "'-00:00:00.000001'", "'100:00:00.5'"), "c": ("char(10)", "''", "'ab  '"),
    "l": ("varchar(50) CHARACTER SET latin1", "''", "'äöü€ÿ'"),
    "w": ("varchar(50) CHARACTER SET utf16", "'a '", "'\N{GRINNING FACE}'"),
    "k": ("varchar(50) CHARACTER SET gbk", "''", "'中文'"),
    "x": ("mediumtext", r"'\n\t\0'", "repeat('ż', 40000)"),
    "fixed": ("binary(5)", "x'0000000000'", "x'4100420000'"),
    "vb": ("varbinary(20)", "''", "x'00ff00'"), "lb": ("longblob", "''", "repeat(x'00ff', 40000)"),
    "e": ("enum('calm', 'busy', 'so-so')", "'calm'", "'so-so'"),
    "s": ("set('a', 'b', 'c d')", "''", "'a,c d'"),
    "g": ("geometry", "point(3, 4)", "point(-1, 0)"),
    "j": ("json", "'null'",
    """'{"b": [1, {"a": null}], "a": 1.5, "ü": "\N{GRINNING FACE}", "n": -9007199254740993}'"""),
}  # fmt: skip
_NAMES = ", ".join(f"`{n}`" for n in _VALUES)
_TYPES = ", ".join(f"`{n}` {kind}" for n, (kind, _, _) in _VALUES.items())
_ROWS = ", ".join(f"({i}, {', '.join(v[i] for v in _VALUES.values())})" for i in (1, 2))
_WIDE = ", ".join(f"c{i} smallint" for i in range(1, WIDE))
SCHEMAS = (
    MysqlCase(
        "p_parts", "at date, id int, v varchar(20), PRIMARY KEY (id, at)",
            f"INSERT INTO {{t}} SELECT date_add('2024-01-01', interval i * 10 day), i, 'v' FROM "
            f"{numbers(1, 60)}",
        (
            ("INSERT INTO {t} VALUES ('2024-03-0{r}', 1000 + {r}, 'a'), ('2025-03-0{r}', 1000 + "
             "{r}, 'b')",),
            ("UPDATE {t} SET at = at + interval 366 day WHERE id = {r}",
            "UPDATE {t} SET v = 'u{r}' WHERE id % 7 = 0"),
            ("DELETE FROM {t} WHERE id = 50 + {r}",),
        ),
        rest=" PARTITION BY RANGE COLUMNS (at) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 "
             "(PARTITION p24 VALUES LESS THAN ('2025-01-01'), PARTITION rest VALUES LESS THAN "
             "(MAXVALUE))",
    ),
    MysqlCase(
        "s_wide", f"c0 int PRIMARY KEY, {_WIDE}", f"INSERT INTO {{t}} (c0, c1, c800) SELECT i, "
                                                  f"i, i FROM {numbers(1, 20)}",
        (("UPDATE {t} SET c999 = {r} WHERE c0 % 2 = 0",
        "INSERT INTO {t} (c0, c7) VALUES (100 + {r}, 7)", "DELETE FROM {t} WHERE c0 = {r}"),),
    ),
    MysqlCase(
        "s_values", f"id int PRIMARY KEY, {_TYPES}", f"INSERT INTO {{t}} (id, {_NAMES}) VALUES "
                                                     f"{_ROWS}, (3{', NULL' * len(_VALUES)})",
        (
            (f"INSERT INTO {{t}} (id, {_NAMES}) SELECT id + 10 * {{r}}, {_NAMES} FROM {{t}} "
             "WHERE id < 4",),
            ("UPDATE {t} SET `dec` = {r}.5, j = json_set(j, '$.a', {r}), f = -0e0, h6 = "
             "'-01:00:00.{r}', s = 'b', g = NULL WHERE id < 3",),
            ("UPDATE {t} SET e = 'busy', x = 'short', lb = NULL WHERE id = 10 * {r} + 2",
            "UPDATE {t} SET y = 2000 + {r}, b1 = 1 WHERE id = 3"),
        ),
    ),
    MysqlCase(
        "s_made", "id int PRIMARY KEY, n int, hidden int INVISIBLE DEFAULT 7, kept int AS (n * "
                  "2) STORED, made varchar(20) AS (concat('m', n)) VIRTUAL, last varchar(9)",
        f"INSERT INTO {{t}} (id, n, last) SELECT i, i, 'l' FROM {numbers(1, 20)}",
        (("INSERT INTO {t} (id, n) VALUES (100 + {r}, NULL)",
        "UPDATE {t} SET n = n + {r} WHERE id % 3 = 0", "UPDATE {t} SET hidden = {r} WHERE id = 7",
        "DELETE FROM {t} WHERE id = {r}"),),
    ),
    MysqlCase("s_myisam", PLAIN, PLAIN_ROWS, PLAIN_WORK, rest=" ENGINE = MyISAM"),
    MysqlCase("s_aria", PLAIN, PLAIN_ROWS, PLAIN_WORK, rest=" ENGINE = Aria", flavour=MARIADB),
    MysqlCase("s_compressed", PLAIN, PLAIN_ROWS, PLAIN_WORK, rest=" ROW_FORMAT = COMPRESSED"),
    *(MysqlCase(name, PLAIN, PLAIN_ROWS, PLAIN_WORK) for name in ODD_NAMES),
    MysqlCase(
        "n_columns", "id int PRIMARY KEY, `a b` text, `c.d` text, `select` text, `quo\"te` text, "
                     "`Größe` text, `ba``ck` text, `日本` text,"
        f" `{LONGEST}` text, `semi;colon` text, `eq=ual` text, `it's` text, `per%s` text",
        f"INSERT INTO {{t}} SELECT i, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l' "
        f"FROM {numbers(1, 20)}",
        (("INSERT INTO {t} (id, `a b`) VALUES (100 + {r}, 'n')",
            "UPDATE {t} SET `c.d` = 'u{r}', `ba``ck` = 'u', `日本` = NULL, `per%s` = '%' WHERE id "
            "% 3 = 0",
          "DELETE FROM {t} WHERE id = {r}"),),
    ),
    MysqlCase("n_odd_key", "`k.e y` varchar(20), ```b\"` int, v text, PRIMARY KEY (`k.e y`, "
                           "```b\"`)", f"INSERT INTO {{t}} SELECT concat('k', i), i, 'v' FROM "
                                       f"{numbers(1, 20)}",
              (("UPDATE {t} SET v = 'u{r}'", "DELETE FROM {t} WHERE ```b\"` = {r}",
              "UPDATE {t} SET `k.e y` = 'moved{r}' WHERE ```b\"` = 10 + {r}"),)),
    MysqlCase("equal", PLAIN, PLAIN_ROWS, PLAIN_WORK),
    MysqlCase("equal", "id int PRIMARY KEY, w int", f"INSERT INTO {{t}} SELECT i, i FROM "
                                                    f"{numbers(1, 5)}",
              (("INSERT INTO {t} VALUES (100 + {r}, 1)", "UPDATE {t} SET w = {r}"),),
              schema="other one"),
)  # fmt: skip


def _chosen(name: str, choice: Mapping[str, Any], *, columns: str = "*",
    rows: str = "true") -> MysqlCase:  # fmt: skip
    """Rows that move, of which only a part is copied, or in another way."""
    view = f"CREATE VIEW shop.kept_of_{name} AS SELECT {columns} FROM {{t}} WHERE {rows}"
    work = (*KEY_WORK, *LARGE_WORK)
    return MysqlCase(name, KNB, SOME_BIG, work, view, choice=choice, against=f"kept_of_{name}")


CHOSEN = (
    _chosen("c_rows", {"filter": "n < 100 AND s LIKE 's%'"},
    rows="n < 100 AND s LIKE 's%' COLLATE utf8mb4_bin"),
    _chosen("c_columns", {"columns": ["k", "big"]}, columns="k, big"),
    _chosen("c_soft", {"mode": "soft_delete"}),
    _chosen("c_history", {"mode": "history"}),
    MysqlCase(
        "c_counted", "n int, v varchar(20), d double, at datetime(6), big text",
        f"INSERT INTO {{t}} SELECT nullif(i % 5, 0), 'v', i % 2 / 3, '2026-01-01', "
        f"{BIG.replace('(i,', '(i % 3,')} FROM {numbers(1, 400)}",
        (
            (f"INSERT INTO {{t}} SELECT 3, 'v', 0, NULL, NULL FROM {numbers(1, 3)}",
            "DELETE FROM {t} WHERE n = 1 LIMIT 2"),
            ("UPDATE {t} SET v = NULL WHERE n = 2 LIMIT {r}",
            "INSERT INTO {t} (n) VALUES (NULL), (NULL)", "UPDATE {t} SET d = d + 1 WHERE n = 4"),
            ("DELETE FROM {t} WHERE n IS NULL LIMIT 3",
            "UPDATE {t} SET v = 'back', v = 'v' WHERE n = 3 LIMIT 4"),
        ),
    ),
    MysqlCase("c_counted_again", "v varchar(20), n int",
    PLAIN_ROWS.replace("i, concat('v', i)", "'v', i % 3"),
              (("TRUNCATE {t}", "INSERT INTO {t} VALUES ('a', 1), ('a', 1), (NULL, NULL), ('A', "
                                "1)", "DELETE FROM {t} WHERE v = 'a' LIMIT 1"),)),
)  # fmt: skip
CASES = (*KEYS, *IMAGES, *TRANSACTIONS, *SCHEMAS, *CHOSEN)


def cases_of(flavour: str) -> tuple[MysqlCase, ...]:
    """Those that a server of this flavour can have."""
    return tuple(c for c in CASES if c.flavour in ("", flavour))
