"""The Spark session of a comparison: its settings, its jars, and how a program started by
spark-submit gets it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from replicators.connectors.compare.config import (
    Catalog,
    CatalogType,
    CompareConfig,
    Format,
    InputFormat,
)
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "COMPARE_CATALOG_PASSWORD"  # noqa: S105 - the variable's name
_ICEBERG_JAR = "iceberg-spark-runtime-4.1_2.13"
_DELTA_JARS = ("delta-spark_4.1_2.13", "delta-storage")
_CLASSES = {
    Format.ICEBERG: "org.apache.iceberg.spark.SparkCatalog",
    Format.DELTA: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_AVRO_JAR, _AVRO_CLASS = "spark-avro_2.13", "org.apache.spark.sql.avro.AvroDataToCatalyst"
_GLUE_FACTORY = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"


def jars(config: CompareConfig) -> tuple[str, ...]:
    """The names, without version, of the jars that the session needs. Those for Glue, REST catalogs
    over HTTPS and object stores are the cluster's."""
    return (*_format_jars(config), *_input_jars(config))


def _input_jars(config: CompareConfig) -> tuple[str, ...]:
    return (_AVRO_JAR,) if config.input.format == InputFormat.AVRO else ()


def _format_jars(config: CompareConfig) -> tuple[str, ...]:
    if config.format == Format.DELTA:
        return _DELTA_JARS
    if config.format == Format.PARQUET:
        return ()
    if config.catalog.type != CatalogType.JDBC:
        return (_ICEBERG_JAR,)
    kind = config.catalog.uri.removeprefix("jdbc:").partition(":")[0].partition("+")[0]
    return (_ICEBERG_JAR, "sqlite-jdbc" if kind == "sqlite" else kind)


def spark_conf(config: CompareConfig) -> dict[str, str]:
    """The session's settings."""
    common = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        # The kept rows are mostly keys and hashes, which hardly get smaller, and trying takes a
        # third of the time that casting and hashing does. What does not fit goes to disk.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }
    if config.format == Format.ICEBERG:
        return {**common, **_iceberg(config.catalog)}
    found = {**common, **_metastore(config.catalog)}
    if config.format == Format.DELTA:
        found["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        found["spark.sql.catalog.spark_catalog"] = _CLASSES[Format.DELTA]
        # Delta reads a table's log in 50 tasks by default, which takes longer than the log does.
        found["spark.databricks.delta.snapshotPartitions"] = "4"
    return found


def _iceberg(catalog: Catalog) -> dict[str, str]:
    found = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    }
    if catalog.type == CatalogType.SESSION:
        return found
    prefix = f"spark.sql.catalog.{catalog.name}"
    found[prefix] = _CLASSES[Format.ICEBERG]
    found[f"{prefix}.type"] = catalog.type.value
    found[f"{prefix}.cache-enabled"] = "false"
    is_jdbc = catalog.type == CatalogType.JDBC
    if catalog.uri:
        found[f"{prefix}.uri"] = _jdbc_url(catalog.uri) if is_jdbc else catalog.uri
    if catalog.warehouse:
        found[f"{prefix}.warehouse"] = catalog.warehouse
    if is_jdbc:
        found[f"{prefix}.jdbc.schema-version"] = "V1"
        user = urlsplit(catalog.uri.removeprefix("jdbc:")).username
        if user:
            found[f"{prefix}.jdbc.user"] = unquote(user)
        if PASSWORD in os.environ:
            found[f"{prefix}.jdbc.password"] = os.environ[PASSWORD]
    return found | {f"{prefix}.{n}": v for n, v in catalog.options.items()}


def _metastore(catalog: Catalog) -> dict[str, str]:
    """The metastore that plain and Delta tables are registered in. Without an address, Spark makes
    one of its own in the working folder."""
    if catalog.type not in (CatalogType.HIVE, CatalogType.GLUE):
        return {}
    found = {"spark.sql.catalogImplementation": "hive"}
    if catalog.uri:
        found["spark.hadoop.hive.metastore.uris"] = catalog.uri
    if catalog.warehouse:
        found["spark.sql.warehouse.dir"] = catalog.warehouse
    if catalog.type == CatalogType.GLUE:
        found["spark.hadoop.hive.metastore.client.factory.class"] = _GLUE_FACTORY
    return found | {f"spark.hadoop.{n}": v for n, v in catalog.options.items()}


def _jdbc_url(uri: str) -> str:
    """The JDBC form of an address such as sqlite:////folder/catalog.db."""
    if uri.startswith("jdbc:"):
        return uri
    parts = urlsplit(uri)
    if parts.scheme.startswith("sqlite"):
        return f"jdbc:sqlite:{unquote(parts.path[1:])}"
    place = parts.netloc.rpartition("@")[2]
    query = f"?{parts.query}" if parts.query else ""
    return f"jdbc:{parts.scheme.partition('+')[0]}://{place}{parts.path}{query}"


def submitted(config: CompareConfig, jars_dir: str) -> SparkSession:
    """The session of a program that was started by spark-submit, or by Python alone. What
    spark-submit was given counts before our settings. `run:jars-missing`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()
    conf = SparkConf()
    for name, value in spark_conf(config).items():
        conf.setIfMissing(name, value)
    missing = _missing_jars(config, jars_dir)
    if missing:
        _load(missing)
        given = filter(None, [conf.get("spark.jars", "")])
        conf.set("spark.jars", ",".join([*given, *(str(p) for p in missing)]))
    conf.setIfMissing("spark.app.name", "compare")
    return SparkSession.builder.config(map=dict(conf.getAll())).getOrCreate()


def _missing_jars(config: CompareConfig, jars_dir: str) -> list[Path]:
    """Our jars, where the JVM does not have their classes yet."""
    wanted = (
        (_CLASSES.get(config.format), _format_jars(config)),
        (_AVRO_CLASS, _input_jars(config)),
    )
    names = [n for needed, some in wanted if needed and not _has_class(needed) for n in some]
    return _paths(names, jars_dir)


def _has_class(name: str) -> bool:
    from pyspark import SparkContext

    loader = SparkContext._jvm.Thread.currentThread().getContextClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def jar_paths(config: CompareConfig, jars_dir: str) -> list[Path]:
    """The files of `jars`. `run:jars-missing`."""
    return _paths(jars(config), jars_dir)


def _paths(names: Sequence[str], jars_dir: str) -> list[Path]:
    found = []
    for name in names:
        paths = sorted(Path(jars_dir).absolute().glob(f"{name}-[0-9]*.jar"))
        if not paths:
            raise ReplicationError("run:jars-missing", folder=jars_dir)
        found += paths
    return found


def _load(paths: list[Path]) -> None:
    """Let the driver's JVM find classes in these jars. Its class loader can be extended until a
    context is made; `spark.jars` alone, set that late, reaches executors only."""
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for path in paths:
        loader.addURL(jvm.java.net.URL(path.as_uri()))
