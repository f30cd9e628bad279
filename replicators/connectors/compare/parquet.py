"""Results as plain Parquet files, without a table format.

The current data set lies in a folder of its own for each version. The file `_current.json` names
the version that counts; it is replaced in one step. On a local disk, `latest` is a link to that
version, for readers who know only a path. A table of the metastore gets the version as its
location. The version before stays, for readers who have begun to read it.
"""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING

from replicators.connectors import files
from replicators.connectors.compare.config import CatalogType, CompareConfig, Place
from replicators.connectors.compare.state import State
from replicators.connectors.compare.tables import register
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POINTER, LINK, VERSIONS = "_current.json", "latest", "versions"


class ParquetStore:
    """Folders of Parquet files."""

    def __init__(self, spark: SparkSession, config: CompareConfig) -> None:
        self._spark = spark
        self._config = config

    def state(self) -> State | None:
        root = self._config.current.path
        text = files.read_if_there(f"{root}/{POINTER}")
        if text is not None:
            return State.of_text(text.decode())
        others = set(files.folders(root)) - {VERSIONS, LINK}
        if others or any(not _is_part(path) for path, _ in files.listed(root)):
            raise ReplicationError("compare:not-ours", place=self._config.current)
        return None

    def current(self) -> DataFrame | None:
        state = self.state()
        if state is None:
            return None
        self._show(state)
        return self._spark.read.parquet(self._version(state))

    def rows(self, place: Place) -> DataFrame:
        start = self._config.names.start
        frame = self._spark.read.option("mergeSchema", "true").parquet(place.path)
        return frame.withColumn(start, frame[start].cast("date"))

    def days(self, place: Place) -> list[date]:
        prefix = f"{self._config.names.start}="
        found = [f.removeprefix(prefix) for f in files.folders(place.path) if f.startswith(prefix)]
        return sorted(map(date.fromisoformat, found))

    def write_day(self, place: Place, rows: DataFrame, day: date) -> None:
        """On a local disk the date's folder gets its name when it is complete."""
        folder = self._folder(place, day)
        rows = rows.drop(self._config.names.start)
        self._require_types(place, rows)
        if files.is_url(place.path):
            rows.write.mode("overwrite").parquet(folder)
        else:
            part = f"{place.path}/.{day}.part"
            rows.write.mode("overwrite").parquet(part)
            files.remove_folder(folder)
            os.rename(part, folder)
            files.sync_folder(place.path)
        self._add_partition(place, rows, day)

    def remove_day(self, place: Place, day: date) -> None:
        if self._is_registered(place):
            self._spark.sql(
                f"ALTER TABLE {place.table} DROP IF EXISTS {self._partition(day)}"  # noqa: S608
            )
        files.remove_folder(self._folder(place, day))

    def publish(self, rows: DataFrame, state: State) -> None:
        root = self._config.current.path
        writer = rows.write.mode("overwrite")
        if self._config.partition_by:
            writer = writer.partitionBy(*self._config.partition_by)
        writer.parquet(self._version(state))
        before = self.state()
        files.publish(f"{root}/{POINTER}", state.as_text().encode())
        self._show(state)
        kept = {state.place, before.place if before else ""}
        for old in set(files.folders(f"{root}/{VERSIONS}")) - kept:
            files.remove_folder(f"{root}/{VERSIONS}/{old}")

    def _show(self, state: State) -> None:
        """Make the link and the metastore's table lead to the version that counts. Idempotent."""
        place = self._config.current
        if not files.is_url(place.path):
            link, wanted = f"{place.path}/{LINK}", f"{VERSIONS}/{state.place}"
            if not os.path.islink(link) or os.readlink(link) != wanted:
                part = f"{place.path}/.{LINK}.part"
                files.remove(part)
                os.symlink(wanted, part)
                os.replace(part, link)
        if place.table and self._config.catalog.type != CatalogType.NONE:
            self._relocate(place, self._version(state))

    def _relocate(self, place: Place, folder: str) -> None:
        columns = self._spark.read.parquet(folder).schema
        spark = self._spark
        if spark.catalog.tableExists(place.table):
            if {f.name: f.dataType for f in spark.table(place.table).schema} == {
                f.name: f.dataType for f in columns
            }:
                spark.sql(f"ALTER TABLE {place.table} SET LOCATION '{folder}'")
                if self._config.partition_by:
                    spark.sql(f"MSCK REPAIR TABLE {place.table}")
                spark.catalog.refreshTable(place.table)
                return
            spark.sql(f"DROP TABLE {place.table}")
        register(spark, place.table, folder, "parquet")
        if self._config.partition_by:
            spark.sql(f"MSCK REPAIR TABLE {place.table}")

    def _add_partition(self, place: Place, rows: DataFrame, day: date) -> None:
        if not place.table or self._config.catalog.type == CatalogType.NONE:
            return
        start = self._config.names.start
        columns = [f"`{f.name}` {f.dataType.simpleString()}" for f in rows.schema.fields]
        if not self._is_registered(place):
            listed = f"({', '.join([*columns, f'`{start}` date'])})"
            namespace = place.table.rpartition(".")[0]
            if namespace:
                self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {namespace}")
            self._spark.sql(
                f"CREATE TABLE {place.table} {listed} USING parquet PARTITIONED BY (`{start}`) "
                f"LOCATION '{place.path}'"
            )
            self._spark.sql(f"MSCK REPAIR TABLE {place.table}")
        there = {f.name for f in self._spark.table(place.table).schema.fields}
        added = [c for c, f in zip(columns, rows.schema.fields, strict=True) if f.name not in there]
        if added:
            self._spark.sql(f"ALTER TABLE {place.table} ADD COLUMNS ({', '.join(added)})")
        self._spark.sql(
            f"ALTER TABLE {place.table} ADD IF NOT EXISTS {self._partition(day)} "  # noqa: S608
            f"LOCATION '{self._folder(place, day)}'"
        )

    def _is_registered(self, place: Place) -> bool:
        return (
            bool(place.table)
            and self._config.catalog.type != CatalogType.NONE
            and bool(self._spark.catalog.tableExists(place.table))
        )

    def _partition(self, day: date) -> str:
        return f"PARTITION (`{self._config.names.start}` = DATE '{day}')"

    def _folder(self, place: Place, day: date) -> str:
        return f"{place.path}/{self._config.names.start}={day}"

    def _version(self, state: State) -> str:
        return f"{self._config.current.path}/{VERSIONS}/{state.place}"

    def _require_types(self, place: Place, rows: DataFrame) -> None:
        """Files of one table must agree on their columns' types, or nobody can read them
        together."""
        days = self.days(place)
        if not days:
            return
        there = self._spark.read.parquet(self._folder(place, days[-1])).schema.fields
        fields = {f.name: f.dataType for f in rows.schema.fields}
        for field in there:
            if field.name in fields and field.dataType != fields[field.name]:
                raise ReplicationError(
                    "compare:history-columns",
                    place=place,
                    column=field.name,
                    found=field.dataType.simpleString(),
                    wanted=fields[field.name].simpleString(),
                )


def _is_part(path: str) -> bool:
    """Whether a file at the root of the current data set may be a pointer that was cut off."""
    return os.path.basename(path).startswith(".")
