"""What a look into the source's catalog, and a changed schema, mean for a table under each
policy."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from replicators.connectors.capabilities import ColumnKnowledge
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import Column, TableId, TableSchema, TableSelection
from replicators.connectors.model.types import Array, Int, String
from replicators.connectors.problems.errors import ReplicationError, Retry
from replicators.connectors.schema.policy import SchemaPolicy
from replicators.connectors.schema.steps import SchemaStep, StepKind
from replicators.connectors.target import TargetTable
from runners.engine.quarantine.decide import of_snapshot, quarantined_rows
from runners.engine.schema.drift import SchemaDrifts
from runners.engine.schema.evolution import AGAIN_TIMES, Evolver, ResyncDue
from runners.engine.schema.selection import followed
from runners.engine.schema.watch import Look
from runners.engine.store.protocol import MemoryStore, TableRow, TableState

TABLE = TableId("shop", "t")
CATALOG, STATEMENTS = ColumnKnowledge.BY_CATALOG, ColumnKnowledge.BY_STATEMENTS
ID = Column("id", Int(64), "bigint", False, 1)
NOTE = Column("note", String(), "text", True, 2)
N = Column("n", Int(32), "integer", True, 3)
SCHEMA = TableSchema(TABLE, (ID, NOTE, N), ("id",), ("id",), 70, storage="7", partitions=(70,))
ADDED = Column("b", Int(32), "integer", True, 4, missing="5")


class Writer:
    """A target that notes what it is asked for."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []

    def evolve(self, table: TargetTable, old: TableSchema, new: TableSchema) -> list[str]:
        self.done.append(("evolve", [c.name for c in old.columns], [c.name for c in new.columns]))
        return []

    def fill_column(self, table: TargetTable, column: Column, value: Any) -> None:
        self.done.append(("fill", column.name, value))


class Place:
    """A table with its copy, and what the policy does to both."""

    def __init__(
        self,
        policy: str,
        mode: Mode = Mode.MIRROR,
        columns: ColumnKnowledge = ColumnKnowledge.BY_CATALOG,
    ) -> None:
        self.store = MemoryStore([TABLE])
        self.store.table_event(
            TABLE, "table_snapshot_done", schema=SCHEMA, is_snapshot_done=True, mode=mode
        )
        self.writer = Writer()
        known_by = SimpleNamespace(columns=columns)
        source = SimpleNamespace(capabilities=known_by, keeps_values=None, schema_at=None)
        self.evolver = Evolver(self.writer, self.store, SchemaPolicy(policy), source)  # type: ignore[arg-type]

    @property
    def row(self) -> TableRow:
        return self.store.tables()[0]

    @property
    def events(self) -> list[str]:
        return [kind for _, kind, _ in self.store.reported]

    def follow(self, *columns: Column, is_look: bool = False, **changes: Any) -> str:
        """What became of a new schema: `resync`, an error's code, or nothing."""
        new = replace(SCHEMA, columns=columns or SCHEMA.columns, **changes)
        try:
            self.evolver.follow(self.row, TargetTable(TABLE, "r", 1), new, is_look=is_look)
        except ResyncDue:
            return "resync"
        except ReplicationError as err:
            return err.code
        return ""


def test_an_addition_is_followed_and_old_rows_are_filled() -> None:
    """Without the fill, old rows would read NULL where the source has the default."""
    place = Place("evolve")
    assert place.follow(ID, NOTE, N, ADDED) == ""
    assert place.writer.done[1:] == [("fill", "b", 5)]
    assert place.events == ["schema_followed"]
    assert place.row.schema is not None and place.row.schema.columns[-1] == ADDED


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        ((ID, NOTE, N, replace(ADDED, type=Array(Int(32)), missing="{1}")), {}),
        ((ID, NOTE, N, ADDED), {"storage": "8"}),
        ((ID, NOTE, replace(N, type=String())), {}),
        ((ID, replace(NOTE, ordinal=5), N), {}),
        ((ID, NOTE, N), {"key": ("n",)}),
    ],
)
def test_what_can_not_be_followed_exactly_is_copied_afresh(
    columns: tuple[Column, ...], changes: dict[str, Any]
) -> None:
    """Following it in place would leave old rows with other values than the source has."""
    place = Place("evolve")
    assert place.follow(*columns, **changes) == "resync"
    assert place.writer.done == [] and place.row.schema == SCHEMA
    for other in ("lenient", "stop"):
        assert Place(other).follow(*columns, **changes) == "source:schema-changed"


@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.HISTORY, Mode.APPEND])
def test_a_copy_that_holds_the_past_is_never_thrown_away_by_a_policy(mode: Mode) -> None:
    """A fresh copy has no history: a person has to say so."""
    place = Place("evolve", mode)
    assert place.follow(ID, NOTE, N, key=("n",)) == "source:schema-changed"
    assert not place.evolver.mends(place.row, "source:key-changed")


def test_rows_known_by_a_hash_are_read_again_where_it_changes() -> None:
    """A hash goes by column names and values: after a rename, no old row would be found by its
    delete."""
    assert Place("evolve", Mode.MULTISET).follow(ID, replace(NOTE, name="z"), N) == "resync"
    assert Place("evolve", Mode.MULTISET).follow(ID, NOTE, N, replace(ADDED, missing=None)) == ""
    assert Place("evolve", Mode.MULTISET).follow(ID, NOTE, N, ADDED) == "resync"


def quarantine_one(policy: str, mode: Mode = Mode.MIRROR) -> Place:
    """A table with a row that waits."""
    place = Place(policy, mode)
    held = of_snapshot(pa.table({"id": [1], "note": ["x"], "n": [2]}), SCHEMA, 0, -1)
    rows = quarantined_rows(held, SCHEMA, -2)
    place.store.record_quarantined(TABLE, place.row.generation, rows)
    return place


def test_a_name_under_which_quarantined_rows_have_values_is_never_followed() -> None:
    """Guards quarantined rows, whose values are kept by names: followed, a rename would lose them,
    a swap give each column the other's, and a new column would have those of a dropped one. Fails
    where the store is not asked for what waits."""
    renamed, other = replace(NOTE, name="z"), replace(ADDED, type=String(), missing=None)
    for policy, became in (("evolve", "resync"), ("lenient", "source:schema-changed")):
        assert quarantine_one(policy).follow(ID, renamed, N) == became
        place = quarantine_one(policy)
        assert place.follow(ID, N) == "", "no name is another's"
        assert place.follow(ID, N, replace(other, name="z")) == ""
        assert place.follow(ID, N, replace(other, name="note", ordinal=5)) == became
    swapped = (ID, replace(NOTE, name="n"), replace(N, name="note"))
    assert quarantine_one("evolve").follow(*swapped) == "resync"
    assert quarantine_one("evolve").follow(replace(ID, name="no"), NOTE, N, key=("no",)) == "resync"
    past = quarantine_one("evolve", Mode.SOFT_DELETE)
    assert past.follow(ID, renamed, N) == "source:schema-changed" and not past.writer.done
    freed = quarantine_one("evolve")
    freed.store.record_quarantined(TABLE, freed.row.generation, (), [-1], 0)
    assert freed.follow(ID, renamed, N) == ""


def test_lenient_keeps_a_dropped_column() -> None:
    """Guards what the target is told at once: a column that comes later may have the dropped one's
    number."""
    place = Place("lenient")
    assert place.follow(ID, N) == ""
    assert place.writer.done == [("evolve", ["id", "n"], ["id", "n"])]
    assert place.events == ["schema_kept"]
    place = Place("lenient")
    assert place.follow(ID, N, ADDED) == ""
    assert place.writer.done[0] == ("evolve", ["id", "n"], ["id", "n", "b"])
    assert Place("lenient").follow(ID, replace(NOTE, name="z"), N) == "source:schema-changed"


def test_ignore_keeps_the_schema_and_empties_what_is_gone() -> None:
    """Guards `Evolver._apply` under the policy `ignore`: values of a column that the source has no
    more would stay in old rows as if they were true; a renamed key stops the table, since no row
    could be found."""
    place = Place("ignore")
    assert place.follow(ID, N) == ""
    assert place.writer.done == [("fill", "note", None)] and place.events == ["schema_kept"]
    assert place.follow(ID, N) == "" and place.events == ["schema_kept"], "reported once"
    key_renamed = (replace(ID, name="no"), NOTE, N)
    assert Place("ignore").follow(*key_renamed, key=("no",)) == "source:schema-changed"


def test_ignore_follows_no_column_that_the_copy_has_not() -> None:
    """A column that came into the log's schema would fail the merge, or change the copy."""
    found = replace(
        SCHEMA, columns=(ID, replace(NOTE, name="z"), N, ADDED), layout=((1, "id", 20),)
    )
    kept = followed(found, TableSelection(TABLE), SCHEMA, SchemaPolicy.IGNORE, CATALOG)
    assert [c.name for c in kept.columns] == ["id", "n"]
    assert kept.left_out == ("z", "b")
    fresh = followed(found, TableSelection(TABLE), None, SchemaPolicy.IGNORE, CATALOG)
    assert fresh.columns == found.columns and fresh.former == ()


def test_a_column_that_is_left_out_is_reported_once_also_over_a_restart() -> None:
    """Left out silently, nobody would know that the copy lacks it."""
    place = Place("ignore")
    for _ in range(2):
        assert place.follow(is_look=True, left_out=("b",)) == ""
        assert place.follow() == ""
    assert place.events == ["schema_kept"]
    stored = TableSchema.from_json(place.row.schema.to_json())  # type: ignore[union-attr]
    assert stored == place.row.schema and stored.left_out == ("b",)


def test_a_chosen_column_is_followed_under_its_new_name() -> None:
    """The choice has the name of when it was made; by names alone the column would seem to be
    dropped."""
    found = replace(SCHEMA, columns=(ID, replace(NOTE, name="z"), N))
    chosen = TableSelection(TABLE, ("note",))
    schema = followed(
        found, chosen, replace(SCHEMA, columns=(ID, NOTE)), SchemaPolicy.EVOLVE, CATALOG
    )
    assert [c.name for c in schema.columns] == ["id", "z"]


def test_what_changes_nothing_for_rows_is_noted_silently_from_a_look_only() -> None:
    """Storage that was written again by a clean-up must be known, or the next addition would seem
    to have done it; the head of a segment may be older than the look, and would take that back."""
    place = Place("stop")
    assert place.follow(is_look=True, storage="8", partitions=(70, 71)) == ""
    assert place.events == []
    for storage in ("7", ""):
        assert place.follow(storage=storage, partitions=()) == ""
    assert place.row.schema == replace(SCHEMA, storage="8", partitions=(70, 71))
    place = Place("evolve")
    assert place.follow(ID, N, storage="") == ""
    assert place.row.schema is not None and place.row.schema.storage == "7"


# --- a look into the catalog ------------------------------------------------------------------------------------  # noqa: E501
def at_once(row: TableRow, position: int) -> bool:
    """The log is decoded and merged up to any place."""
    return True


def drift(place: Place, look: Look) -> Any:
    drifts = SchemaDrifts(place.evolver, at_once)
    drifts.see(replace(look, known={TABLE: place.row}))
    found = drifts.of(place.row)
    assert drifts.of(place.row) is None, "reported once"
    return found


def seen(**changes: Any) -> Look:
    schema = replace(SCHEMA, layout=((1, "id", 20),), **changes)
    return Look({TABLE: schema}, position=50)


def test_a_look_finds_what_no_row_tells() -> None:
    """A table that was made again, another partition, a name that moved: the log says nothing of
    them."""
    place = Place("evolve")
    assert drift(place, seen()) is None
    assert "made again" in drift(place, seen(native_id=71)).resync
    assert "attached" in drift(place, seen(partitions=(70, -80))).resync
    assert drift(place, Look({}, renamed={TABLE: TableId("a", "b")})).error.facts["now"] == "a.b"
    assert drift(place, Look({}, missed=frozenset({TABLE}))).is_gone
    left = Look({TABLE: SCHEMA}, left=frozenset({TABLE}))
    assert drift(place, left).error.code == "source:table-unpublished"
    assert drift(Place("stop"), seen(native_id=71)).error.code == "source:schema-changed"


def test_parts_with_other_files_are_read_again_unless_the_log_tells_that_all_rows_went() -> None:
    """A TRUNCATE of a part is in no log, that of the whole table is: taken for the first, each of
    those would be a fresh copy, or the end of a copy that holds the past. So the log is merged up
    to the look first."""
    place = Place("evolve")
    place.store.table_progress(TABLE, schema=replace(SCHEMA, marks=((70, 1), (71, 1))))
    emptied = seen(marks=((70, 2), (71, 1)))
    found = drift(place, emptied)
    assert ("partitions emptied" in found.resync, found.position) == (True, 50)
    drifts = SchemaDrifts(place.evolver, lambda row, position: False)
    drifts.see(replace(emptied, known={TABLE: place.row}))
    assert drifts.of(place.row) is None
    place.evolver.emptied(place.row)
    assert drifts.of(place.row) is None
    assert place.row.schema is not None and place.row.schema.marks == ()
    again = drift(place, emptied)
    assert again.resync == "" and again.schema.marks == ((70, 2), (71, 1))
    assert place.follow(is_look=True, marks=((70, 2), (71, 1))) == ""
    assert place.follow(marks=()) == "" and place.row.schema.marks == ((70, 2), (71, 1))
    assert drift(place, emptied) is None


def test_a_new_name_is_noted_and_reported_once_and_the_log_does_not_take_it_back() -> None:
    """Schemas of the log say no name: were theirs stored, the table would be taken for renamed at
    every look."""
    place, now = Place("evolve"), TableId("shop", "z")
    found = drift(place, seen(called=now))
    assert (found.called, found.schema, found.error) == (now, None, None)
    place.evolver.renamed(place.row, found.called)
    assert place.row.schema == replace(SCHEMA, called=now) and place.events == ["schema_followed"]
    assert place.follow(storage="") == "" and place.follow(is_look=True) == ""
    assert place.row.schema == replace(SCHEMA, called=now)
    assert drift(place, seen(called=now)) is None
    assert drift(place, seen(called=TABLE)).called == TABLE


def test_a_schema_waits_for_the_rows_before_it() -> None:
    """Followed at once, rows of the older schema would come after it."""
    found = drift(Place("stop"), seen(columns=(ID, N)))
    assert (found.error, found.position) == (None, 50) and found.schema is not None


@pytest.mark.parametrize("since", [{"generation": 2}, {"schema": replace(SCHEMA, columns=(ID,))}])
def test_a_look_at_another_copy_says_nothing(since: dict[str, Any]) -> None:
    """The table may have been merged or copied since, to a newer schema: the look would take that
    back."""
    place = Place("evolve")
    drifts = SchemaDrifts(place.evolver, at_once)
    drifts.see(replace(seen(columns=(ID, N)), known={TABLE: place.row}))
    place.store.table_progress(TABLE, **since)
    assert drifts.of(place.row) is None


def test_a_table_that_is_there_again_is_copied_afresh() -> None:
    """What was done while it was away, nobody sent."""
    place = Place("evolve")
    place.store.table_event(
        TABLE, "table_failed", error_code="source:table-missing", error_facts={}, retry_at=None
    )
    found = drift(place, seen())
    assert found.error.code == "source:table-replaced"
    assert place.evolver.mends(place.row, found.error.code)


@pytest.mark.parametrize(
    ("mode", "policy", "columns", "is_mended"),
    [
        (Mode.MIRROR, "evolve", (ID, NOTE, replace(ADDED, name="pos")), True),
        (Mode.MIRROR, "evolve", (ID, NOTE), True),
        (Mode.MIRROR, "evolve", (ID, NOTE, replace(ADDED, name="_pos")), False),
        (Mode.MIRROR, "lenient", (ID, NOTE), False),
        (Mode.HISTORY, "evolve", (ID, NOTE), False),
    ],
)
def test_a_table_whose_columns_name_was_mended_is_copied_afresh(
    mode: Mode, policy: str, columns: tuple[Column, ...], *, is_mended: bool
) -> None:
    """Guards `mends_name`: the log has the name of before for ever, so that a retry claimed it
    after the renaming too."""
    place = Place(policy, mode)
    facts = {"column": "_pos"}
    place.store.table_event(
        TABLE, "table_failed", error_code="target:column-reserved", error_facts=facts
    )
    drifts = SchemaDrifts(place.evolver, lambda *_: True)
    known = {TABLE: place.row}
    drifts.see(Look({TABLE: replace(SCHEMA, columns=columns)}, known=known))
    found = drifts.of(place.row)
    assert (found is not None and "_pos" in found.resync) is is_mended


def test_a_table_whose_last_column_goes_says_so() -> None:
    """Guards `Evolver.follow`: Spark would be asked for a table without columns, and fail with a
    ParseException for ever."""
    place = Place("evolve")
    bare = replace(SCHEMA, columns=(), key=(), primary_key=())
    with pytest.raises(ReplicationError, match="no column that can be copied"):
        place.evolver.follow(place.row, TargetTable(TABLE, "r", 1), bare)


def test_a_table_that_may_not_be_read_any_more_leaves_the_stream_until_a_person_acts() -> None:
    """Guards `Look.unreadable`: the log is sent also to a user who lost SELECT. Tried again by
    itself, the table would go on without what was left out meanwhile."""
    place = Place("evolve")
    found = drift(place, replace(seen(), unreadable=frozenset({TABLE})))
    assert found.is_refused and found.error.code == "source:select-revoked"
    assert found.error.retry is Retry.NEVER
    place.store.table_event(
        TABLE, "table_failed", error_code=found.error.code, error_facts={}, retry_at=None
    )
    assert drift(place, replace(seen(), unreadable=frozenset({TABLE}))) is None
    assert drift(place, seen()) is None


def test_a_table_that_keeps_its_owner_from_writing_leaves_the_stream_and_comes_back_when_it_is_mended() -> (  # noqa: E501
    None
):
    """Left in the stream, every update of the partition would fail at the source."""
    place = Place("evolve")
    refused = replace(seen(), refused={TABLE: "ALTER TABLE x"}, left=frozenset({TABLE}))
    found = drift(place, refused)
    assert found.is_refused and found.error.facts["statement"] == "ALTER TABLE x"
    place.store.table_event(
        TABLE, "table_failed", error_code=found.error.code, error_facts={}, retry_at=None
    )
    assert drift(place, refused) is None
    assert place.evolver.mends(place.row, drift(place, seen()).error.code)


def test_a_fault_that_comes_again_and_again_is_left_failing() -> None:
    """Else a table that can't be decoded is copied for ever."""
    place = Place("evolve")
    for _ in range(AGAIN_TIMES):
        place.evolver.fault(TABLE, "source:schema-ambiguous", {"change": "x"})
        assert place.row.is_resync_asked
        place.store.table_progress(TABLE, is_resync_asked=False)
    place.evolver.fault(TABLE, "source:schema-ambiguous", {"change": "x"})
    assert place.row.state is TableState.FAILING


def test_a_copy_that_fails_again_and_again_is_left_failing() -> None:
    """A fault of the copying itself is no fault of the log's: the copy would begin anew for
    ever."""
    place = Place("evolve")
    place.store.table_progress(TABLE, is_snapshot_done=False)
    tries = [place.evolver.mends(place.row, "target:evolve") for _ in range(AGAIN_TIMES + 1)]
    assert tries == [True] * AGAIN_TIMES + [False]


def test_a_decoders_fault_may_name_its_table_among_its_facts() -> None:
    """The run itself would end, where only a table is to be copied afresh."""
    place = Place("evolve")
    place.evolver.fault(TABLE, "source:key-changed", {"table": str(TABLE), "change": "x"})
    assert place.row.is_resync_asked


# --- a source that tells steps in place of numbers ------------------------------------------------------------------  # noqa: E501

AFTER = 100
COPY = TableSchema(
    TABLE,
    tuple(Column(n, String(), "text", ordinal=i) for i, n in enumerate(("id", "a", "b"), 1)),
    ("id",),
    upto=AFTER,
)


def stepping(policy: str, mode: Mode = Mode.MIRROR) -> Place:
    place = Place(policy, mode, ColumnKnowledge.BY_STATEMENTS)
    place.store.table_progress(TABLE, schema=COPY)
    return place


def reported(place: Place, *names: str, steps: list[tuple[str, str, str]], upto: int = 110) -> str:
    """What became of rows with these columns after these steps."""
    found = tuple(SchemaStep(upto, StepKind(kind), old, new) for kind, old, new in steps)
    columns = tuple(Column(n, String(), "text", missing="x") for n in names)
    schema = replace(COPY, columns=columns, steps=found, upto=upto)
    try:
        place.evolver.follow(place.row, TargetTable(TABLE, "r", 1), schema)
    except ResyncDue:
        return "resync"
    except ReplicationError as err:
        return err.code
    return ""


@pytest.mark.parametrize(
    ("policy", "kind", "became"),
    [
        ("evolve", "renamed", ""),
        ("lenient", "renamed", "source:schema-changed"),
        ("ignore", "renamed", "source:schema-changed"),
        ("stop", "renamed", "source:schema-changed"),
        ("evolve", "modified", "resync"),
        ("lenient", "modified", "source:schema-changed"),
    ],
)
def test_steps_go_by_the_policy(policy: str, kind: str, became: str) -> None:
    """Guards the policies where a source has no numbers: a swap of two names, and a conversion that
    may change values."""
    place = stepping(policy)
    swap = [(kind, "a", "b"), (kind, "b", "a")]
    assert reported(place, "id", "b", "a", steps=swap) == became
    assert bool(place.writer.done) is (became == "")


def test_a_step_is_followed_once() -> None:
    """Guards `upto`: the next file still has the steps in it."""
    place = stepping("evolve")
    steps = [("renamed", "a", "z"), ("added", "", "c")]
    assert reported(place, "id", "z", "b", "c", steps=steps) == ""
    assert [kind for kind, *_ in place.writer.done] == ["evolve", "fill"]
    found = place.row.schema
    assert found is not None
    assert [(c.name, c.ordinal) for c in found.columns] == [("id", 1), ("z", 2), ("b", 3), ("c", 4)]
    assert (found.upto, found.steps) == (110, ())
    assert reported(place, "id", "z", "b", "c", steps=steps) == ""
    assert len(place.writer.done) == 2


def test_a_table_that_the_log_tells_to_be_gone() -> None:
    """Guards the policy of vanished tables, and what the log tells of the time before a copy."""
    place = stepping("evolve")
    drifts = SchemaDrifts(place.evolver, at_once)
    place.evolver.fault(TABLE, "source:table-missing", {"table": str(TABLE)})
    assert place.row.state is TableState.FAILING
    drifts.see(Look({}, missed=frozenset({TABLE}), known={TABLE: place.row}))
    found = drifts.of(place.row)
    assert found is not None
    assert found.is_gone
    drifts.see(Look({TABLE: COPY}, known={TABLE: place.row}))
    again = drifts.of(place.row)
    assert again is not None
    assert again.error is not None
    assert again.error.code == "source:table-replaced"
    young = Place("stop")
    young.store.table_progress(TABLE, is_snapshot_done=False)
    young.evolver.fault(TABLE, "source:table-missing", {"table": str(TABLE)})
    assert young.row.is_resync_asked


def test_a_schema_without_rows_waits_for_the_log() -> None:
    """Guards a table that nobody writes to: its change is seen in the catalog, and the log's steps
    tell what it was."""
    place = stepping("evolve")
    drifts = SchemaDrifts(place.evolver, at_once)
    schema = replace(COPY, columns=COPY.columns[:2], upto=1, layout=((0, "id", 0), (0, "a", 0)))
    drifts.see(Look({TABLE: schema}, position=7, known={TABLE: place.row}))
    found = drifts.of(place.row)
    assert found is not None
    assert found.schema is not None
    assert (found.position, found.schema.known) == (7, COPY)
    same = replace(COPY, upto=1, layout=((0, "id", 0),))
    drifts.see(Look({TABLE: same}, position=7, known={TABLE: place.row}))
    assert drifts.of(place.row) is None


def test_the_copy_s_schema_goes_along_where_the_log_has_no_numbers() -> None:
    """Guards rows that are older than the description; under IGNORE only names of the copy are
    followed."""
    found = replace(COPY, columns=tuple(replace(c, ordinal=0) for c in COPY.columns), upto=1)
    new = replace(found, columns=(*found.columns, Column("c", String(), "text")))
    whole = followed(new, TableSelection(TABLE), COPY, SchemaPolicy.EVOLVE, STATEMENTS)
    assert whole.known == COPY
    assert [c.name for c in whole.columns] == ["id", "a", "b", "c"]
    kept = followed(new, TableSelection(TABLE), COPY, SchemaPolicy.IGNORE, STATEMENTS)
    assert kept.known is None
    assert [c.name for c in kept.columns] == ["id", "a", "b"]
    assert followed(new, TableSelection(TABLE), None, SchemaPolicy.EVOLVE, STATEMENTS).known is None


def test_a_table_that_is_missing_is_reported_only_once_the_log_had_its_say() -> None:
    """Guards the order: where decoding is behind, the log's own statement, with the new name, is
    still to come. A look that says the same again does not begin the wait anew, or a busy log would
    never be waited for to the end."""
    place, reached = stepping("evolve"), [0]
    drifts = SchemaDrifts(place.evolver, lambda row, position: reached[0] >= position)

    def look(position: int) -> None:
        missed = frozenset({TABLE})
        drifts.see(Look({}, missed=missed, position=position, known={TABLE: place.row}))

    look(50)
    assert drifts.of(place.row) is None
    look(60)
    reached[0] = 49
    assert drifts.of(place.row) is None
    reached[0] = 50
    found = drifts.of(place.row)
    assert found is not None
    assert found.error is not None
    assert (found.error.code, found.is_gone) == ("source:table-missing", True)
    assert drifts.of(place.row) is None, "reported once"
    look(70)
    place.evolver.fault(TABLE, "source:table-renamed", {"now": "shop.x"})
    assert drifts.of(place.row) is None
    assert place.row.error_code == "source:table-renamed"


def test_a_look_from_before_a_fault_says_nothing_of_it() -> None:
    """Guards a renamed table against a look that still saw it: it would seem to be there again, and
    be copied afresh."""
    place = stepping("evolve")
    drifts = SchemaDrifts(place.evolver, at_once)
    drifts.see(Look({TABLE: COPY}, known={TABLE: place.row}))
    place.evolver.fault(TABLE, "source:table-renamed", {"now": "shop.x"})
    assert drifts.of(place.row) is None
    drifts.see(Look({TABLE: COPY}, known={TABLE: place.row}))
    found = drifts.of(place.row)
    assert found is not None
    assert found.error is not None
    assert found.error.code == "source:table-replaced"


def test_a_change_without_rows_waits_through_looks_that_say_the_same() -> None:
    """Guards a quiet table beside busy ones: each look lies further ahead than what is merged by
    then."""
    place, reached = stepping("evolve"), [40]
    drifts = SchemaDrifts(place.evolver, lambda row, position: reached[0] >= position)
    schema = replace(COPY, columns=COPY.columns[:2], upto=1, layout=((0, "id", 0), (0, "a", 0)))
    for position in (50, 60):
        drifts.see(Look({TABLE: schema}, position=position, known={TABLE: place.row}))
        assert drifts.of(place.row) is None
    reached[0] = 55
    found = drifts.of(place.row)
    assert found is not None
    assert found.position == 50
    assert drifts.of(place.row) is None
