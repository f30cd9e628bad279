"""Example statements, which the page offers to click. A test runs each of them, in this order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """`title`: what the statement is for. `text`: the statement."""

    title: str
    text: str


CHANGEFEEDS = (
    Example(
        "Every change of a table into Kafka",
        "CREATE CHANGEFEED feed_tweets FOR TABLE tweets\n"
        "INTO 'kafka://localhost:9092'\nWITH envelope = 'diff', format = 'json';",
    ),
    Example(
        "A table of a schema, with a prefix for topics",
        "CREATE CHANGEFEED feed_vehicles FOR TABLE movr.vehicles\n"
        "INTO 'kafka://localhost:9092?kafka_topic_prefix=movr_';",
    ),
    Example(
        "Avro with a schema registry",
        "CREATE CHANGEFEED feed_analytics FOR DATABASE movr.rides\n"
        "INTO 'kafka://localhost:9092'\n"
        "WITH format = 'avro', confluent_schema_registry = 'http://localhost:8081';",
    ),
    Example(
        "Every table of a database",
        "CREATE CHANGEFEED feed_movr FOR DATABASE movr\n"
        "INTO 'kafka://localhost:9092?kafka_topic_prefix=all_';",
    ),
    Example(
        "Rows of a range of keys, into tables of another database",
        "CREATE CHANGEFEED feed_first FOR TABLE tweets VALUES FROM (1) TO (2)\n"
        "INTO 'postgresql://writer:secret@localhost:5432/copies';",
    ),
    Example(
        "Changes from now on, without a first copy",
        "CREATE CHANGEFEED feed_new FOR TABLE tweets\n"
        "INTO 'kafka://localhost:9092?kafka_topic_prefix=new_'\nWITH cursor = 'now';",
    ),
    Example("What there is", "SHOW CHANGEFEEDS;"),
    Example("The statement of one", "SHOW CREATE CHANGEFEED feed_tweets;"),
    Example("Pause", "PAUSE CHANGEFEED feed_tweets;"),
    Example(
        "Another Kafka cluster",
        "ALTER CHANGEFEED feed_tweets INTO 'kafka://other.example:9092';",
    ),
    Example("Another option", "ALTER CHANGEFEED feed_tweets SET resolved = false;"),
    Example("Resume", "RESUME CHANGEFEED feed_tweets;"),
    Example("Delete, and keep what was delivered", "DROP CHANGEFEED feed_tweets;"),
)
"""The dialect of changefeeds."""
CDC = (
    Example(
        "A table into Kafka",
        "CREATE CDC FOR my_database.my_table\nINTO KAFKA\n"
        "WITH cluster_address = 'http://localhost:9092',\n"
        "     topic = 'my_table_topic',\n     record = AFTER;",
    ),
    Example(
        "A table into Elasticsearch",
        "CREATE CDC FOR my_database.my_table\nINTO ELASTICSEARCH\n"
        "WITH cluster_address = 'http://localhost:9200',\n     index = 'my_table_index';",
    ),
    Example("End one of several", "DROP CDC FOR my_database.my_table INTO ELASTICSEARCH;"),
    Example("End the only one", "DROP CDC FOR my_database.my_table;"),
)
"""The dialect of CDC streams."""
GROUPS = (("Changefeeds", CHANGEFEEDS), ("CDC streams", CDC))
