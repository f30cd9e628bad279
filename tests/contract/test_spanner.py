"""Spanner as a target keeps the promises of every target, seen in a small server of its protocol's
messages (`tests/spanner_server.py`). The real service never saw it."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.contract.merging import MergeContract, MergeFixtures
from replicators.connectors.contract.reading import ReadingContract
from replicators.connectors.contract.target import TargetContract
from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.target import TargetPlugin, TargetTable
from replicators.targets.spanner.service import Service
from tests.contract.sql_targets import NeutralRows, SqlTargetFixtures
from tests.spanner_server import SpannerServer
from tests.spanner_target import neutral_rows, params_of
from tests.spanner_world import OWN
from tests.sql_modes import SqlModes

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]
_NUMBERS = itertools.count(1)


class SpannerFixtures(SqlTargetFixtures):
    """Into a database of each test's own."""

    name = "spanner"

    @pytest.fixture
    def params(self, plugin: TargetPlugin, spanner: SpannerServer) -> Any:
        return parse(plugin.params, params_of(spanner, f"contract-{next(_NUMBERS)}"))

    def at_port(self, params: Any, port: int) -> Any:
        return dataclasses.replace(params, endpoint=f"http://127.0.0.1:{port}")

    @pytest.fixture
    def neutral(self, params: Any, spanner: SpannerServer) -> NeutralRows:
        return lambda schema: neutral_rows(spanner, params.database, schema)


class TestSpannerTarget(SpannerFixtures, TargetContract):
    """Staging, token, generations, owners."""


@pytest.mark.long
class TestSpannerMerging(SpannerFixtures, MergeContract, ReadingContract):
    """Modes, columns, fences, and rows that are read back."""

    fixes_version = False

    @pytest.fixture
    def replaced_by_hand(self, params: Any) -> Callable[[TableSchema], None]:
        def replaced(schema: TableSchema) -> None:
            place = f"`{schema.id.name}`"
            columns = ", ".join(f"`{c.name}` STRING(MAX)" for c in schema.columns[1:])
            made = f"CREATE TABLE {place} (`id` INT64,\n{columns.replace(', ', f',{chr(10)}')})"
            Service(params).change(f"DROP TABLE {place}", f"{made} PRIMARY KEY (`id`)")

        return replaced


@pytest.mark.long
class TestSpannerModes(SpannerFixtures, SqlModes):
    """Every mode against a naive replay."""


@pytest.mark.long
class TestSpannerJournal(TestSpannerModes):
    """The same where no merge fits into one commit."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("replicators.connectors.sql.keyed.KeyedClient.most_cells", 12)


class Killed(BaseException):
    """Stands for the end of the process."""


class TestSpannerKills(SpannerFixtures, MergeFixtures):
    """A process ends before or after each of a large merge's commits."""

    @pytest.mark.parametrize("is_sent", [True, pytest.param(False, marks=pytest.mark.long)])
    def test_a_merge_that_is_cut_off_is_finished_or_never_was(
        self,
        spanner: SpannerServer,
        params: Any,
        another: Callable[[], Any],
        wide: TableSchema,
        copied: Any,
        folded: Any,
        is_sent: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Guards the journal (CORRECTNESS 13). Rows swap their keys and take unsent values from
        each other, so a merge that was begun can't be made again from what is there then."""
        monkeypatch.setattr("replicators.connectors.sql.keyed.KeyedClient.most_cells", 8)
        before = {n: (f"name {n}", f"long {n}") for n in range(4)}
        after = {n: (f"moved {n}", f"long {(n + 1) % 4}") for n in range(4)}
        rows = [{"id": n, "name": f"name {n}", "note": f"long {n}"} for n in range(4)]
        moved = [
            {"id": n, "name": f"moved {n}", "unsent": ("note",), "origin": (n + 1) % 4}
            for n in range(4)
        ]
        reached = set()
        for count in range(1, 40):
            schema = replace(wide, id=TableId("contract", f"cut_{count}"))
            live = copied(schema, Mode.MIRROR, rows)
            batch, one = folded(schema, 20, moved), another()
            assert one.token(live).sequence == 10
            done = cut_off(one._client.service, count, is_sent=is_sent)
            try:
                one.merge(live, batch)
            except Killed:
                next_one = another()
                reached.add(next_one.token(live).sequence)
            else:
                assert done[0] < count
                break
            found = neutral_rows(spanner, params.database, schema)
            shown = {r["id"]: (r["name"], r["note"]) for r in found}
            assert shown == (after if next_one.token(live).sequence == 20 else before)
            next_one.merge(live, batch)
            found = neutral_rows(spanner, params.database, schema)
            assert {r["id"]: (r["name"], r["note"]) for r in found} == after
            assert next_one.token(live).sequence == 20
            assert spanner.rows(params.database, "rpl_replicator_journal") == []
        assert reached == {10, 20} and count > 5

    def test_a_merge_asks_the_catalog_once(
        self,
        spanner: SpannerServer,
        another: Callable[[], Any],
        wide: TableSchema,
        copied: Any,
        folded: Any,
    ) -> None:
        """Guards `KeyedClient.known`: fails where a merge asks again what it knows, or where it
        believes what it saw before another merge."""
        live = copied(wide, Mode.MIRROR, [{"id": 1, "name": "a", "note": "b"}])
        one = another()
        for sequence in (20, 30):
            batch = folded(wide, sequence, [{"id": 1, "name": "c", "unsent": ("note",)}])
            spanner.calls.clear()
            one.token(live)
            asked = spanner.calls.count("ExecuteStreamingSql")
            one.merge(live, batch)
        assert spanner.calls.count("ExecuteStreamingSql") - asked == 1
        one._client.remove(one.names(wide.id))
        with pytest.raises(ReplicationError):
            one.merge(live, folded(wide, 40, [{"id": 1, "name": "d", "unsent": ("note",)}]))

    @pytest.mark.long
    @pytest.mark.parametrize("is_sent", [False, True])
    def test_a_copy_that_is_cut_off_shows_the_old_rows_or_the_new_ones(
        self,
        spanner: SpannerServer,
        params: Any,
        another: Callable[[], Any],
        schema: TableSchema,
        is_sent: bool,
    ) -> None:
        """Guards a publication whose rename takes no part in a transaction (CORRECTNESS 13, 15): at
        each call of it readers have all rows of one copy, and the next process knows the table as
        its own."""
        old, new, generations = [(1, "a"), (2, "b")], [(2, "B"), (3, "c")], set()

        def shown(one: TableSchema) -> list[tuple[Any, ...]]:
            return sorted((r["id"], r["note"]) for r in neutral_rows(spanner, params.database, one))

        for count in range(1, 60):
            one = replace(schema, id=TableId("contract", f"copy_{count}"))
            first, writer = TargetTable(one.id, "r1", 1), another()
            self._stage(writer, first, one, old)
            uuid = writer.publish_snapshot(first, one, 10)
            again = TargetTable(one.id, "r1", 2, uuid)
            done = cut_off(writer._client.service, count, is_sent=is_sent)
            try:
                self._stage(writer, again, one, new)
                writer.publish_snapshot(again, one, 40)
            except Killed:
                next_one = another()
            else:
                assert done[0] < count
                break
            found = shown(one)
            assert found in (old, new)
            token = next_one.token(again)
            generations.add(token.generation if token else 0)
            if token is None or token.generation == 1:
                self._stage(next_one, again, one, new)
            else:
                assert found == new
            next_one.publish_snapshot(again, one, 40)
            token = next_one.token(again)
            assert (token.generation, token.sequence) == (2, 40) and shown(one) == new
            left = set(spanner.database(params.database).tables)
            assert not {n for n in left if n.startswith("rpl_replicator")} - set(OWN)
        assert generations == {0, 1, 2} and count > 5


def cut_off(service: Any, count: int, *, is_sent: bool) -> list[int]:
    """End the process at this commit or change of tables, once it is made or before it is. Returns
    how many there were. Those that are under way beside it are made."""
    done, lock = [0], threading.Lock()

    def cut(call: Callable[..., None]) -> Callable[..., None]:
        def counted(*given: Any) -> None:
            with lock:
                done[0] += 1
                number = done[0]
            if number == count and not is_sent:
                raise Killed
            call(*given)
            if number == count:
                raise Killed

        return counted

    service.commit, service.change = cut(service.commit), cut(service.change)
    return done
