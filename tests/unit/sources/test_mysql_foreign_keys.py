"""Foreign keys that statements of the log make, as far as they change rows of their own table."""

from __future__ import annotations

import pytest

from replicators.sources.mysql.foreign_keys import ALL, NAMED, NONE, ForeignKey, unlogged
from replicators.sources.mysql.queries import statement


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ADD CONSTRAINT x FOREIGN KEY (p) REFERENCES u (id) ON DELETE CASCADE",
        [("x", "DELETE CASCADE", False)]),
        ("ADD CONSTRAINT `a b` FOREIGN KEY y (p) REFERENCES u (id) ON UPDATE SET NULL",
        [("a b", "UPDATE SET NULL", False)]),
        ("ADD CONSTRAINT FOREIGN KEY (`p`, q) REFERENCES s.u (id, x) ON UPDATE CASCADE",
        [("(`p`, q)", "UPDATE CASCADE", False)]),
        ("ADD FOREIGN KEY IF NOT EXISTS y (p) REFERENCES u (id) MATCH FULL ON UPDATE NO ACTION "
         "ON DELETE SET DEFAULT",
         [("y", "DELETE SET DEFAULT", False)]),
        ("ADD INDEX (p), ADD FOREIGN KEY y (p) REFERENCES u (id) ON DELETE CASCADE ON UPDATE "
         "CASCADE, ADD z int",
         [("y", "DELETE CASCADE, ON UPDATE CASCADE", False)]),
        ("/*!50000 ADD foreign key (p) references u (id) on delete cascade */",
        [("(p)", "DELETE CASCADE", False)]),
        ("ADD COLUMN IF NOT EXISTS p int NULL REFERENCES u (id) ON DELETE SET NULL AFTER id",
        [("(p)", "DELETE SET NULL", True)]),
        ("ADD (p int UNIQUE KEY REFERENCES u (id) ON DELETE CASCADE, q int, FOREIGN KEY (q) "
         "REFERENCES u (id) ON UPDATE CASCADE)",
         [("(p)", "DELETE CASCADE", True), ("(q)", "UPDATE CASCADE", False)]),
        ("ADD FOREIGN KEY (p) REFERENCES u (id), ADD FOREIGN KEY (q) REFERENCES u (id) ON DELETE "
         "RESTRICT ON UPDATE NO ACTION", []),
        ("DROP FOREIGN KEY x, COMMENT 'ADD FOREIGN KEY (p) REFERENCES u (id) ON DELETE CASCADE'",
        []),
        ("ADD at timestamp NULL ON UPDATE current_timestamp, ADD FOREIGN KEY (p) REFERENCES `ON "
         "DELETE CASCADE` (id)", []),
    ],
)  # fmt: skip
def test_a_key_that_changes_rows_is_read(text: str, keys: list[tuple[str, str, bool]]) -> None:
    """Guards CORRECTNESS 24 at a table that is followed: each form of a clause, and nothing that
    only looks like one."""
    said = statement("shop", f"ALTER TABLE t {text}")
    expected = [ForeignKey(name.replace("`", ""), rule, inline) for name, rule, inline in keys]
    assert list(said.keys) == expected


def test_a_table_that_is_made_again_has_keys_of_its_own() -> None:
    """Guards CREATE OR REPLACE; a CREATE IF NOT EXISTS is logged where it found the table there and
    did nothing."""
    body = (
        "TABLE {}t (id int, p int, CONSTRAINT x FOREIGN KEY (p) REFERENCES u (id) ON DELETE "
        "CASCADE)"
    )
    key = ForeignKey("x", "DELETE CASCADE", False)
    assert statement("shop", "CREATE OR REPLACE " + body.format("")).keys == (key,)
    assert statement("shop", "CREATE " + body.format("")).keys == (key,)
    assert statement("shop", "CREATE " + body.format("IF NOT EXISTS ")).keys == ()


def test_what_counts_is_what_the_server_honours_and_does_not_log() -> None:
    """Guards against stops for nothing: MySQL before 9.0 passes over a clause of a column's
    definition."""
    inline = ForeignKey("(p)", "DELETE CASCADE", True)
    named = ForeignKey("x", "UPDATE SET NULL", False)
    assert unlogged([inline, named], NONE) is None
    assert unlogged([inline, named], NAMED) is named
    assert unlogged([inline, named], ALL) is inline
