"""Unusual keys, unsent values, transactions, schemas, names and choices: many small tables, one
replicator, the whole path. All of them without a JVM, into PostgreSQL:
`test_engine_cases_postgresql_target.py`."""

from __future__ import annotations

import pytest

from tests.integration.case_world import CaseWorld, assert_all_arrive
from tests.integration.source_cases import CASES, TRANSACTIONS, Case, make_cases, one_round
from tests.model.reading import PostgresTable
from tests.servers import Database
from tests.world_fixtures import MakeWorld

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(3600),
    pytest.mark.oldest_postgresql(is_long=True),
]


class PostgresCases(CaseWorld):
    """The cases of PostgreSQL."""

    cases = CASES

    def wanted(self, case: Case) -> PostgresTable:
        name = case.against or case.name
        return PostgresTable(self.database.dsn, case.schema, name, only=case.only)


KEYS = ("k_text", "k_bytes", "k_numeric", "k_time")
IMAGES = ("u_moves", "u_default")
SCHEMAS = ("s_values",)
NAMES = ("back`tick", "slash/ed", "n_odd_key")
CHOSEN = ("c_counted",)
ON_SPARK = {*KEYS, *IMAGES, "x_long", *SCHEMAS, *NAMES, *CHOSEN}


class SomeCases(PostgresCases):
    """Those in which Spark or a lakehouse could do other than a database."""

    cases = tuple(c for c in CASES if c.name in ON_SPARK)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param(SomeCases, "iceberg", marks=pytest.mark.long),
        pytest.param(PostgresCases, "iceberg", marks=pytest.mark.long),
        pytest.param(PostgresCases, "delta", marks=pytest.mark.long),
    ],
    ids=["some, iceberg", "iceberg", "delta"],
)
def test_every_case_of_the_source_arrives_by_snapshot_by_log_and_across_a_restart(
    world_maker: MakeWorld, kind: type[PostgresCases], form: str
) -> None:
    """Guards CORRECTNESS 1 (whole transactions), 6 (truncate, also by CASCADE), 8 (changed keys, in
    chains and circles), 9 (unsent values under every identity, also where they are filtered,
    flagged or kept as versions), 10 (the key is the identity's), 11 (key ranges by the target's
    order of keys), 20 (rows, columns and kinds of changes that are left out), and that no name or
    key is changed on the way: with any of them switched off some table here differs."""

    def prepare(database: Database) -> None:
        made = (*kind.cases, *(c for c in TRANSACTIONS if c not in kind.cases))
        make_cases(database, made)  # A round writes to all tables of transactions.

    with world_maker(prepare=prepare, tables=(), kind=kind, format=form) as world:
        assert isinstance(world, PostgresCases)
        assert_all_arrive(world, lambda number: one_round(world.database, number, world.cases))
