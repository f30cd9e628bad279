"""What MySQL as a target decides without a server: types that may grow, names, and the text of
rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import Bytes, Float, Int, String
from replicators.connectors.target import FitKind
from replicators.targets.mysql import naming
from replicators.targets.mysql.index import key_index
from replicators.targets.mysql.literals import TooLong, inserts, lines, load_data
from replicators.targets.mysql.types import fit_column, is_wider, shown


@pytest.mark.parametrize(
    ("old", "new", "is_allowed"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int unsigned", "bigint", True),
        ("int", "bigint unsigned", False),
        ("bigint unsigned", "decimal(20,0)", True),
        ("bigint", "decimal(18,0)", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("float", "double", True),
        ("varbinary(4)", "varbinary(8)", True),
        ("varbinary(8)", "varbinary(4)", False),
        ("varbinary(8)", "longblob", True),
        ("tinyint(1)", "bigint", False),
        ("datetime(6)", "longtext", False),
    ],
)
def test_a_type_grows_only_where_no_value_changes(old: str, new: str, is_allowed: bool) -> None:
    assert is_wider(old, new) is is_allowed


def test_a_catalogs_type_is_spelled_like_ours() -> None:
    """Guards MariaDB's widths: a type that is read otherwise than it is written looks changed by
    hand."""
    assert shown("bigint(20) unsigned", None, None) == "bigint unsigned"
    assert shown("tinyint(1)", None, None) == "tinyint(1)"
    text = shown("longtext", "utf8mb4", "utf8mb4_nopad_bin")
    assert text == "longtext character set utf8mb4 collate utf8mb4_nopad_bin"


def test_a_number_of_mysql_itself_is_never_nan() -> None:
    assert fit_column(Column("a", Float(64), "double")).kind is FitKind.EXACT
    assert fit_column(Column("a", Float(64), "double precision")).kind is FitKind.EXACT
    assert fit_column(Column("a", Float(64), "float8")).kind is FitKind.LOSSY


@pytest.mark.parametrize(
    ("name", "is_possible"),
    [("a" * 64, True), ("a" * 65, False), ("a ", False), (" a`.b", True), ("🙂", False)],
)
def test_names_that_mysql_has(name: str, is_possible: bool) -> None:
    assert (naming.fault(name) == "") is is_possible


def test_an_index_of_long_keys_stays_below_the_limit() -> None:
    """Guards the 3,072 bytes of an index: a table with such a key could not be published."""
    key = [Column(f"c{n}", String(), "text", nullable=False) for n in range(20)]
    assert key_index(key).count("(48)") == 16
    assert key_index(key[:1]) == "`c0`(191)"
    assert key_index([Column("h", Bytes(16), "", nullable=False)]) == "`h`(16)"
    assert key_index([Column("n", Int(64), "", nullable=False)]) == "`n`"


def test_rows_are_cut_into_statements_of_a_length() -> None:
    """Guards the cut: a row that is left out or written twice at a border."""
    values = ["a'b\\c", None, "", "é🙂\n", "\x00"] * 20
    rows = pa.record_batch({"n": pa.array(range(100)), "t": pa.array(values)})
    texts = list(inserts("`t`", rows, 200))
    assert len(texts) > 5 and all(len(text) <= 200 for text in texts)
    begin = b"INSERT INTO `t` VALUES "
    assert all(text.startswith(begin) for text in texts)
    joined = b",".join(text.removeprefix(begin) for text in texts).decode()
    (whole,) = inserts("`t`", rows, 1 << 20)
    assert joined == whole.decode().removeprefix(begin.decode())
    assert joined.startswith("(0,'a\\'b\\\\c'),(1,NULL),(2,''),(3,'é🙂\n'),(4,'\x00'),")
    assert len(list(inserts("`t`", rows, 10))) == 100, "a row is never cut"


def test_rows_as_lines_keep_what_a_line_may_not_have() -> None:
    """Guards the lines of LOAD DATA: an end of a line within a text would begin another row, and
    a text that looks like NULL would be NULL."""
    texts = ["a\tb\\c\nd", None, "", "\\N", "é🙂\x00"]
    rows = pa.record_batch(
        {"t": pa.array(texts), "b": pa.array([b"\n\xff", None, b"", b"N", b"x"])}
    )
    wanted = "a\\tb\\\\c\\nd\t0aff\n\\N\t\\N\n\t\n\\\\N\t4e\né🙂\x00\t78\n"
    assert bytes(lines(rows, 100)).decode() == wanted
    assert bytes(lines(rows.slice(3, 1), 100)).decode() == "\\\\N\t4e\n"
    assert bytes(lines(rows.slice(0, 0), 1)) == b""
    assert load_data("`t`", rows.schema).endswith("(`t`, @c1) SET `b` = unhex(@c1)")
    with pytest.raises(TooLong):
        lines(rows, 8)
