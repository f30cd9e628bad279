"""The example statements of the designs make replicators into Kafka and Elasticsearch. No server is
asked: the checks that would ask one find nothing."""

from __future__ import annotations

from typing import Any

import pytest

from drafts.models import Draft
from drafts.services import DeployRefused
from drafts.statements.errors import StatementError
from drafts.statements.services import Outcome, statement_run
from replicators.models import Replicator
from replicators.services import params_of
from replicators.targets.elasticsearch.checks import ElasticsearchChecks
from replicators.targets.kafka.checks import KafkaChecks
from tests.app.factories import make_replicator

pytestmark = pytest.mark.django_db
KAFKA = "INTO 'kafka://localhost:9092"


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> Replicator:
    """A replicator whose source the statements read. No check reaches a server."""
    for checks in (KafkaChecks, ElasticsearchChecks):
        monkeypatch.setattr(checks, "connection", lambda _: [])
        monkeypatch.setattr(checks, "tables", lambda *_: [])
    return make_replicator("shop")


def run(text: str, actor: Any = None) -> Outcome:
    return statement_run(text=text, actor=actor, source="shop")


@pytest.mark.parametrize(
    ("text", "kind", "params", "tables"),
    [
        (f"CHANGEFEED f FOR TABLE orders {KAFKA}'", "kafka", {"envelope": "none"}, 1),
        (
            f"CHANGEFEED f FOR TABLE orders {KAFKA}?kafka_topic_prefix=shop_' WITH envelope='diff',"
            " format='json', resolved=false",
            "kafka",
            {"topic_prefix": "shop_", "envelope": "diff", "format": "json", "resolved": False},
            1,
        ),
        (
            f"CHANGEFEED f FOR TABLE orders {KAFKA},second:9093?schema_topic=all' WITH "
            "envelope=key_only",
            "kafka",
            {
                "servers": "localhost:9092,second:9093",
                "schema_topic": "all",
                "envelope": "key_only",
            },
            1,
        ),
        (
            f"CHANGEFEED f FOR DATABASE shop {KAFKA}' WITH format='avro', "
            "confluent_schema_registry='http://localhost:8081'",
            "kafka",
            {"format": "avro", "registry": "http://localhost:8081"},
            0,
        ),
        (
            f"CHANGEFEED f FOR DATABASE shop {KAFKA}?format=avro&"
            "confluent_schema_registry=http%3A%2F%2Flocalhost%3A8081'",
            "kafka",
            {"format": "avro", "registry": "http://localhost:8081"},
            0,
        ),
        (
            "CDC FOR shop.orders INTO KAFKA WITH cluster_address = 'http://localhost:9092', "
            "topic = 'my_table_topic', record = AFTER;",
            "kafka",
            {"servers": "localhost:9092", "topic": "my_table_topic", "record": "AFTER"},
            1,
        ),
        (
            "CDC FOR shop.orders INTO kafka WITH cluster_address = 'localhost:9092', record = all",
            "kafka",
            {"servers": "localhost:9092", "topic": "", "record": "ALL"},
            1,
        ),
        (
            "CDC FOR shop.orders INTO ELASTICSEARCH WITH "
            "cluster_address = 'http://localhost:9200', index = 'my_table_index';",
            "elasticsearch",
            {"address": "http://localhost:9200", "index": "my_table_index"},
            1,
        ),
        (
            "CHANGEFEED f FOR TABLE orders INTO 'elasticsearch://localhost:9200?index=found'",
            "elasticsearch",
            {"address": "http://localhost:9200", "index": "found"},
            1,
        ),
        (
            "CHANGEFEED f FOR TABLE orders INTO 'elasticsearch:?address=https://h:9200'",
            "elasticsearch",
            {"address": "https://h:9200", "index": "{table}"},
            1,
        ),
    ],
)  # fmt: skip
def test_the_examples_make_replicators(
    source: Replicator, editor: Any, text: str, kind: str, params: dict[str, Any], tables: int
) -> None:
    """Guards the targets' words for statements: each becomes the target's own parameter. What is
    shown afterwards makes the same replicator."""
    made = run(f"CREATE {text}", editor).replicator
    assert made is not None and made.target_kind == kind
    assert made.target_params.items() >= params.items()
    assert params_of(made, "source") == params_of(source, "source")
    assert len(made.tables) == tables if tables else len(made.tables) > 3
    shown = run(f'SHOW CREATE CHANGEFEED "{made.name}"', editor).statement
    again = shown.replace(f'"{made.name}"', "again").replace("CHANGEFEED f", "CHANGEFEED again")
    secret = params_of(source, "source")["password"]
    run(again.replace("********", secret), editor)
    assert Replicator.objects.get(name="again").target_params == made.target_params


def test_a_stream_ends_as_the_example_says(editor: Any) -> None:
    """Guards DROP CDC for the streams that CREATE CDC made."""
    made = "CREATE CDC FOR shop.orders INTO"
    run(f"{made} KAFKA WITH cluster_address = 'localhost:9092'", editor)
    run(f"{made} ELASTICSEARCH WITH cluster_address = 'http://localhost:9200'", editor)
    assert run("DROP CDC FOR shop.orders INTO ELASTICSEARCH;", editor).act == "dropped"
    assert run("DROP CDC FOR shop.orders;", editor).act == "dropped"


def test_a_feed_is_altered_while_it_is_paused(editor: Any) -> None:
    """Guards ALTER with the brokers and options of Kafka, and the start without a copy."""
    made = run(f"CREATE CHANGEFEED f FOR TABLE orders {KAFKA}' WITH cursor='now'", editor)
    assert made.replicator is not None and made.replicator.options["first_copy"] == "none"
    run("PAUSE CHANGEFEED f", editor)
    run("ALTER CHANGEFEED f SET resolved = false", editor)
    assert Replicator.objects.get(name="f").target_params["resolved"] is False
    run("ALTER CHANGEFEED f INTO 'kafka://other:9092'", editor)
    assert Replicator.objects.get(name="f").target_params["servers"] == "other:9092"
    with pytest.raises(StatementError, match="can't be changed"):
        run("ALTER CHANGEFEED f INTO 'kafka://other:9092?topic=t'", editor)
    assert run("RESUME CHANGEFEED f", editor).act == "resumed"
    assert run("DROP CHANGEFEED f", editor).act == "dropped"


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("TABLE orders INTO 'kafka:/'", "'kafka:/'", "`servers` is required"),
        (f"TABLE orders {KAFKA}' WITH envelope='row'", "row'", "one of"),
        (f"TABLE orders {KAFKA}' WITH resolved='10s'", "10s'", "true or false"),
        (f"TABLE orders {KAFKA}' WITH cursor='2018-05-06 07:06'", "2018", "cursor = 'now'"),
        (f"TABLE orders PARTITION north_america {KAFKA}'", "north_america", "Partition"),
        (
            f"TABLE orders {KAFKA}?confluent_schema_registry=http://h:1'",
            "http://h:1",
            "avro only",
        ),
        ("TABLE orders INTO 'elasticsearch://h:1?index=A'", "A'", "`index`"),
        ("TABLE orders INTO 'elasticsearch://h:1?topic=a'", "topic", "There is no `topic`"),
    ],
)  # fmt: skip
def test_what_a_target_lacks_is_refused(text: str, at: str, said: str) -> None:
    """Guards the refusals: the caret is at the word, and nothing is left behind."""
    text = f"CREATE CHANGEFEED f FOR {text}"
    with pytest.raises(StatementError) as found:
        run(text)
    assert text[found.value.at :].startswith(at), str(found.value)
    assert said in found.value.reason
    assert not Draft.objects.exists() and Replicator.objects.count() == 1


@pytest.mark.parametrize("into", [f"{KAFKA}'", "INTO 'elasticsearch://localhost:9200'"])
def test_a_range_of_rows_is_refused_where_changes_are_sent(editor: Any, into: str) -> None:
    """Guards the assessment: a row filter needs mirrored tables, which these targets have not."""
    with pytest.raises(DeployRefused) as refusal:
        run(f"CREATE CHANGEFEED f FOR TABLE orders VALUES FROM (1) TO (2) {into}", editor)
    assert "target:mode-filter" in {p.code for p in refusal.value.problems}
