"""Statements that change tables of MySQL and MariaDB while they are followed: one table for each,
with what becomes of it. `{t}` stands for the table's name; every table has `id`, `v`, `a`, `n` and
`m`, unless it says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

MARIADB, MYSQL = "mariadb", "mysql"
BASE = "id int PRIMARY KEY, v varchar(50), a varchar(30), n int, m int"
ROWS = 20
FILL = ", ".join(f"({i}, 'v{i}', 'a{i}', {i}, {100 + i})" for i in range(1, ROWS + 1))


@dataclass(frozen=True)
class Live:
    """A table and the statements on it while it runs. `fails`: the code that it stops with, by the
    server's flavour ("*": both); `before`: more statements that make it; `writes`: whether the
    columns `id` and `v` are there to be written in the end."""

    name: str
    statements: tuple[str, ...]
    columns: str = BASE
    rest: str = ""
    fill: str = FILL
    before: tuple[str, ...] = ()
    flavour: str = ""
    fails: tuple[tuple[str, str], ...] = ()
    writes: bool = True

    def code(self, flavour: str) -> str:
        """What it stops with at that server; empty: it goes on."""
        found = dict(self.fails)
        return found.get(flavour, found.get("*", ""))


def _alter(name: str, *actions: str, flavour: str = "", fails: str = "",
    writes: bool = True) -> Live:  # fmt: skip
    statements = tuple(f"ALTER TABLE {{t}} {action}" for action in actions)
    return Live(name, statements, flavour=flavour, fails=(("*", fails),) if fails else (),
        writes=writes)  # fmt: skip


def _added(number: int, kind: str, flavour: str = "") -> Live:
    return _alter(f"d{number:02}", f"ADD COLUMN z {kind}", flavour=flavour)


ADDED = (
    "int NOT NULL DEFAULT 7 FIRST", "int DEFAULT (3 + 4)", "int NOT NULL",
    "bigint unsigned DEFAULT 18446744073709551615", "decimal(30, 10) DEFAULT -1.5",
    "decimal(65, 30) DEFAULT 1e-30", "float DEFAULT 1.1",
    "double NOT NULL DEFAULT -1.7976931348623157e308", "bit(1) DEFAULT b'1'",
    "bit(10) DEFAULT b'101'",
    "year DEFAULT 2024", "date DEFAULT '2024-02-29'", "datetime(3) DEFAULT '2024-01-01 "
                                                      "00:00:00.1239'",
                                                      "datetime DEFAULT CURRENT_TIMESTAMP",
    "timestamp(6) NOT NULL DEFAULT '2020-06-01 12:00:00.000001'", "timestamp NULL",
    "time(2) DEFAULT '-01:00:00.5'", "char(5) NOT NULL DEFAULT 'ab '",
    "varchar(20) CHARACTER SET latin1 DEFAULT 'ü€'", "varchar(20) NOT NULL DEFAULT 'it''s \\\\ "
                                                     "\\\"x\\\"'", "mediumtext", "text NOT NULL",
                                                     "blob", "binary(3) NOT NULL DEFAULT 'a'",
    "varbinary(5) DEFAULT 0x6100", "enum('p', 'q''s') NOT NULL", "enum('p', 'q') DEFAULT 'q'",
    "set('b', 'a') DEFAULT 'a,b'", "json", "point",
    "int AS (n * 2) STORED", "varchar(20) AS (concat('g', n)) VIRTUAL", "int INVISIBLE DEFAULT 9",
    "int DEFAULT 5 COMMENT 'a, b' AFTER v", "tinyint(1) NOT NULL DEFAULT TRUE",
    "int NOT NULL AUTO_INCREMENT UNIQUE", "datetime(6) NOT NULL DEFAULT NOW(6) ON UPDATE NOW(6)",
    )  # fmt: skip
DEFAULTS = tuple(_added(n, kind) for n, kind in enumerate(ADDED)) + (
    _added(len(ADDED), "uuid DEFAULT '123e4567-e89b-12d3-a456-426655440000'", MARIADB),
    _added(len(ADDED) + 1, "inet6 DEFAULT '::1'", MARIADB),
    _added(len(ADDED) + 2, "varchar(40) DEFAULT (uuid())", MARIADB),
)

COLUMNS = (
    _alter("add_many", "ADD COLUMN (x decimal(8,2) DEFAULT 1.5, y date), ADD w int FIRST, ADD u "
                       "int DEFAULT 2 AFTER v"),
    _alter("add_if", "ADD COLUMN IF NOT EXISTS v int, ADD COLUMN IF NOT EXISTS w int DEFAULT 4",
    flavour=MARIADB),
    _alter("drop_one", "DROP COLUMN a"),
    _alter("drop_two", "DROP n, DROP COLUMN m"),
    _alter("drop_if", "DROP COLUMN IF EXISTS nothing, DROP COLUMN IF EXISTS a", flavour=MARIADB),
    _alter("add_drop", "ADD z int DEFAULT 3, DROP m"),
    _alter("add_then_drop", "ADD z int DEFAULT 3", "DROP z"),
    _alter("again", "DROP COLUMN a, ADD COLUMN a varchar(30) DEFAULT 'z' AFTER id"),
    _alter("again_later", "DROP COLUMN a", "ADD COLUMN a varchar(30) DEFAULT 'z' AFTER v"),
    _alter("again_null", "DROP COLUMN a, ADD COLUMN a varchar(30)"),
    _alter("renamed", "RENAME COLUMN a TO z"),
    _alter("rename_case", "CHANGE a A varchar(30)"),
    _alter("rename_back", "RENAME COLUMN a TO z", "RENAME COLUMN z TO a"),
    _alter("swap", "RENAME COLUMN n TO m, RENAME COLUMN m TO n"),
    _alter("swap_change", "CHANGE n m int AFTER id, CHANGE m n int AFTER id"),
    _alter("swap_three", "RENAME COLUMN n TO t_", "RENAME COLUMN m TO n", "RENAME COLUMN t_ TO m"),
    _alter("swap_types", "CHANGE n a int, CHANGE a n varchar(30)"),
    _alter("round", "RENAME COLUMN n TO m, RENAME COLUMN m TO a, RENAME COLUMN a TO n"),
    _alter("refill", "DROP n, CHANGE m n int", "ADD m int DEFAULT 3"),
    _alter("take_name", "DROP a, RENAME COLUMN v TO a, ADD v varchar(9) DEFAULT 'new'"),
    _alter("wider", "MODIFY n bigint, MODIFY a varchar(90) FIRST, MODIFY m decimal(30, 5)"),
    _alter("narrower", "MODIFY n smallint, MODIFY a varchar(20)"),
    _alter("to_unsigned", "MODIFY n int unsigned"),
    _alter("to_text", "MODIFY n varchar(20), MODIFY m text"),
    _alter("to_number", "MODIFY a varchar(30) NULL, MODIFY m double, MODIFY n decimal(20, 3)"),
    _alter("to_bytes", "MODIFY a varbinary(60)"),
    _alter("to_char", "MODIFY a char(30)"),
    _alter("to_big_text", "MODIFY a mediumtext, MODIFY v text"),
    _alter("not_null", "MODIFY n int NOT NULL DEFAULT 3"),
    _alter("moved", "MODIFY n int FIRST, MODIFY v varchar(50) AFTER m"),
    _alter("same_again", "MODIFY n int", "MODIFY n int COMMENT 'x'"),
    _alter("wide_and_back", "MODIFY n bigint", "MODIFY n int"),
    _alter("default_only", "ALTER COLUMN n SET DEFAULT 5, ALTER m DROP DEFAULT"),
    _alter("hide", "MODIFY a varchar(30) INVISIBLE"),
    _alter("instant", "ADD z1 int DEFAULT 1, ALGORITHM=INSTANT",
    "ADD z2 int DEFAULT 2 AFTER id, ALGORITHM=INSTANT", "DROP COLUMN a, ALGORITHM=INSTANT",
           "RENAME COLUMN z1 TO z3, ALGORITHM=INSTANT"),
    _alter("utf16", "MODIFY a varchar(30) CHARACTER SET utf16"),
    _alter("converted", "CONVERT TO CHARACTER SET utf8mb4"),
    _alter("to_latin", "CONVERT TO CHARACTER SET latin1"),
    Live("from_latin", ("ALTER TABLE {t} CONVERT TO CHARACTER SET utf8mb4",),
    rest=" CHARACTER SET latin1", fill=FILL.replace("'a3'", "'äöü€'")),
    Live("compress", ("ALTER TABLE {t} MODIFY a varchar(30) COMPRESSED",
    "UPDATE {t} SET v = 'x' WHERE id = 5"), flavour=MARIADB,
    fails=(("*", "source:column-packed"),)),
)  # fmt: skip

LABELS = (
    "id int PRIMARY KEY, v varchar(50), a varchar(30), e enum('x', 'y', 'z'), s set('p', 'q', 'r')"
)
LABELLED = ", ".join(f"({i}, 'v', 'a', {1 + i % 3}, {i % 8})" for i in range(1, ROWS + 1))


def _labels(name: str, *actions: str) -> Live:
    return Live(name, tuple(f"ALTER TABLE {{t}} {a}" for a in actions), LABELS, fill=LABELLED)


LABELINGS = (
    _labels("e_longer", "MODIFY e enum('x', 'y', 'z', 'w')", "MODIFY s set('p', 'q', 'r', 't')"),
    _labels("e_between", "MODIFY e enum('x', 'w', 'y', 'z')"),
    _labels("e_order", "MODIFY e enum('z', 'y', 'x'), MODIFY s set('r', 'q', 'p')"),
    _labels("e_case", "MODIFY e enum('X', 'y', 'z'), MODIFY s set('P', 'q', 'r')"),
    _labels("e_text", "MODIFY e varchar(10)", "MODIFY s varchar(10)"),
    _labels("e_number", "MODIFY e int"),
    _labels("e_swap", "MODIFY e enum('x', 'y', 'z', 'k')", "MODIFY e enum('k', 'x', 'y', 'z')"),
)  # fmt: skip

GENERATED = (
    "id int PRIMARY KEY, v varchar(50), a varchar(30), n int, g int AS (n * 2) STORED, h "
    "int AS (n + 1) VIRTUAL"
)
GENERATING = ", ".join(f"({i}, 'v', 'a', {i}, DEFAULT, DEFAULT)" for i in range(1, ROWS + 1))


def _generated(name: str, *actions: str) -> Live:
    return Live(name, tuple(f"ALTER TABLE {{t}} {a}" for a in actions), GENERATED, fill=GENERATING)


GENERATIONS = (
    _generated("g_other", "MODIFY g int AS (n * 3) STORED"),
    _generated("g_virtual", "DROP g, ADD g int AS (n * 5) VIRTUAL"),
    _generated("g_plain", "MODIFY g int"),
    _generated("g_drop", "DROP h, DROP g"),
    _generated("g_swap", "DROP h, DROP g, ADD g int AS (n + 1) VIRTUAL, ADD h int AS (n * 2) "
                         "STORED"),
)  # fmt: skip

TABLE_WIDE = (
    _alter("indexes", "ADD INDEX i (a), ADD UNIQUE u (n)", "RENAME INDEX i TO j, DROP INDEX u",
    "DROP INDEX j, COMMENT = 'x'"),
    _alter("rebuilt", "ENGINE = InnoDB", "FORCE", "ROW_FORMAT = COMPRESSED", "AUTO_INCREMENT = 500",
    "ORDER BY n"),
    _alter("checked", "ADD CONSTRAINT c_{t} CHECK (n > -5)", "DROP CONSTRAINT c_{t}"),
    _alter("myisam", "ENGINE = MyISAM"),
    _alter("ignoring", "ADD z int DEFAULT 1", flavour=MARIADB),
    Live("ignored", ("ALTER IGNORE TABLE {t} ADD UNIQUE (m)",), fill=FILL.replace("119)", "118)"),
    flavour=MARIADB),
    Live("emptied", ("TRUNCATE {t}",)),
    Live("emptied_filled",
    ("TRUNCATE {t}", "INSERT INTO {t} VALUES (3, 'x', 'y', 1, 2)",
    "ALTER TABLE {t} ADD z int DEFAULT 4", "TRUNCATE TABLE {t}")),
    Live("replaced", ("CREATE OR REPLACE TABLE {t} (id int PRIMARY KEY, v varchar(50), q int)",
    "INSERT INTO {t} VALUES (1, 'new', 2)"), flavour=MARIADB),
    Live("replaced_same", ("CREATE OR REPLACE TABLE {t} (" + BASE + ")",), flavour=MARIADB),
    Live("made_again", ("DROP TABLE {t}", "CREATE TABLE {t} (" + BASE + ")",
    "INSERT INTO {t} VALUES (1, 'new', 'a', 2, 3)")),
    Live("rotated", ("CREATE TABLE {t}_next LIKE {t}",
    "INSERT INTO {t}_next VALUES (7, 'next', 'a', 1, 1)",
    "RENAME TABLE {t} TO {t}_old, {t}_next TO {t}")),
    Live("rotated_back",
    ("RENAME TABLE {t} TO {t}_away", "INSERT INTO {t}_away VALUES (70, 'away', 'a', 1, 1)",
    "RENAME TABLE {t}_away TO {t}")),
    Live("exchanged_names",
    ("CREATE TABLE {t}_b LIKE {t}", "ALTER TABLE {t}_b DROP n",
    "RENAME TABLE {t} TO {t}_c, {t}_b TO {t}, {t}_c TO {t}_b")),
    Live("discarded", ("ALTER TABLE {t} DISCARD TABLESPACE",),
    fails=(("*", "source:tablespace-missing"),), writes=False),
    Live("gone", ("DROP TABLE {t}",), fails=(("*", "source:table-missing"),), writes=False),
    Live("called_else", ("ALTER TABLE {t} RENAME TO {t}_now",),
    fails=(("*", "source:table-renamed"),), writes=False),
    Live("versioned", ("ALTER TABLE {t} ADD SYSTEM VERSIONING",),
    fails=(("*", "source:table-versioned"),), flavour=MARIADB),
)  # fmt: skip

KEYS = (
    _alter("key_wider", "MODIFY id bigint"),
    _alter("key_renamed", "RENAME COLUMN id TO ident", "RENAME COLUMN ident TO id"),
    _alter("key_longer", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"),
    _alter("key_other", "DROP PRIMARY KEY, ADD PRIMARY KEY (m)"),
    _alter("key_gone", "DROP PRIMARY KEY"),
    _alter("key_text", "MODIFY id varchar(20)"),
    _alter("key_column", "ADD k int AUTO_INCREMENT UNIQUE"),
    Live("key_dropped", ("ALTER TABLE {t} DROP COLUMN n",),
    "id int, v varchar(50), a varchar(30), n int, m int, PRIMARY KEY (id, n)", flavour=MYSQL),
    Live("key_swapped", ("ALTER TABLE {t} RENAME COLUMN id TO m, RENAME COLUMN m TO id",)),
)  # fmt: skip

PARTS = (
    " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS "
    "THAN (2000))"
)
PARTITIONS = (
    Live("part_truncate", ("ALTER TABLE {t} TRUNCATE PARTITION p0",), rest=PARTS),
    Live("part_drop", ("ALTER TABLE {t} DROP PARTITION p0",), rest=PARTS),
    Live("part_add", ("ALTER TABLE {t} ADD PARTITION (PARTITION p2 VALUES LESS THAN (3000))",),
    rest=PARTS),
    Live("part_cut", ("ALTER TABLE {t} REORGANIZE PARTITION p1 INTO (PARTITION p11 VALUES LESS "
                      "THAN (15), PARTITION p12 VALUES LESS THAN (2000))",), rest=PARTS),
    Live("part_none", ("ALTER TABLE {t} REMOVE PARTITIONING",), rest=PARTS),
    Live("part_made", ("ALTER TABLE {t} PARTITION BY HASH (id) PARTITIONS 3",)),
    Live(
        "part_swap",
        ("CREATE TABLE {t}_x (" + BASE + ")", "INSERT INTO {t}_x VALUES (5, 'other', 'a', 1, 1)",
        "ALTER TABLE {t} EXCHANGE PARTITION p0 WITH TABLE {t}_x"),
        rest=PARTS,
    ),
)  # fmt: skip
ZOO = {
    "added": DEFAULTS,
    "columns": COLUMNS,
    "tables": (*LABELINGS, *GENERATIONS, *TABLE_WIDE),
    "keys": (*KEYS, *PARTITIONS),
}


def zoo_of(part: str, flavour: str) -> tuple[Live, ...]:
    """The tables of a part that a server of this flavour can have."""
    return tuple(t for t in ZOO[part] if t.flavour in ("", flavour))
