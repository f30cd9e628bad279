"""Rules for names, properties and layout of a lakehouse's tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replicators.connectors.model.schema import Column, TableId, TableSchema
from replicators.connectors.model.types import Array, Date, Float, Int, Json, String, Timestamp
from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.problems.problem import Problem
from replicators.targets.lakehouse import layout, naming, rules
from replicators.targets.lakehouse.checks import LakehouseChecks
from replicators.targets.lakehouse.layout import Layout
from replicators.targets.lakehouse.params import LakehouseParams

PARAMS = LakehouseParams(warehouse="/lake", catalog_uri="sqlite:////lake/catalog.db")
ORDERS, PEOPLE = TableId("Public", "Orders"), TableId("hr", "people")
CASES: list[tuple[dict[str, Any], tuple[str, str], tuple[str, str]]] = [
    ({}, ("Public", "Orders"), ("hr", "people")),
    ({"namespace": "raw"}, ("raw", "Orders"), ("raw", "people")),
    ({"namespace": "raw_{schema}"}, ("raw_Public", "Orders"), ("raw_hr", "people")),
    ({"namespace": "Raw", "name_case": "lower"}, ("raw", "orders"), ("raw", "people")),
    ({"name_case": "upper"}, ("PUBLIC", "ORDERS"), ("HR", "PEOPLE")),
    ({"schema_namespaces": "Public = shop"}, ("shop", "Orders"), ("hr", "people")),
    (
        {"schema_namespaces": "Public=shop; hr=staff", "namespace": "{schema}_raw"},
        ("shop_raw", "Orders"),
        ("staff_raw", "people"),
    ),
    (
        {"namespace": "raw", "table_prefix": "{schema}_", "name_case": "lower"},
        ("raw", "public_orders"),
        ("raw", "hr_people"),
    ),
]


@pytest.mark.parametrize(("values", "orders", "people"), CASES)
def test_names_by_rule(
    values: dict[str, Any], orders: tuple[str, str], people: tuple[str, str]
) -> None:
    """The namespace, the prefix and the case of each table."""
    params = replace(PARAMS, **values)
    assert (naming.names(params, ORDERS), naming.names(params, PEOPLE)) == (orders, people)


def shared(tables: list[TableId], **values: Any) -> list[Problem]:
    """What the assessment says of names that two tables would share."""
    return LakehouseChecks(replace(PARAMS, **values))._shared([TableSchema(t, ()) for t in tables])


def test_the_assessment_tells_names_that_a_rule_makes_equal() -> None:
    """By a fixed namespace, by a mapping, by a prefix that runs into the name, and by case."""
    twice = [TableId("a", "orders"), TableId("b", "orders")]
    assert not shared(twice)
    assert not shared(twice, namespace="raw", table_prefix="{schema}_")
    for values in ({"namespace": "raw"}, {"schema_namespaces": "a=b"}):
        (found,) = shared(twice, **values)
        assert (found.code, found.table) == ("target:name-shared", twice[1])
    run_in = [TableId("a", "b_c"), TableId("a_b", "c")]
    assert shared(run_in, namespace="raw", table_prefix="{schema}_")


def test_the_progress_table_has_a_place_of_its_own() -> None:
    """Its namespace is the fixed one; a rule of schemas has none."""
    found = [
        naming.progress_names(replace(PARAMS, **values))[0]
        for values in (
            {},
            {"namespace": "raw_{schema}"},
            {"namespace": "Raw", "name_case": "upper"},
        )
    ]
    assert found == ["replicator", "replicator", "RAW"]


FAULTS = [
    ({"namespace": "raw_{table}"}, "namespace"),
    ({"table_prefix": "{"}, "table_prefix"),
    ({"schema_namespaces": "a"}, "schema_namespaces"),
    ({"schema_namespaces": "a=b; a=c"}, "schema_namespaces"),
    ({"schema_namespaces": "a=b", "namespace": "raw"}, "schema_namespaces"),
    ({"table_properties": "format-version=2"}, "table_properties"),
    ({"table_properties": "a=b; delta.enableDeletionVectors = false"}, "table_properties"),
    ({"table_properties": "comment=x"}, "table_properties"),
    ({"name_case": "camel"}, "name_case"),
]


@pytest.mark.parametrize(("values", "named"), FAULTS)
def test_a_faulty_rule_is_refused_at_its_field(values: dict[str, str], named: str) -> None:
    """Also a property that the program relies on."""
    given = {"warehouse": "/lake", "catalog_uri": "sqlite:////lake/catalog.db", **values}
    with pytest.raises(InvalidParams) as raised:
        parse(LakehouseParams, given)
    assert list(raised.value.errors) == [named]


def test_properties_are_read_as_written() -> None:
    """A value may have an equals sign; blanks around it do not count."""
    assert rules.pairs(" a = b=c ;owner.team=sales;") == {"a": "b=c", "owner.team": "sales"}
    assert not rules.properties_fault("owner.team=sales; write.parquet.compression-codec=gzip")


TABLE = TableSchema(
    TableId("hr", "people"),
    tuple(
        Column(name, kind, "")
        for name, kind in {
            "id": Int(64),
            "born on": Date(),
            "seen": Timestamp(zone=True),
            "height": Float(64),
            "tags": Array(String()),
            "who": Json(),
        }.items()
    ),
    ("id",),
)
LAYOUTS: list[tuple[str, str, str]] = [
    ("people: id", "`id`", ""),
    ("hr.people: day(seen), bucket( 16 ,id )", "days(`seen`), bucket(16, `id`)", ""),
    ("people: id; hr.people: year(born on)", "years(`born on`)", ""),
    ("*: truncate(10, id); orders: x", "truncate(10, `id`)", "orders"),
    ("*: country", "", ""),
    ("elsewhere.people: id", "", "elsewhere.people"),
]


@pytest.mark.parametrize(("text", "sql", "unused"), LAYOUTS)
def test_the_strictest_rule_divides_a_table(text: str, sql: str, unused: str) -> None:
    """Rules that name no chosen table are told. The rule for every table divides those that have
    its columns."""
    params = replace(PARAMS, partition_by=text)
    made = ", ".join(map(layout.field_sql, layout.layout_of(params, TABLE).partition))
    assert made == sql
    assert ", ".join(layout.unused(params, [TABLE.id])) == unused
    assert not list(layout.faults(params, TABLE))


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ({"partition_by": "people: country"}, "country"),
        ({"partition_by": "people: height"}, "height"),
        ({"partition_by": "people: id, day(id)"}, "id"),
        ({"partition_by": "people: hour(born on)"}, "born on"),
        ({"partition_by": "people: bucket(4, tags)"}, "tags"),
        ({"partition_by": "people: seen", "format": "delta"}, "seen"),
        ({"sort_by": "people: born on desc, tags"}, "tags"),
        ({"sort_by": "people: who"}, "who"),
    ],
)
def test_a_rule_that_does_not_fit_a_table_is_told_and_not_applied(
    values: dict[str, str], column: str
) -> None:
    """By the assessment, for each column; a run makes the copy without it."""
    params = replace(PARAMS, **values)
    (found,) = LakehouseChecks(params)._layouts([TABLE])
    assert (found.code, found.column) == ("target:layout-column", column)
    assert not layout.layout_of(params, TABLE)


def test_an_order_is_read_and_kept() -> None:
    """As a property holds it, with the columns of a partition that the table had before."""
    params = replace(PARAMS, sort_by="people: seen DESC, id", partition_by="people: day(seen)")
    made = layout.layout_of(params, TABLE)
    assert layout.order_sql(made.order) == "`seen` DESC NULLS LAST, `id` ASC NULLS FIRST"
    assert Layout.from_text(made.to_text()) == made
    moved = replace(TABLE, columns=(Column("at", Timestamp(zone=True), "", ordinal=3),))
    assert made.following({"seen": 3, "id": 1}, moved).columns == {"at", "id"}
    other = Layout(order=made.order).after(made)
    assert other.columns == {"seen", "id"}
    assert list(layout.changes("t", made, other)) == [
        "ALTER TABLE t DROP PARTITION FIELD days(`seen`)"
    ]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"partition_by": "id"}, "partition_by"),
        ({"partition_by": "t: bucket(id)"}, "partition_by"),
        ({"partition_by": "t: day(3, id)"}, "partition_by"),
        ({"partition_by": "t: f(id)"}, "partition_by"),
        ({"partition_by": "t: a; t: b"}, "partition_by"),
        ({"partition_by": "t: day(at)", "format": "delta"}, "partition_by"),
        ({"sort_by": "t: day(at)"}, "sort_by"),
        ({"sort_by": "t: id", "format": "delta"}, "sort_by"),
    ],
)
def test_a_faulty_layout_is_refused_at_its_field(values: dict[str, str], named: str) -> None:
    """Delta takes plain columns, and no order."""
    given = {"warehouse": "/lake", "catalog_uri": "sqlite:////lake/catalog.db", **values}
    with pytest.raises(InvalidParams) as raised:
        parse(LakehouseParams, given)
    assert list(raised.value.errors) == [named]
