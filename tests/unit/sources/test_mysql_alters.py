"""What an ALTER TABLE says of columns, and what a conversion leaves of values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import (
    Boolean,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    String,
    Timestamp,
)
from replicators.connectors.schema.steps import SchemaStep, StepKind
from replicators.sources.mysql.alters import alteration
from replicators.sources.mysql.conversions import keeps_values
from replicators.sources.mysql.defaults import missing_of
from replicators.sources.mysql.queries import Statement, query_of, statement
from replicators.sources.mysql.schemas import described, schema_of
from replicators.sources.mysql.steps import KEPT_A_TABLE, TableStep, steps_of, with_statement
from replicators.sources.mysql.tablemaps import LONG, VARCHAR, MapColumn, TableMap
from replicators.sources.mysql.types import text
from replicators.sources.mysql.words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, tokens

STRICT = 1 << 21
T = TableId("shop", "t")


def reported(text: str, mode: int = STRICT) -> list[tuple[str, ...]]:
    """The steps, short."""
    found = statement("shop", text, mode)
    assert not found.unlogged, found.unlogged
    return [tuple(filter(None, (s.kind[0:3], s.old, s.new, s.text))) for s in found.steps]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("ADD a int", [("add", "int", "a")]),
        ("ADD COLUMN a INT NOT NULL DEFAULT 7 FIRST, ALGORITHM=INSTANT",
        [("add", "int", "a", "n7")]),
        ("ADD `a b` varchar(20) DEFAULT 'it''s' AFTER b, ADD c int",
        [("add", "varchar(20)", "a b", "sit's"), ("add", "int", "c")]),
        ("/*!50000 ADD COLUMN a int NOT NULL */ /* by a tool */", [("add", "int", "a", "~")]),
        ("ADD COLUMN IF NOT EXISTS (a int, b decimal(9, 2) DEFAULT -1.50, KEY (a))",
         [("add", "int", "a"), ("add", "decimal(9,2)", "b", "n-1.50")]),
        ("ADD a BOOLEAN NOT NULL DEFAULT TRUE COMMENT 'x, y'", [("add", "tinyint", "a", "n1")]),
        ("ADD a enum('x','y z') NOT NULL", [("add", "enum('x','y z')", "a", "~")]),
        ("ADD a datetime NULL DEFAULT NULL ON UPDATE current_timestamp",
        [("add", "datetime", "a")]),
        ("ADD a timestamp NULL", [("add", "timestamp", "a")]),
        ("DROP a, DROP COLUMN IF EXISTS `key`, DROP INDEX i, DROP FOREIGN KEY f, DROP CHECK c",
        [("dro", "a"), ("dro", "key")]),
        ("RENAME COLUMN a TO b, RENAME COLUMN `b` TO `a`, RENAME INDEX i TO j",
        [("ren", "a", "b"), ("ren", "b", "a")]),
        ("CHANGE a b bigint unsigned NOT NULL AFTER c",
        [("mod", "a", "b", "bigint unsigned"), ("ren", "a", "b")]),
        ("CHANGE COLUMN IF EXISTS a a varchar(9)", [("mod", "a", "a", "varchar(9)")]),
        ("MODIFY id INTEGER(11) ZEROFILL AUTO_INCREMENT",
        [("mod", "id", "id", "int(11) unsigned auto_increment")]),
        ("MODIFY a double precision, MODIFY b character varying(8)",
        [("mod", "a", "a", "double"), ("mod", "b", "b", "varchar(8)")]),
        ("ALTER COLUMN a SET DEFAULT 5, ENGINE=InnoDB, COMMENT='MODIFY a int', ADD UNIQUE (a), "
         "AUTO_INCREMENT = 7", []),
        ("ENGINE = 'MyISAM', CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, DEFAULT "
         "CHARSET latin1", []),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (5)), REORGANIZE PARTITION a INTO "
         "(PARTITION b)", []),
    ],
)  # fmt: skip
def test_what_becomes_of_columns_is_read(text: str, steps: list[tuple[str, ...]]) -> None:
    """Guards every clause: one that is missed leaves its column without its name, its values, or
    without doubt."""
    assert reported(f"ALTER TABLE t {text}") == steps
    assert reported(f"alter table `shop`.`t` {text}") == steps
    assert reported(f"/* gh */ ALTER ONLINE TABLE IF EXISTS t NOWAIT {text} -- end") == steps


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ADD a int AUTO_INCREMENT", "a new column with values in old rows"),
        ("ADD a int AS (b + 1)", "a new column with values in old rows"),
        ("ADD a int DEFAULT (1 + 1)", "a new column with values in old rows"),
        ("ADD a datetime DEFAULT CURRENT_TIMESTAMP", "a new column with values in old rows"),
        ("ADD a timestamp", "a new column with values in old rows"),
        ("ADD a varchar(9) DEFAULT 'a\\tb'", "a new column with values in old rows"),
        ("ADD a varchar(9) DEFAULT 'ü'", "a new column with values in old rows"),
        ("ADD a varchar(9) DEFAULT _latin1'x'", "a new column with values in old rows"),
        ("ADD a int PRIMARY KEY", "a new column with values in old rows"),
        ("ADD a SERIAL", "a new column with values in old rows"),
        ("ADD a double DEFAULT 1.5e3", "a new column with values in old rows"),
        ("ADD a double DEFAULT -1e3", "a new column with values in old rows"),
        ("ADD a double DEFAULT 1.e3", "a new column with values in old rows"),
        ("ADD a double DEFAULT 15e+2", "a new column with values in old rows"),
        ("ADD CONSTRAINT PRIMARY KEY (a)", "a change of its primary key"),
        ("DROP PRIMARY KEY", "a change of its primary key"),
        ("DROP INDEX `PRIMARY`", "a change of its primary key"),
        ("DROP CONSTRAINT IF EXISTS `primary`", "a change of its primary key"),
        ("MODIFY a int AS (b)", "a change of a column that may have changed values"),
        ("MODIFY a int PRIMARY KEY", "a change of a column that may have changed values"),
        ("MODIFY (a int, b int)", "a change of a column that may have changed values"),
        ("CONVERT TO CHARACTER SET latin1", "a change of its character set that may lose "
                                            "characters"),
        ("CONVERT TO CHARSET DEFAULT", "a change of its character set that may lose characters"),
        ("CONVERT PARTITION p TO TABLE x", "a change of its partitions or its tablespace"),
        ("EXCHANGE PARTITION p WITH TABLE x", "an exchange of a partition with another table"),
        ("DROP PARTITION p", "a drop of partitions"),
        ("ENGINE = BLACKHOLE", "a change of its storage engine"),
        ("RENAME TO u", "a rename of the table"),
        ("SOMETHING NEW", "an ALTER TABLE of an unknown kind"),
    ],
)  # fmt: skip
def test_what_changes_values_is_doubted(text: str, why: str) -> None:
    """Guards against a change of rows that the log does not carry."""
    assert statement("shop", f"ALTER TABLE t {text}", STRICT).unlogged == why


def test_the_session_s_setting_counts() -> None:
    """Guards what sql_mode decides: what NULL becomes, quotes, backslashes and numbers for 0."""
    assert statement("shop", "ALTER TABLE t MODIFY a int NOT NULL", 0).unlogged
    assert not statement("shop", "ALTER TABLE t MODIFY a int NOT NULL", STRICT).unlogged
    for words in ("IGNORE", "ONLINE IGNORE", "IGNORE ONLINE"):
        assert statement("shop", f"ALTER {words} TABLE t ADD UNIQUE (a)", STRICT).unlogged, words
    assert reported('ALTER TABLE "t" DROP "a"', STRICT | ANSI_QUOTES) == [("dro", "a")]
    assert statement("shop", 'TRUNCATE "t"', ANSI_QUOTES).tables == (T,)
    pads = STRICT | 1 << 31
    assert statement("shop", "ALTER TABLE t MODIFY a varchar(9)", pads).unlogged
    assert not statement("shop", "ALTER TABLE t ADD a varchar(9)", pads).unlogged
    quoted = "ALTER TABLE t COMMENT 'a\\', DROP a"
    assert reported(quoted, STRICT | NO_BACKSLASH_ESCAPES) == [("dro", "a")]
    assert reported("ALTER TABLE t MODIFY a int AUTO_INCREMENT", 1 << 19) == [
        ("mod", "a", "a", "int")
    ]


def test_the_mode_is_read_from_the_event() -> None:
    """Guards the event's variables: flags first, then the mode."""
    variables = b"\0\1\2\3\4" + b"\1" + STRICT.to_bytes(8, "little") + b"\4abcdef"
    head = bytes(19) + bytes(8) + b"\4" + bytes(2) + len(variables).to_bytes(2, "little")
    event = head + variables + b"shop\0DROP TABLE t"
    assert query_of(event) == ("shop", "DROP TABLE t", STRICT)
    bare = bytes(19) + bytes(8) + b"\4" + bytes(2) + b"\0\0" + b"shop\0BEGIN"
    assert query_of(bare) == ("shop", "BEGIN", 0)


@pytest.mark.parametrize(
    ("raw", "charset", "table"),
    [
        ("été".encode("latin-1"), "latin1", "été"),
        ("été".encode(), "latin1", "été"),
        ("表".encode("shift_jis"), "sjis", "表"),
        ("été".encode("latin-1"), "unheard of", "\ufffdt\ufffd"),
        (b"\x81\xff", "sjis", "\ufffd\ufffd"),
    ],
)
def test_a_statement_is_read_in_its_client_s_character_set(
    raw: bytes, charset: str, table: str
) -> None:
    """Guards TRUNCATE and DROP of a table whose name is not ASCII: the log has the client's bytes,
    or UTF-8 where the server wrote."""
    variables = bytes(5) + b"\1" + bytes(8) + b"\6\3std" + b"\3" + bytes(4)
    variables += b"\4" + (8).to_bytes(2, "little") + bytes(4) + b"\5\3UTC"
    head = bytes(19) + bytes(8) + b"\4" + bytes(2) + len(variables).to_bytes(2, "little")
    event = head + variables + b"shop\0TRUNCATE `" + raw + b"`"
    assert statement(*query_of(event, {8: charset})).tables == (TableId("shop", table),)


def test_a_table_that_takes_the_name_is_touched() -> None:
    """Guards both halves of a cut-over in two statements."""
    found = statement("shop", "ALTER TABLE _t_gho RENAME TO t")
    assert found.tables == (TableId("shop", "_t_gho"), T)
    assert found.moved == ((TableId("shop", "_t_gho"), T),)
    assert statement("shop", "DROP TABLE t").gone


# --- conversions ----------------------------------------------------------------------------------------------------  # noqa: E501

LATIN, WIDE, BIG = text("latin1", 50), text("utf8mb4", 50), text("utf8mb4")
INT, LONG_INT, SMALL = (Int(32), "int"), (Int(64), "big"), (Int(16), "small")


def column(native: str, known: tuple[object, str]) -> Column:
    return Column("a", known[0], native, wire=known[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "kind", "said", "new", "keeps"),
    [
        ("int(11)", INT, "bigint", LONG_INT, True),
        ("int(11)", INT, "smallint", SMALL, False),
        ("tinyint", (Int(16), "tiny"), "tinyint unsigned", (Int(16), "utiny"), False),
        ("tinyint unsigned", (Int(16), "utiny"), "smallint", SMALL, True),
        ("smallint", SMALL, "tinyint", (Int(16), "tiny"), False),
        ("int", INT, "bigint auto_increment", LONG_INT, False),
        ("int auto_increment", INT, "bigint auto_increment", LONG_INT, True),
        ("varchar(50)", WIDE, "varchar(90)", text("utf8mb4", 90), True),
        ("varchar(50)", WIDE, "varchar(30)", text("utf8mb4", 30), False),
        ("varchar(50)", WIDE, "char(50)", WIDE, False),
        ("char(50)", WIDE, "varchar(50)", WIDE, True),
        ("varchar(50)", LATIN, "varchar(50)", WIDE, True),
        ("varchar(50)", WIDE, "varchar(50)", LATIN, False),
        ("varchar(50)", WIDE, "text", BIG, True),
        ("varchar(90)", text("utf8mb4", 90), "tinytext", BIG, False),
        ("text", BIG, "mediumtext", BIG, True),
        ("mediumtext", BIG, "text", BIG, False),
        ("text", text("latin1"), "text", BIG, False),
        ("text", BIG, "text(9)", BIG, False),
        ("text(90000)", BIG, "text", BIG, False),
        ("varchar(90)", text("utf8mb4", 90), "text(9)", BIG, False),
        ("decimal(9,2)", (Decimal(9, 2), "decimal"), "decimal(12,2)", (Decimal(12, 2), "decimal"),
        True),
        ("decimal(9,2)", (Decimal(9, 2), "decimal"), "decimal(9,1)", (Decimal(9, 1), "decimal"),
        False),
        ("decimal(9,2)", (Decimal(9, 2), "decimal"), "decimal(9,2) unsigned",
        (Decimal(9, 2), "decimal"), False),
        ("float", (Float(32), "float"), "double", (Float(64), "double"), True),
        ("float", (Float(32), "float"), "float(7,2)", (Float(32), "float"), False),
        ("enum('a','b')", (Enum(("a", "b")), "enum"), "enum('b','a','c')",
        (Enum(("b", "a", "c")), "enum"), True),
        ("set('a','b')", (String(), "set"), "set('a','b','c')", (String(), "set"), False),
        ("set('a','b')", (String(), "set"), "set('a','b')", (String(), "set"), True),
        ("datetime", (Timestamp(0, False), "datetime"), "datetime(3)",
        (Timestamp(3, False), "datetime"), True),
        ("datetime", (Timestamp(0, False), "datetime"), "timestamp",
        (Timestamp(0, True), "timestamp"), False),
        ("time", (String(), "time"), "time(3)", (String(), "time"), False),
        ("binary(5)", (String(), "bytes"), "binary(9)", (String(), "bytes"), False),
        ("varbinary(5)", (String(), "bytes"), "varbinary(9)", (String(), "bytes"), True),
        ("blob", (String(), "bytes"), "tinyblob", (String(), "bytes"), False),
        ("blob", (String(), "bytes"), "blob(9)", (String(), "bytes"), False),
    ],
)  # fmt: skip
def test_a_conversion_keeps_values_where_that_is_certain(
    old: str, kind: tuple[object, str], said: str, new: tuple[object, str], keeps: bool
) -> None:
    """Guards against values that a server changed without logging a row."""
    assert keeps_values(column(old, kind), column(said, new), said) is keeps


@pytest.mark.parametrize(
    ("kind", "said", "value"),
    [
        (INT, "", None),
        (INT, "n7", "7"),
        (INT, "s07", "7"),
        (INT, "~", "0"),
        (INT, "n3000000000", ValueError),
        (INT, "n1.5", ValueError),
        ((Int(32), "umedium"), "n-1", ValueError),
        ((Int(16), "year"), "n2024", ValueError),
        ((Boolean(), "bit"), "n1", "1"),
        ((Decimal(9, 2), "decimal"), "n-1.5", "-1.5"),
        ((Decimal(9, 2), "decimal"), "n1.555", ValueError),
        ((Decimal(3, 2), "decimal"), "n10", ValueError),
        ((Decimal(3, 2), "decimal"), "sx", ValueError),
        ((Float(64), "double"), "n.5", "0.5"),
        ((Float(64), "double"), "n5", "5.0"),
        (WIDE, "sit's", "it's"),
        (WIDE, "s" + "x" * 51, ValueError),
        (WIDE, "sx ", ValueError),
        (WIDE, "n5", ValueError),
        (WIDE, "~", ""),
        ((Enum(("a", "b")), "enum"), "sb", "b"),
        ((Enum(("a", "b")), "enum"), "sB", ValueError),
        ((Enum(("a", "b")), "enum"), "~", "a"),
        ((Date(), "date"), "s2024-02-29", "2024-02-29"),
        ((Date(), "date"), "~", ValueError),
        ((Timestamp(0, False), "datetime"), "s2024-02-29 10:00:00", "2024-02-29 10:00:00"),
        ((Timestamp(0, True), "timestamp"), "s2024-02-29 10:00:00", ValueError),
        ((String(), "time"), "s10:00:00", ValueError),
    ],
)  # fmt: skip
def test_what_old_rows_have_is_known_or_not_reported(
    kind: tuple[object, str], said: str, value: object
) -> None:
    """Guards old rows against a default that the server stores in another form."""
    if value is ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - any text
            missing_of(column("x", kind), said)
    else:
        assert missing_of(column("x", kind), said) == value


def test_a_default_that_is_cut_to_its_digits_is_not_reported() -> None:
    """Guards FLOAT(7,2), in which 1.239 is 1.24."""
    with pytest.raises(ValueError, match=r"n1\.239"):
        missing_of(column("float(7,2)", (Float(32), "float")), "n1.239")
    assert missing_of(column("float(7,2)", (Float(32), "float")), "~") == "0"


# --- what is kept of it ---------------------------------------------------------------------------------------------  # noqa: E501


def test_steps_are_bounded_and_what_is_forgotten_is_said() -> None:
    """Guards a copy that is far behind: what it missed is no change that could be followed."""
    steps: tuple[TableStep, ...] = ()
    for n in range(1, KEPT_A_TABLE + 2):
        said = statement("shop", f"ALTER TABLE t ADD c{n} int")
        steps = with_statement(steps, said, n * 10)
    assert [(s.kind, s.position) for s in steps_of(steps, T)] == [
        (StepKind.REWRITTEN, (KEPT_A_TABLE + 1) * 10)
    ]
    assert with_statement(steps, Statement(said.kind), 1) == steps
    for n in range(600):
        for ddl in ("ADD a int", "DROP a"):
            steps = with_statement(steps, statement("shop", f"ALTER TABLE x{n} {ddl}"), n + 1000)
    assert len({s.table for s in steps}) == 601
    assert len(steps) <= 602
    assert TableStep.from_json(steps[-1].to_json()) == steps[-1]


ID = Column("id", Int(32), "int", wire="int", ordinal=1)
V = Column("v", String(50), "varchar(50)", wire="text:utf8mb4", ordinal=2)
COPY = TableSchema(T, (ID, V), ("id",), upto=10)
CHARSETS = {45: "utf8mb4"}


def sent(*names: str) -> TableMap:
    known = {"id": MapColumn(LONG, 0, "id")}
    columns = tuple(known.get(n, MapColumn(VARCHAR, 200, n, collation=45)) for n in names)
    return TableMap(1, T, columns, True)


def renamed(position: int, old: str, new: str) -> SchemaStep:
    return SchemaStep(position, StepKind.RENAMED, old, new)


def test_rows_older_than_the_description_keep_their_columns() -> None:
    """Guards against an emptied column where the catalog has the next name already when older rows
    are described."""
    ahead = replace(COPY, columns=(ID, replace(V, name="w")), upto=1, known=COPY)
    schema = schema_of(sent("id", "v"), ahead, CHARSETS)
    assert [(c.name, c.type) for c in schema.schema.columns] == [("id", Int(32)), ("v", V.type)]
    after = schema_of(sent("id", "w"), ahead, CHARSETS, [renamed(20, "v", "w")])
    assert [c.name for c in after.schema.columns] == ["id", "w"]
    assert (after.schema.upto, schema.schema.upto) == (20, 1)
    assert after.version != schema.version
    gone = replace(COPY, columns=(ID,), upto=1, known=COPY)
    assert [c.name for c in schema_of(sent("id", "v"), gone, CHARSETS).schema.columns] == [
        "id",
        "v",
    ]
    key = replace(ahead, columns=(replace(ID, name="no"), V), key=("no",))
    assert schema_of(sent("id", "v"), key, CHARSETS).schema.key == ("id",)


def test_a_description_that_is_ahead_hides_no_conversion() -> None:
    """Guards the type that a conversion starts from: it is the copy's, or the last statement's, not
    the catalog's."""
    ahead = replace(COPY, columns=(ID, replace(V, native="char(50)")), upto=1, known=COPY)
    assert schema_of(sent("id", "v"), ahead, CHARSETS).schema.column("v").native == "varchar(50)"
    step = SchemaStep(20, StepKind.MODIFIED, "v", "v", "varchar(60)")
    after = schema_of(sent("id", "v"), ahead, CHARSETS, [step]).schema.column("v")
    assert after.native == "varchar(60)"


def test_a_description_counts_where_it_fits_the_log() -> None:
    """Guards a table without rows: a look that is newer than the log, or older, is not taken for
    what the log tells."""
    layout = ((0, "id", 0), (0, "w", 0))
    found = replace(COPY, columns=(ID, replace(V, name="w")), upto=1, known=COPY, layout=layout)
    schema = described(found, [renamed(20, "v", "w")])
    assert schema is not None
    assert ([c.name for c in schema.columns], schema.upto, schema.known) == (["id", "w"], 20, None)
    assert described(found, []) is None, "the statement has not been read"
    added = SchemaStep(30, StepKind.ADDED, "int", "n", "n5")
    assert described(found, [renamed(20, "v", "w"), added]) is None, "it was looked at before"
    n = Column("n", Int(32), "int", wire="int")
    wide = replace(found, columns=(*found.columns, n), layout=(*layout, (0, "n", 0)))
    later = described(wide, [renamed(20, "v", "w"), added])
    assert later is not None
    assert later.column("n").missing == "5"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("DROP period, ADD COLUMN period int NOT NULL DEFAULT 7", ["dropped", "added"]),
        ("DROP vector", ["dropped"]),
        ("ADD vector int, ADD system int", ["added", "added"]),
        ("DROP PERIOD FOR SYSTEM_TIME", []),
        ("ADD VECTOR INDEX i (v)", []),
        ("ADD VECTOR (v)", []),
        ("DROP SYSTEM VERSIONING", []),
    ],
)
def test_a_column_may_be_called_like_what_else_an_alter_drops(text: str, steps: list[str]) -> None:
    """Guards `alters._is_column`: a column that is dropped unseen, and made again under its name,
    keeps its old values in the copy."""
    said = alteration(tokens(text))
    assert [s.kind.value for s in said.steps] == steps
    assert ("versioning" in said.unlogged) is ("SYSTEM VERSIONING" in text)


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ("set('red','green')", "SET('red', 'green')", True),
        ("set('red','green')", "set('Red','green')", False),
        ("set('a b')", "set('ab')", False),
        ("set('a''B')", "set('a''B')", True),
    ],
)
def test_labels_are_values(old: str, new: str, keeps: bool) -> None:
    """Guards `conversions._reported`: rows of a SET are known by its labels, and no row is logged
    where these are others."""
    one, other = (Column("s", String(), native, wire="set") for native in (old, new))
    assert keeps_values(one, other, new) is keeps
