"""Results as Iceberg or Delta tables. The current data set is replaced by one commit, which also
has its state as a table property."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from replicators.connectors import files
from replicators.connectors.compare.config import CatalogType, CompareConfig, Format, Place
from replicators.connectors.compare.state import PROPERTY, State
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableStore:
    """Tables of a format that has commits."""

    def __init__(self, spark: SparkSession, config: CompareConfig) -> None:
        self._spark = spark
        self._config = config

    def state(self) -> State | None:
        place = self._config.current
        if not self._exists(place):
            return None
        text = self._properties(place).get(PROPERTY)
        if text is None:
            raise ReplicationError("compare:not-ours", place=place)
        return State.of_text(text)

    def current(self) -> DataFrame | None:
        place = self._config.current
        return self._spark.table(self._name(place)) if self._exists(place) else None

    def rows(self, place: Place) -> DataFrame:
        return self._spark.table(self._name(place))

    def days(self, place: Place) -> list[date]:
        if not self._exists(place):
            return []
        found = self.rows(place).select(self._config.names.start).distinct().collect()
        return sorted(r[0] for r in found)

    def write_day(self, place: Place, rows: DataFrame, day: date) -> None:
        from pyspark.sql import functions as F

        start = self._config.names.start
        if not self._exists(place):
            self._make_namespace(place)
            writer = rows.writeTo(self._name(place)).using(self._config.format.value)
            if self._config.format == Format.ICEBERG and place.path:
                writer = writer.tableProperty("location", place.path)
            writer.partitionedBy(F.col(start)).create()
            self._register(place)
            return
        rows = self._fitted(place, rows)
        rows.writeTo(self._name(place)).overwrite(F.col(start) == F.lit(day))

    def remove_day(self, place: Place, day: date) -> None:
        start = self._config.names.start
        self._spark.sql(
            f"DELETE FROM {self._name(place)} WHERE `{start}` = DATE '{day}'"  # noqa: S608
        )

    def publish(self, rows: DataFrame, state: State) -> None:
        from pyspark.sql import functions as F

        place = self._config.current
        self._make_namespace(place)
        writer = rows.writeTo(self._name(place)).using(self._config.format.value)
        writer = writer.tableProperty(PROPERTY, state.as_text())
        if self._config.format == Format.ICEBERG and place.path:
            writer = writer.tableProperty("location", place.path)
        if self._config.partition_by:
            writer = writer.partitionedBy(*map(F.col, self._config.partition_by))
        writer.createOrReplace()
        self._register(place)

    def _name(self, place: Place) -> str:
        """The table's name in statements. A Delta table is always written by its path."""
        if self._config.format == Format.DELTA:
            return f"delta.`{place.path}`"
        catalog = self._config.catalog
        prefix = "" if catalog.type == CatalogType.SESSION else f"{catalog.name}."
        return ".".join(f"`{part}`" for part in f"{prefix}{place.table}".split("."))

    def _exists(self, place: Place) -> bool:
        if self._config.format == Format.DELTA:
            return files.has_folder(f"{place.path}/_delta_log")
        return bool(self._spark.catalog.tableExists(self._name(place)))

    def _properties(self, place: Place) -> dict[str, str]:
        found = self._spark.sql(f"SHOW TBLPROPERTIES {self._name(place)}").collect()
        return {str(r[0]): str(r[1]) for r in found}

    def _make_namespace(self, place: Place) -> None:
        if self._config.format == Format.ICEBERG:
            namespace = self._name(place).rpartition(".")[0]
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")

    def _register(self, place: Place) -> None:
        """Make a Delta table known in the metastore by its name."""
        if self._config.format == Format.DELTA and place.table:
            register(self._spark, place.table, place.path, "delta")

    def _fitted(self, place: Place, rows: DataFrame) -> DataFrame:
        """The rows with the table's columns. Columns that the table lacks are added to it."""
        from pyspark.sql import functions as F

        there = {f.name: f.dataType for f in self.rows(place).schema.fields}
        fields = {f.name: f.dataType for f in rows.schema.fields}
        for name in there.keys() & fields.keys():
            if there[name] != fields[name]:
                raise ReplicationError(
                    "compare:history-columns",
                    place=place,
                    column=name,
                    found=there[name].simpleString(),
                    wanted=fields[name].simpleString(),
                )
        added = [f"`{n}` {t.simpleString()}" for n, t in fields.items() if n not in there]
        if added:
            self._spark.sql(f"ALTER TABLE {self._name(place)} ADD COLUMNS ({', '.join(added)})")
        lacking = {n: F.lit(None).cast(t) for n, t in there.items() if n not in fields}
        return rows.withColumns(lacking) if lacking else rows


def register(spark: SparkSession, table: str, path: str, form: str, columns: str = "") -> None:
    """Make a folder known in the session's metastore as a table; nothing where it is."""
    namespace, _, _ = table.rpartition(".")
    if namespace:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {namespace}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} {columns} USING {form} LOCATION '{path}'")
