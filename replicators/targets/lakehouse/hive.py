"""What Spark needs to reach a Hive metastore that lists Iceberg's tables. Spark brings its client.
Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from replicators.targets.lakehouse.servers import ANSWER_SECONDS

_PATIENCE = {
    "hive.metastore.client.connect.retry.delay": "1s",
    "hive.metastore.connect.retries": "2",
    "hive.metastore.client.socket.timeout": f"{ANSWER_SECONDS}s",
}
_LONGEST_PROPERTY = "4000"
"""Longer properties stay in the table's metadata file alone: Hive 2 and 3 on MySQL refuse them."""


@dataclass(frozen=True, slots=True)
class Metastore:
    """A metastore's address, and whether a commit takes its lock or has it compare versions."""

    uri: str
    is_locked: bool = True

    def spark_conf(self, warehouse: str) -> dict[str, str]:
        """The settings in Spark of a catalog of Iceberg."""
        own = {
            **_PATIENCE,
            "iceberg.hive.table-property-max-size": _LONGEST_PROPERTY,
            "iceberg.engine.hive.lock-enabled": str(self.is_locked).lower(),
        }
        return {
            "type": "hive",
            "uri": self.uri,
            "warehouse": warehouse,
            **{f"hadoop.{name}": value for name, value in own.items()},
        }

    def session_conf(self) -> dict[str, str]:
        """The settings of a Spark whose own catalog is the metastore."""
        own = {**_PATIENCE, "hive.metastore.uris": self.uri}
        return {
            "spark.sql.catalogImplementation": "hive",
            **{f"spark.hadoop.{name}": value for name, value in own.items()},
        }


def folder(warehouse: str, namespace: str) -> str:
    """The folder that the metastore makes for a namespace."""
    return f"{warehouse}/{namespace}.db"


def uri_fault(text: str) -> str:
    """What is wrong with a metastore's address, as a sentence; empty where nothing is."""
    try:
        found = urlsplit(text)
        port = found.port
    except ValueError:
        return "must be thrift://host:port"
    is_fine = found.scheme == "thrift" and found.hostname and port
    more = found.path or found.query or found.fragment or "@" in found.netloc
    return "" if is_fine and not more else "must be thrift://host:port"
