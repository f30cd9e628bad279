"""Modes as they are chosen: for a replicator, for a table, and against what a target and a table
allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assessments.modes import mode_problems
from replicators.config import InvalidConfig, Options, ReplicatorConfig, parse_tables
from replicators.connectors.model.modes import (
    CHOICES,
    IN_COLUMNS,
    Mode,
    extra_columns,
    stored,
    text_of,
)
from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Int, String
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.problems.problem import Severity
from replicators.connectors.target import TargetTable
from runners.engine.snapshot.chunks import is_kept
from runners.engine.store.copies import CopyRow
from runners.engine.store.protocol import TableRow

NAME = TableId("s", "t")


def schema_of(*names: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    columns = (Column("id", Int(64), "bigint"), *(Column(n, String(), "text") for n in names))
    return TableSchema(NAME, columns, key)


def config_of(
    mode: str, own: str = "", source: str = "postgresql", unsupported: str = "", **options_more: str
) -> ReplicatorConfig:
    """A replicator from PostgreSQL into the memory target, which has every mode."""
    tables = parse_tables([{"schema": "s", "name": "t", "mode": own, "unsupported": unsupported}])
    options = Options.parse({"mode": mode, **options_more})
    return ReplicatorConfig("n", source, None, "memory", None, tables, options)


def test_a_mode_that_nobody_knows_is_refused_for_replicator_and_table() -> None:
    """Guards the parsing of choices: an unknown one never reaches the engine."""
    with pytest.raises(InvalidConfig, match=r"options.mode"):
        Options.parse({"mode": "sideways"})
    with pytest.raises(InvalidConfig, match="mode must be one of"):
        parse_tables([{"schema": "s", "name": "t", "mode": "multiset"}])
    assert Options.parse({}).mode == Mode.MIRROR


@pytest.mark.parametrize("mode", CHOICES)
def test_every_mode_has_words_and_columns_of_its_own(mode: Mode) -> None:
    """Guards the tables of `connectors.modes`: a mode without its columns has a copy whose
    statements fail, and one without words can't be chosen."""
    assert text_of(mode).about.endswith(".")
    added = [c.name for c in extra_columns(mode)]
    assert all(name.startswith("_") for name in added)
    wanted = ["table", "message_id", "key", "value"]
    if mode in IN_COLUMNS:
        wanted = ["id", "a", *added]
    assert [c.name for c in stored(schema_of("a"), mode).columns] == wanted


def test_a_table_whose_columns_are_called_like_a_message_s_can_be_messages() -> None:
    """Guards the check of names: a message's columns don't stand beside the table's own."""
    assert mode_problems(config_of("messages"), [schema_of("value")]) == []


def test_a_column_that_the_mode_takes_is_an_error_unless_the_table_has_another_mode() -> None:
    """Guards the check of names, also of names that differ by case only."""
    schema = schema_of("_Deleted_At")
    (problem,) = mode_problems(config_of("soft_delete"), [schema])
    assert (problem.code, problem.column) == ("target:mode-column", "_Deleted_At")
    assert mode_problems(config_of("soft_delete", own="history"), [schema]) == []


def test_a_column_that_comes_later_under_a_name_of_the_mode_stops_its_table() -> None:
    """Guards `stored`: without its check an ADD COLUMN at the source would overwrite the mode's own
    column."""
    with pytest.raises(ReplicationError) as caught:
        stored(schema_of("_IS_CURRENT"), Mode.HISTORY)
    assert (caught.value.code, caught.value.table) == ("target:mode-column", NAME)


def test_history_of_a_table_without_a_key_is_an_error() -> None:
    """Guards the check for a key: without one no row's versions can be told apart."""
    codes = [p.code for p in mode_problems(config_of("history"), [schema_of("a", key=())])]
    assert codes == ["target:mode-needs-key"]
    assert mode_problems(config_of("append"), [schema_of("a", key=())]) == []


def test_a_snapshot_of_a_history_or_a_log_is_not_gone_on_with() -> None:
    """Guards rule 17: their rows say when they were copied, so chunks of two views do not fit
    together."""
    copy = CopyRow(NAME, 1, schema_of("a"), "layout", 5, 1, "/folder", ())
    kept = [m for m in CHOICES if is_kept(TargetTable(NAME, "r", 1, mode=m), copy)]
    assert kept == [Mode.MIRROR, Mode.SOFT_DELETE]


def test_a_source_whose_first_copy_converges_takes_no_history_and_no_log() -> None:
    """Guards rule 19: changes that are applied to a converging copy twice would be kept twice."""
    for mode, codes in {"append": ["source:mode-inexact"], "soft_delete": []}.items():
        config = config_of(mode, source="mysql")
        assert [p.code for p in mode_problems(config, [schema_of("a")])] == codes


def test_a_target_that_keeps_the_last_version_takes_a_converging_copy() -> None:
    """Guards `keeps_rows`: MariaDB into a search index, where a change that comes twice is refused
    as old; a topic would have it twice."""
    for target, codes in {"elasticsearch": [], "kafka": ["source:mode-inexact"]}.items():
        config = config_of("append", source="mysql")
        config = replace(config, target_kind=target)
        assert [p.code for p in mode_problems(config, [schema_of("a")])] == codes


def test_a_copy_in_another_mode_than_asked_is_made_afresh() -> None:
    """Guards `TableRow.is_outdated`, by which a change of mode after the start becomes a new
    copy."""
    row = TableRow(NAME, schema=schema_of("a"), is_snapshot_done=True, mode=Mode.MIRROR)
    assert not row.is_outdated
    changed = TableRow(
        NAME, schema=schema_of("a"), is_snapshot_done=True, mode_asked=Mode.SOFT_DELETE
    )
    assert changed.is_outdated
    assert not TableRow(NAME, mode_asked=Mode.SOFT_DELETE).is_outdated


@pytest.mark.parametrize(
    ("mode", "source", "code"),
    [
        ("mirror", "postgresql", ""),
        ("soft_delete", "postgresql", ""),
        ("history", "postgresql", "target:mode-quarantine"),
        ("append", "postgresql", "target:mode-quarantine"),
        ("mirror", "mysql", ""),
        ("mirror", "memory", "source:no-quarantine"),
    ],
)
def test_quarantine_is_refused_for_a_table_and_reported_for_all_where_it_can_not_be(
    mode: str, source: str, code: str
) -> None:
    """Guards against a choice without effect: the table would stop at a value though somebody asked
    that it goes on."""
    codes = [code] if code else []
    for unsupported, options, severity in (
        ("quarantine", {}, Severity.ERROR),
        ("", {"unsupported_values": "quarantine"}, Severity.WARNING),
        ("stop", {"unsupported_values": "quarantine"}, None),
    ):
        config = config_of(mode, source=source, unsupported=unsupported, **options)
        found = mode_problems(config, [schema_of("a")])
        found = [p for p in found if "quarantine" in p.code]
        assert [p.code for p in found] == (codes if severity else [])
        assert all(p.severity is severity for p in found)


def test_a_table_kept_by_count_can_not_quarantine() -> None:
    """Its rows are known by all of their values: one that is not known can't be waited for."""
    schema = TableSchema(NAME, schema_of("a").columns, (), full_before=True)
    codes = [p.code for p in mode_problems(config_of("mirror", unsupported="quarantine"), [schema])]
    assert "target:mode-quarantine" in codes


def test_what_can_not_be_read_of_stored_options_is_at_its_default() -> None:
    """Guards `Options.readable`: a page of options that another version wrote is shown; a run
    refuses them."""
    stored = {"mode": "sideways", "retry_minutes": 5, "keep_hours": [], "gone": 1}
    read = Options.readable(stored)
    assert (read.mode, read.retry_minutes, read.keep_hours) == (Mode.MIRROR, 5.0, 24.0)
    with pytest.raises(InvalidConfig) as err:
        Options.parse(stored)
    assert set(err.value.errors) == {"options.mode", "options.keep_hours", "options.gone"}
