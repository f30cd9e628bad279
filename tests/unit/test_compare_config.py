"""The configuration of a comparison: what it says, and how faults are named."""

from __future__ import annotations

import subprocess
import sys

import pytest

from replicators.connectors.compare import session
from replicators.connectors.compare.config import CompareConfig, Place, parse
from replicators.connectors.problems.errors import ReplicationError

WHOLE = """\
kind: delta
format: iceberg
hash: sha256
keys:
  id: bigint
non_keys:
  amount: {type: "decimal(10, 2)", nullable: false}
  mail: {type: string, sensitive: true}
  seen: {type: timestamp, compared: false}
current: {table: shop.current, partition_by: amount}
history: {table: shop.history}
sensitive: {table: shop.private}
catalog: {type: jdbc, uri: "postgresql://ann@db/lake", warehouse: /lake, name: lake}
names: {operation: OP, start: SINCE}
input: {format: csv, options: {sep: ";"}}
max_deleted: 0.2
"""
PLAIN = """\
keys: {id: bigint}
non_keys: {a: string}
current: {path: /x/current}
history: {path: /x/history}
"""


def faults(text: str) -> str:
    with pytest.raises(ReplicationError) as caught:
        parse(text)
    return str(caught.value)


def test_everything_is_read() -> None:
    found = parse(WHOLE)
    assert (found.kind, found.format, found.hash) == ("delta", "iceberg", "sha256")
    assert found.keys == ("id",)
    assert found.compared == ("amount", "mail")
    assert found.sensitive_columns == ("mail",)
    assert [c.type for c in found.columns] == ["bigint", "decimal(10,2)", "string", "timestamp"]
    assert [c.is_nullable for c in found.columns] == [False, False, True, True]
    assert found.sensitive == Place(table="shop.private")
    assert found.quarantine == Place(table="shop.history_quarantined")
    assert found.input.options == {"sep": ";"}
    assert (found.names.operation, found.names.start) == ("OP", "SINCE")
    assert found.partition_by == ("amount",)
    assert found.max_deleted == 0.2


def test_what_is_left_out_has_a_default() -> None:
    found = parse(PLAIN)
    assert isinstance(found, CompareConfig)
    assert (found.kind, found.format, found.hash) == ("full", "parquet", "xxhash64")
    assert found.quarantine == Place("/x/history_quarantined")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("{id: bigint}", "{id: bigints}", "line 1: `id` has the unknown type bigints"),
        ("{id: bigint}", "{}", "line 1: `keys` needs at least one column"),
        ("keys: {id: bigint}\n", "", "line 1: `keys` is missing"),
        ("{a: string}", "{a: string, a: int}", "line 2: `a` stands twice"),
        ("{a: string}", "{id: string}", "line 2: `id` is also a key"),
        ("{a: string}", "{ID: string}", "line 2: `ID` differs from another column only by case"),
        ("{a: string}", "{a: {type: int, nulls: true}}", "line 2: `nulls` is unknown"),
        ("{a: string}", "{a: {nullable: true}}", "line 2: `a` needs a type"),
        ("{a: string}", "{a: {type: int, nullable: 3}}", "line 2: `nullable` must be true or"),
        ("{a: string}", "{OPERATION: string}", "line 2: `OPERATION` is a name of a column that"),
        ("{a: string}", "{a: {type: int, sensitive: true}}", "`sensitive` is missing"),
        ("{a: string}", "{a: decimal}", "line 2: `a` has the unknown type decimal"),
        ("{a: string}", '{a: "decimal(40,2)"}', "line 2: `a` needs decimal(p,s)"),
        ("/x/history", "/x/current", "line 4: `history` has the same path as `current`"),
        ("history: {path: /x/history}\n", "", "line 1: `history` is missing"),
        ("{path: /x/history}", "{table: h}", "line 4: `history` needs `path`"),
        ("{path: /x/history}", "{path: /x, table: h}", "line 4: `history` has a table's name"),
        ("{path: /x/history}", "[", "this is no YAML"),
    ],
)
def test_a_fault_is_named_with_its_line(before: str, after: str, said: str) -> None:
    assert said in faults(PLAIN.replace(before, after))


def test_all_faults_are_named_at_once() -> None:
    found = faults("kind: ful\n" + PLAIN + "max_deleted: 7\nother: 1\n")
    assert "line 1: `kind` must be one of full, delta" in found
    assert "line 6: `max_deleted` must be a number from 0 to 1" in found
    assert "line 7: `other` is unknown" in found


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        ("{type: jdbc}", "`catalog` of type jdbc needs `uri`"),
        ("{type: none}", "must have a type of jdbc, hadoop, hive, glue, rest, session"),
        (
            "{type: jdbc, uri: 'postgresql://ann:secret1@db/lake', warehouse: /x}",
            "COMPARE_CATALOG_PASSWORD",
        ),
        ("{type: jdbc, uri: 'oracle://db/lake', warehouse: /x}", "must begin with sqlite"),
    ],
)
def test_a_faulty_catalog_is_named_without_its_password(catalog: str, said: str) -> None:
    found = faults(
        "format: iceberg\nkeys: {id: int}\ncurrent: {table: a.b}\nhistory: {table: a.c}\n"
        f"catalog: {catalog}\n"
    )
    assert "line 5" in found and said in found
    assert "secret1" not in found


def test_an_unreadable_file_is_named(tmp_path: object) -> None:
    from replicators.connectors.compare.config import read

    with pytest.raises(ReplicationError, match=f"{tmp_path}/no.yaml"):
        read(f"{tmp_path}/no.yaml")


def test_each_catalog_gives_the_sessions_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.PASSWORD, "secret1")
    jdbc = session.spark_conf(parse(WHOLE))
    assert jdbc["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://db/lake"
    assert jdbc["spark.sql.catalog.lake.jdbc.user"] == "ann"
    assert jdbc["spark.sql.catalog.lake.jdbc.password"] == "secret1"
    hive = session.spark_conf(
        parse(PLAIN + "catalog: {type: hive, uri: 'thrift://meta:9083', options: {a.b: c}}\n")
    )
    assert hive["spark.sql.catalogImplementation"] == "hive"
    assert hive["spark.hadoop.hive.metastore.uris"] == "thrift://meta:9083"
    assert hive["spark.hadoop.a.b"] == "c"
    glue = session.spark_conf(
        parse(
            "format: iceberg\nkeys: {id: int}\ncurrent: {table: a.b}\nhistory: {table: a.c}\n"
            "catalog: {type: glue, warehouse: 's3://lake/x', options: {client.region: eu-west-1}}\n"
        )
    )
    assert glue["spark.sql.catalog.lake.type"] == "glue"
    assert glue["spark.sql.catalog.lake.client.region"] == "eu-west-1"
    delta = session.spark_conf(parse("format: delta\n" + PLAIN))
    assert "DeltaCatalog" in delta["spark.sql.catalog.spark_catalog"]
    assert session.spark_conf(parse(PLAIN)).keys() & {"spark.sql.extensions"} == set()


def test_reading_a_configuration_loads_no_spark() -> None:
    """The web process must not start a JVM, so it must be able to parse one without pyspark."""
    code = (
        "import sys; from replicators.connectors.compare import config, command, run, session; "
        f"config.parse({PLAIN!r}); assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
